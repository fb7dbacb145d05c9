"""Coverage: which rules and grants together allow a call, and what an approval of it could remember. Pure."""

from __future__ import annotations

import fnmatch
import glob
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

import msgspec

from quintet.domain.grant import Grant, GrantOffer, Scope, Subject
from quintet.domain.ports import UNKNOWN_WORD, ParsedCommand
from quintet.domain.tool import Effect, Prepared, ToolSpec
from quintet.engine.rules import Judgement, Rule, names_target

Argv = tuple[str, ...]


class Covered(msgspec.Struct, frozen=True):
    """What allows a call."""

    rules: tuple[str, ...] = ()  # their text
    grants: tuple[str, ...] = ()  # their ids, each to be used once

    def words(self) -> str:
        return "; ".join((*self.rules, *self.grants))


def serves(grant: Grant, protocol: str, root: str, project: str) -> bool:
    """Whether a grant is meant for turns like this one."""
    if grant.protocol and grant.protocol != protocol:
        return False
    match grant.scope:
        case Scope.THREAD:
            return grant.thread == root
        case Scope.PROJECT:
            return grant.project == project
        case Scope.ALWAYS:
            return True
        case Scope.CALL:
            return False


def denying(grants: Iterable[Grant]) -> list[Rule]:
    """Remembered noes as rules: they hold for every spelling of what was shown, as a configured no does."""
    return [_as_rule(grant) for grant in grants if grant.denies]


def _as_rule(grant: Grant) -> Rule:
    match grant.subject:
        case Subject.COMMAND:
            words = grant.pattern if grant.exact else (*grant.pattern, "*")
        case Subject.CONTENT:
            words = (glob.escape(grant.pattern[1]),)  # whatever it holds by now
        case Subject.PATH:
            words = grant.pattern
        case Subject.TOOL | Subject.EFFECT:
            words = ()
    return Rule(grant.tool or "*", words, Judgement.DENY, f"a remembered no ({grant.id})")


def cover(
    spec: ToolSpec, call: Prepared, parsed: ParsedCommand, rules: Sequence[Rule], grants: Iterable[Grant]
) -> Covered | None:
    """Every part of the call must be covered by a rule or grant; several may do it together."""
    allowing = [r for r in rules if r.judgement is Judgement.ALLOW and r.about(spec)]
    # Neither a rule nor a grant made without network was ever shown a call that has it.
    usable = [g for g in grants if _about(g, spec) and (g.network or not call.network)]
    if call.command:
        return _cover_command(call, parsed, [] if call.network else allowing, usable)
    for rule in allowing:
        if names_target(rule, call) or (not rule.words and not call.always_ask):
            return Covered((rule.text,))
    found = next((g for g in usable if _covers_whole(g, call)), None)
    return Covered(grants=(found.id,)) if found else None


def _about(grant: Grant, spec: ToolSpec) -> bool:
    if grant.subject is Subject.EFFECT:
        return spec.effect is not Effect.NONE and grant.pattern == (spec.effect.value,)
    return grant.tool == spec.known_as


def _cover_command(
    call: Prepared, parsed: ParsedCommand, rules: Sequence[Rule], grants: Sequence[Grant]
) -> Covered | None:
    if not parsed.understood or parsed.destructive:
        return None  # who cannot be read may be destructive too
    broad = next((g for g in grants if g.subject is Subject.EFFECT), None)
    if broad is not None:
        return Covered(grants=(broad.id,))
    if parsed.writes:
        return None
    needed = _real(call, parsed)
    used_rules: dict[str, None] = {}
    used_grants: dict[str, None] = {}
    for argv, scripts in needed:
        rule = next((r for r in rules if _reaches(argv, parsed.commands, r.fits, len(r.fixed))), None)
        if rule is not None:
            used_rules[rule.text] = None
            continue
        grant = next((g for g in grants if _grant_reaches(g, argv, scripts, parsed.commands)), None)
        if grant is None:
            return None
        used_grants[grant.id] = None
    return Covered(tuple(used_rules), tuple(used_grants))


def _real(call: Prepared, parsed: ParsedCommand) -> list[tuple[Argv, str]]:
    """The commands of the line that need an answer, each with the digest of the scripts it runs."""
    scripts = call.scripts if len(call.scripts) == len(parsed.commands) else [""] * len(parsed.commands)
    every = list(zip(parsed.commands, scripts, strict=True))
    return [one for one in every if not _harmless(one[0], parsed.commands)] or every


def _grant_reaches(grant: Grant, argv: Argv, scripts: str, commands: Sequence[Argv]) -> bool:
    if grant.subject is Subject.TOOL:
        return True
    if grant.subject is not Subject.COMMAND or (scripts and scripts != grant.scripts):
        return False  # a script that was changed since, or another one in another place
    size = len(grant.pattern)
    fits = (lambda a: a == grant.pattern) if grant.exact else (lambda a: tuple(a[:size]) == grant.pattern)
    return _reaches(argv, commands, fits, size)


def _reaches(argv: Argv, commands: Sequence[Argv], fits: Callable[[Argv], bool], fixed: int) -> bool:
    """Whether it speaks of this command, or of a wrapper in words that name the command behind it as well."""
    if fits(argv):
        return True
    for outer in commands:
        before = len(outer) - len(argv)
        if before > 0 and outer[before:] == argv and fixed > before and fits(outer):
            return True
    return False


def _covers_whole(grant: Grant, call: Prepared) -> bool:
    match grant.subject:
        case Subject.TOOL:
            return not call.always_ask and not call.content
        case Subject.PATH:
            return bool(call.paths) and all(fnmatch.fnmatchcase(p, grant.pattern[0]) for p in call.paths)
        case Subject.CONTENT:
            return bool(call.content) and grant.pattern == call.content
        case Subject.EFFECT:
            return not call.always_ask and not call.content
        case Subject.COMMAND:
            return False


_STAYS = frozenset({"true", "false", ":", "pwd"})


def _harmless(argv: Argv, commands: Sequence[Argv]) -> bool:
    """Beside a command that is covered: says something, or goes further into the project."""
    if UNKNOWN_WORD in argv:
        return False
    if argv[0] == "cd":
        # A relative program would be another one over there.
        relative = any("/" in other[0] and not other[0].startswith("/") for other in commands)
        inside = len(argv) == 2 and not argv[1].startswith(("/", "-", "~")) and ".." not in argv[1].split("/")
        return inside and not relative
    return argv[0] == "echo" or (argv[0] in _STAYS and len(argv) == 1)


# Subcommands whose further words are only paths, names and texts: what else could make them run or send something is
# not understood by the parser. Of every other command exactly its words are remembered: the second word of curl, rm or
# python is no subcommand, and npm, make and go take options that name other programs.
_GIT_TEXT = """
status log diff show add commit branch blame describe rev-parse ls-files shortlog stash tag switch merge cherry-pick
revert mv
"""
_TAKES_ANY_WORDS: dict[str, frozenset[str]] = {
    "git": frozenset(_GIT_TEXT.split()),
    "cargo": frozenset({"build", "check", "test", "clippy", "fmt", "doc", "bench"}),
}


def offers(spec: ToolSpec, call: Prepared, parsed: ParsedCommand) -> tuple[GrantOffer, ...]:
    """What this approval could remember: never wider than what it shows."""
    scopes = (Scope.THREAD, Scope.PROJECT, Scope.ALWAYS)
    exact, scripts = False, ""
    if call.command:
        pattern, exact = _command_pattern(call, parsed)
        digests = {digest for _, digest in _real(call, parsed) if digest}
        if not pattern or len(digests) > 1:
            return ()
        subject, scripts = Subject.COMMAND, "".join(digests)
    elif call.content:
        subject, pattern = Subject.CONTENT, call.content
    elif call.paths:
        # A file may be called "*"; remembering it must not cover all others.
        subject, pattern = Subject.PATH, (glob.escape(call.paths[0]),)
        if len(call.paths) > 1:
            return ()
    elif call.always_ask:
        return ()
    else:
        subject, pattern = Subject.TOOL, ()
    return tuple(GrantOffer(spec.known_as, subject, pattern, s, exact, call.network, scripts) for s in scopes)


def _command_pattern(call: Prepared, parsed: ParsedCommand) -> tuple[Argv, bool]:
    """The words of the one real command of the line, with the wrappers before it; and whether only exactly these."""
    if not parsed.understood or parsed.writes or parsed.destructive:
        return (), False
    real = [argv for argv, _ in _real(call, parsed)]
    outer, inner = real[0], real[-1]
    chained = all(len(a) > len(b) and a[len(a) - len(b) :] == b for a, b in pairwise(real))
    if not chained:
        return (), False
    if not call.network and len(inner) > 1 and inner[1] in _TAKES_ANY_WORDS.get(inner[0], ()):
        pattern = outer[: len(outer) - len(inner) + 2]
        return (pattern, False) if UNKNOWN_WORD not in pattern else ((), False)
    return (outer, True) if UNKNOWN_WORD not in outer else ((), False)
