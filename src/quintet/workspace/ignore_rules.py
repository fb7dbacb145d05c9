"""The rules of one ignore file, as ripgrep reads them: parsed lines and the verdict they give on one entry. Knows no
tree; which files count where is said in ignore.py. pathspec turns globs into expressions and is imported on first use.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from quintet.workspace.globs import alternatives

_PLAIN = re.compile(r"[^*?\[\]\\{}/]+")


class _Rule(NamedTuple):
    ignores: bool  # False: a line with `!`, which takes an entry back
    only_directories: bool


class Rules:
    """What one ignore file says. The last line that fits decides.

    Most lines are a name or an ending; those are found in a table, so that a long file costs little for each entry.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        self._rules: list[_Rule] = []
        self._by_name: dict[str, list[int]] = {}
        self._by_ending: dict[str, list[int]] = {}
        self._on_names: list[tuple[int, re.Pattern[str]]] = []
        self._on_paths: list[tuple[int, re.Pattern[str]]] = []
        for line in lines:
            self._add(line)

    def __bool__(self) -> bool:
        return bool(self._rules)

    def verdict(self, name: str, inner: str, *, is_dir: bool) -> bool | None:
        """True: ignored; False: taken back; None: not spoken of. `inner` is the path from the ignore file's directory.
        Only the entry itself is judged, not the directories it lies in."""
        best = -1
        for number in self._by_name.get(name, ()):
            best = self._better(number, best, is_dir=is_dir)
        if self._by_ending:
            dot = name.find(".")
            while dot >= 0:
                for number in self._by_ending.get(name[dot:], ()):
                    best = self._better(number, best, is_dir=is_dir)
                dot = name.find(".", dot + 1)
        if self._on_names:
            best = _last_fit(self._on_names, name, best, is_dir=is_dir)
        if self._on_paths:
            best = _last_fit(self._on_paths, inner, best, is_dir=is_dir)
        return None if best < 0 else self._rules[best].ignores

    def _better(self, number: int, best: int, *, is_dir: bool) -> int:
        return number if number > best and (is_dir or not self._rules[number].only_directories) else best

    def _add(self, line: str) -> None:
        text = line if line.endswith("\\ ") else line.rstrip()
        if not text or text.startswith("#"):
            return
        ignores = not text.startswith("!")
        glob = text if ignores else text[1:]
        # ripgrep reads braces as alternatives and leaves a line out whose braces make no sense.
        for one in alternatives(glob):
            self._add_glob(one, ignores=ignores)

    def _add_glob(self, glob: str, *, ignores: bool) -> None:
        bare = glob.rstrip("/")
        only_directories = bare != glob
        number = len(self._rules)
        if _PLAIN.fullmatch(bare):
            self._by_name.setdefault(bare, []).append(number)
            self._rules.append(_Rule(ignores, only_directories))
        elif bare.startswith("*.") and _PLAIN.fullmatch(bare[2:]):
            self._by_ending.setdefault(bare[1:], []).append(number)
            self._rules.append(_Rule(ignores, only_directories))
        elif expression := _expression(glob):
            (self._on_paths if "/" in bare else self._on_names).append((number, expression))
            self._rules.append(_Rule(ignores, only_directories))


def _last_fit(rules: list[tuple[int, re.Pattern[str]]], text: str, best: int, *, is_dir: bool) -> int:
    # No name holds NUL and no rule can mean a newline, so a newline in a name is shown to the expressions as NUL:
    # they would take it for the end of the text.
    subject = text.replace("\n", "\0") + ("/" if is_dir else "")
    for number, expression in reversed(rules):
        if number < best:
            break
        found = expression.search(subject)
        # pathspec's expressions also fit what lies below a directory that fits; then they end before the end.
        if found and (found.end() == len(subject) or expression.pattern == "."):
            return number
    return best


@lru_cache(maxsize=2_000)
def _expression(glob: str) -> re.Pattern[str] | None:
    """None for a glob that means nothing, which ripgrep and git leave out too."""
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    # A trailing `/**` means what is in the directory, never the directory itself.
    inside = glob + "/*" if glob.endswith("/**") else glob + "*/" if glob.endswith("/**/") else glob
    # The sign was taken off, and what is left must not be read as one.
    literal = "\\" + inside if inside.startswith(("!", "#")) else inside
    try:
        made = GitIgnoreSpecPattern(literal).regex
    except (ValueError, re.error):  # ValueError: pathspec's own
        return None
    return made if isinstance(made, re.Pattern) else None
