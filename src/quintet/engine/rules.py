"""Rules: lines a person (or, only to tighten, a project) configured, and which calls they speak of. Pure."""

from __future__ import annotations

import fnmatch
import glob
import os.path
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

import msgspec

from quintet.domain.address_pattern import fits_address
from quintet.domain.errors import Invalid
from quintet.domain.ports import UNKNOWN_WORD, ParsedCommand
from quintet.domain.tool import Prepared, ToolSpec


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
    file: str = ""  # of a project that says so; else it is the person's own
    roots: tuple[str, ...] = ()  # where a relative path pattern begins: the project of the turn

    @property
    def named(self) -> str:
        """As a person is told of it."""
        return f"{self.text} in {self.file}" if self.file else self.text

    def about(self, spec: ToolSpec) -> bool:
        return self.tool in (spec.known_as, "*")

    def fits(self, argv: Sequence[str]) -> bool:
        """Word by word. An unknown word fits only the star."""
        if not self.words:
            return True
        if self.words[-1] == "*":
            return tuple(argv[: len(self.words) - 1]) == self.words[:-1]
        return tuple(argv) == self.words

    @property
    def fixed(self) -> tuple[str, ...]:
        return self.words[:-1] if self.words and self.words[-1] == "*" else self.words


def parse_rules(lines: Mapping[str, str], file: str = "") -> tuple[Rule, ...]:
    """Rules as configured, in a project's file where one is given; raises Invalid naming the line."""
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
        if tool.strip() != "shell" and words and words[0].startswith("~"):
            raise Invalid(
                f'[policy.rules] "{text}" can never match: paths are compared whole.',
                next_step="Write the path from the root, or from the project's directory.",
            )
        rules.append(Rule(tool.strip(), words, Judgement(word), text, file))
    return tuple(rules)


def anchored(rules: Iterable[Rule], roots: tuple[str, ...]) -> tuple[Rule, ...]:
    """The rules as they hold for a turn in this project."""
    return tuple(msgspec.structs.replace(rule, roots=roots) for rule in rules)


def strictest_rule(rules: Iterable[Rule], spec: ToolSpec, call: Prepared, parsed: ParsedCommand) -> Rule | None:
    """The rule that denies this call, else one that asks about it."""
    strict = [r for r in rules if r.judgement is not Judgement.ALLOW and r.about(spec) and _restricts(r, call, parsed)]
    return min(strict, key=lambda r: r.judgement is not Judgement.DENY) if strict else None


def uncertain_rule(rules: Iterable[Rule], spec: ToolSpec, call: Prepared, parsed: ParsedCommand) -> Rule | None:
    """A rule that denies or asks about some commands, when it cannot be told whether this is one of them."""
    if not call.command:
        return None
    # A rule without fixed words speaks of every command: there is nothing to be unsure of.
    named = [r for r in rules if r.judgement is not Judgement.ALLOW and r.about(spec) and r.fixed]
    if not parsed.understood:
        return named[0] if named else None
    return next((r for r in named if any(_might_fit(a, r.fixed) or _holds(a, r) for a in parsed.commands)), None)


def names_target(rule: Rule, call: Prepared) -> bool:
    """Whether a rule of a tool that is not the shell speaks of everything this call is about."""
    pattern = " ".join(rule.words)
    allowing = rule.judgement is Judgement.ALLOW
    found = [_names(rule, pattern, target, allowing=allowing) for target in call.paths or call.content[1:2]]
    return bool(found) and (all(found) if allowing else any(found))


def _names(rule: Rule, pattern: str, target: str, *, allowing: bool) -> bool:
    if "://" in target:
        return fits_address(pattern, target, allowing=allowing)
    patterns = _from_the_root(pattern, rule.roots, allowing=allowing) if target.startswith("/") else [pattern]
    if allowing:
        return any(fnmatch.fnmatchcase(target, p) for p in patterns)
    # The file system may take other spellings for the same file; then a no must hold for them as well.
    return any(fnmatch.fnmatchcase(_folded(target), _folded(p)) for p in patterns)


def _from_the_root(pattern: str, roots: Sequence[str], *, allowing: bool) -> list[str]:
    if pattern.startswith(("/", "*")):
        return [pattern]
    relative = os.path.normpath(pattern)
    if not roots:
        return [] if allowing else [f"*/{relative}"]
    return [os.path.normpath(f"{glob.escape(root)}/{relative}") for root in roots]


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).casefold())


def _restricts(rule: Rule, call: Prepared, parsed: ParsedCommand) -> bool:
    if not rule.fixed:
        return True
    if not call.command:
        return names_target(rule, call)
    if any(rule.fits(argv) or rule.fits(_plainly(argv)) for argv in parsed.commands):
        return True
    # Honoured on the looks of the raw text as well.
    return not parsed.understood and _mentions(_BROKEN_UP.split(call.command), rule.fixed)


_GIT_OPTIONS_WITH_VALUE = ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--attr-source", "--exec-path")
SKIPPED = 16  # words of options looked past within the arguments of another program, so that a long line costs no time
_BROKEN_UP = re.compile(r"[\s'\"`(){}$<>;&|\\]+")


def _plainly(argv: Sequence[str]) -> Sequence[str]:
    """The command as a person would name it: /usr/bin/git -C there push is git push. Only for saying no or asking."""
    name, rest = argv[0].rsplit("/", 1)[-1], list(argv[1:])
    if name == "git":
        while rest and rest[0].startswith("-"):
            rest = rest[2:] if rest[0] in _GIT_OPTIONS_WITH_VALUE else rest[1:]
    return (name, *rest)


def _might_fit(argv: Sequence[str], fixed: Sequence[str]) -> bool:
    """Whether unknown words, of which each may turn out as none or many, could make this the command of the rule."""
    if argv[0].rsplit("/", 1)[-1] != fixed[0] or UNKNOWN_WORD not in argv:
        return False
    plain = list(_plainly(argv))
    if UNKNOWN_WORD in argv[: len(argv) - len(plain) + 1]:
        return True  # among the options that were skipped
    known = plain[: plain.index(UNKNOWN_WORD)] if UNKNOWN_WORD in plain else plain
    return len(known) < len(fixed) and tuple(known) == tuple(fixed[: len(known)])


_ONLY_TALK = frozenset({"echo", "printf", "grep", "egrep", "fgrep"})


def _holds(argv: Sequence[str], rule: Rule) -> bool:
    """Whether another program is given the words of the rule: nobody knows every program that runs what it is given."""
    if argv[0] in _ONLY_TALK:
        return False
    size = len(rule.fixed)
    if any(tuple(_plainly(argv[n : n + size + SKIPPED])[:size]) == rule.fixed for n in range(1, len(argv))):
        return True
    # In one word with others only what is more than a name: a message may well say "make".
    inside = [w for word in argv[1:] if " " in word or "\t" in word for w in _BROKEN_UP.split(word.replace("=", " "))]
    return size > 1 and _mentions(inside, rule.fixed)


def _mentions(words: Sequence[str], fixed: Sequence[str]) -> bool:
    return any(tuple(words[i : i + len(fixed)]) == tuple(fixed) for i in range(len(words)))
