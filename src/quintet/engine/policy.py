"""Policy: may this call run? One engine for all protocols, over mode, rules and remembered grants.

Pure. What is not understood is asked, never allowed; a deny rule wins over everything.
"""

from __future__ import annotations

import fnmatch
import glob
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

import msgspec

from quintet.domain.address_pattern import fits_address
from quintet.domain.errors import Invalid
from quintet.domain.grant import Grant, GrantOffer, Scope, Subject
from quintet.domain.ports import CommandParser, ParsedCommand
from quintet.domain.tool import Effect, Prepared, ToolSpec
from quintet.domain.turn import Mode


class Judgement(StrEnum):
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class Rule(msgspec.Struct, frozen=True):
    """One configured line, e.g. "shell: git status *" = "allow"."""

    tool: str
    words: tuple[str, ...]  # of a command; a trailing * stands for any further words
    judgement: Judgement
    text: str


class Verdict(msgspec.Struct, frozen=True):
    judgement: Judgement
    rule: str  # what decided: a rule's text, a grant's id, or the mode
    grant: str = ""
    destructive: bool = False
    offers: tuple[GrantOffer, ...] = ()


def parse_rules(lines: Mapping[str, str]) -> tuple[Rule, ...]:
    """Rules as configured; raises Invalid naming the line."""
    rules = []
    for text, word in lines.items():
        tool, colon, pattern = text.partition(":")
        if word not in list(Judgement) or not tool.strip() or (colon and not pattern.strip()):
            raise Invalid(
                f'[policy.rules] "{text}" = "{word}" is not a rule.',
                next_step='Write "tool" or "tool: words *" = "allow", "ask" or "deny".',
            )
        words = tuple(pattern.split())
        if tool.strip() in ("shell", "*") and any("*" in w and (w != "*" or w is not words[-1]) for w in words):
            raise Invalid(
                f'[policy.rules] "{text}" can never match: words are compared whole.',
                next_step='Let a * stand alone at the end, for any further words: "shell: git push *".',
            )
        rules.append(Rule(tool.strip(), words, Judgement(word), text))
    return tuple(rules)


class Policy:
    def __init__(self, rules: Sequence[Rule], parser: CommandParser, *, sandbox_required: bool | None = None) -> None:
        self.rules = tuple(rules)
        self._parser = parser
        self._sandbox_required = sandbox_required  # None: the person has not said

    def judge(
        self,
        spec: ToolSpec,
        call: Prepared,
        mode: Mode,
        grants: Iterable[Grant],
        *,
        protocol: str,
        root: str,
        project: str,
        now_ms: int,
    ) -> Verdict:
        parsed = self._parser.parse(call.command) if call.command else ParsedCommand(understood=True)
        rule = self._rule_for(spec, call, parsed)
        if rule is not None and rule.judgement is Judgement.DENY:
            return Verdict(Judgement.DENY, rule.text)
        if spec.effect is Effect.NONE or spec.external:
            return Verdict(rule.judgement if rule else Judgement.ALLOW, rule.text if rule else "no effect")
        if mode is Mode.READ_ONLY and (spec.effect is not Effect.EXECUTE or parsed.destructive):
            return Verdict(Judgement.DENY, "mode read-only")
        if not call.confined:
            # Nothing remembered and no rule stands in for a wall: somebody looks at each such command.
            if self._sandbox_required:
                return Verdict(Judgement.DENY, "[sandbox] required")
            if mode is not Mode.ALLOW or self._sandbox_required is None:
                return Verdict(Judgement.ASK, "not sandboxed", destructive=parsed.destructive)
        loose = rule is None or rule.judgement is Judgement.ALLOW
        if not parsed.understood and loose and (strict := self._restricting(spec)) is not None:
            # It cannot be told whether the command is what that rule is about; so somebody has to look.
            return Verdict(Judgement.ASK, strict.text, destructive=parsed.destructive)
        if mode is Mode.ALLOW and (rule is None or rule.judgement is Judgement.ALLOW):
            return Verdict(Judgement.ALLOW, rule.text if rule else "mode allow", destructive=parsed.destructive)
        if parsed.destructive or mode is Mode.READ_ONLY:
            # Asked each time: nothing remembered covers it, and nothing can be remembered from it.
            return Verdict(Judgement.ASK, f"mode {mode}", destructive=parsed.destructive)
        if rule is not None and rule.judgement is Judgement.ALLOW:
            return Verdict(Judgement.ALLOW, rule.text)
        for grant in grants:
            if grant.live(now_ms) and _serves(grant, protocol, root, project) and _covers(grant, spec, call, parsed):
                return Verdict(Judgement.ALLOW, grant.id, grant=grant.id)
        return Verdict(Judgement.ASK, rule.text if rule else f"mode {mode}", offers=_offers(spec, call, parsed))

    def _restricting(self, spec: ToolSpec) -> Rule | None:
        """A rule that denies or asks about some commands of this tool."""
        named = (r for r in self.rules if r.tool in (spec.name, "*") and r.words)
        strict = (r for r in named if r.judgement is not Judgement.ALLOW)
        return next(strict, None)

    def _rule_for(self, spec: ToolSpec, call: Prepared, parsed: ParsedCommand) -> Rule | None:
        """The strictest rule that speaks of this call."""
        found = [r for r in self.rules if r.tool in (spec.name, "*") and _speaks_of(r, call, parsed)]
        order = [Judgement.DENY, Judgement.ASK, Judgement.ALLOW]
        return min(found, key=lambda r: order.index(r.judgement)) if found else None


def _speaks_of(rule: Rule, call: Prepared, parsed: ParsedCommand) -> bool:
    if not rule.words:
        return True
    if call.command:
        if not parsed.understood:
            # An allow needs certainty; a deny or ask is honoured on the looks of the raw text as well.
            return rule.judgement is not Judgement.ALLOW and _mentions(call.command.split(), rule.words)
        if rule.judgement is Judgement.ALLOW:
            return bool(parsed.commands) and all(_prefix(argv, rule.words) for argv in parsed.commands)
        return any(_prefix(argv, rule.words) or _prefix(_plainly(argv), rule.words) for argv in parsed.commands)
    pattern = " ".join(rule.words)
    hits = [_names(pattern, path, allowing=rule.judgement is Judgement.ALLOW) for path in call.paths]
    return bool(hits) and (all(hits) if rule.judgement is Judgement.ALLOW else any(hits))


def _names(pattern: str, target: str, *, allowing: bool) -> bool:
    if "://" in target:
        return fits_address(pattern, target, allowing=allowing)
    return fnmatch.fnmatchcase(target, pattern)


def _prefix(argv: Sequence[str], words: Sequence[str]) -> bool:
    """`git status *` covers git status with any further words; without the star only exactly these words."""
    if words and words[-1] == "*":
        fixed = words[:-1]
        return tuple(argv[: len(fixed)]) == tuple(fixed)
    return tuple(argv) == tuple(words)


_GIT_OPTIONS_WITH_VALUE = ("-C", "--git-dir", "--work-tree", "--namespace", "--attr-source")


def _plainly(argv: Sequence[str]) -> Sequence[str]:
    """The command as a person would name it: /usr/bin/git -C there push is git push. Only for saying no or asking."""
    name, rest = argv[0].rsplit("/", 1)[-1], list(argv[1:])
    if name == "git":
        while rest and rest[0].startswith("-"):
            rest = rest[2:] if rest[0] in _GIT_OPTIONS_WITH_VALUE else rest[1:]
    return (name, *rest)


def _mentions(words: Sequence[str], pattern: Sequence[str]) -> bool:
    fixed = [w for w in pattern if w != "*"]
    return any(list(words[i : i + len(fixed)]) == fixed for i in range(len(words)))


def _serves(grant: Grant, protocol: str, root: str, project: str) -> bool:
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


def _covers(grant: Grant, spec: ToolSpec, call: Prepared, parsed: ParsedCommand) -> bool:
    if grant.tool != spec.name:
        return False
    match grant.subject:
        case Subject.TOOL:
            return True
        case Subject.COMMAND:
            argvs = parsed.commands
            return parsed.understood and bool(argvs) and all(_prefix(a, (*grant.pattern, "*")) for a in argvs)
        case Subject.PATH:
            return bool(call.paths) and all(fnmatch.fnmatchcase(p, grant.pattern[0]) for p in call.paths)


def _offers(spec: ToolSpec, call: Prepared, parsed: ParsedCommand) -> tuple[GrantOffer, ...]:
    """What this approval could remember: never wider than what it shows."""
    scopes = (Scope.THREAD, Scope.PROJECT, Scope.ALWAYS)
    if call.command:
        if not parsed.understood or len(parsed.commands) != 1:
            return ()
        words = parsed.commands[0][:2]
        if len(words) > 1 and words[1].startswith("-"):
            return ()  # an option is no subcommand: what follows it could be anything
        return tuple(GrantOffer(spec.name, Subject.COMMAND, words, s) for s in scopes)
    if call.paths:
        exactly = glob.escape(call.paths[0])  # a file may be called "*"; remembering it must not cover all others
        return tuple(GrantOffer(spec.name, Subject.PATH, (exactly,), s) for s in scopes)
    return tuple(GrantOffer(spec.name, Subject.TOOL, (), s) for s in scopes)
