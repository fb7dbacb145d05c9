"""A unified diff for a terminal: per file a head with counts, then its hunks in colours. Pure."""

from __future__ import annotations

import re

from quintet.cli.styled import Line, plain, without_tabs, wrapped
from quintet.cli.terminal import safe

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@.*")
_STYLES = {"+": "green", "-": "red", "@": "cyan", "\\": "dim"}


def diff_lines(diff: str, width: int, limit: int = 0) -> list[Line]:
    """With a limit at most so many lines, and how many more there are."""
    out: list[Line] = []
    for name, body in _files(diff.splitlines()):
        added, removed = (sum(line.startswith(mark) for line in body) for mark in "+-")
        out.append((("bold", safe(name)), ("", "  "), ("green", f"+{added}"), ("", " "), ("red", f"-{removed}")))
        for line in body:
            out += wrapped(plain(without_tabs(safe(line)), _STYLES.get(line[:1], "")), width)
    if limit and len(out) > limit:
        more = len(out) - limit
        return [*out[:limit], plain(f"… {more} more lines", "dim")]
    return out


def _files(lines: list[str]) -> list[tuple[str, list[str]]]:
    """(name, lines from the first hunk on) per file. What a hunk holds is counted, since a removed line may look like a
    head."""
    found: list[tuple[str, list[str]]] = []
    old = new = 0
    for line in lines:
        if found and (old > 0 or new > 0 or line.startswith("\\")):
            found[-1][1].append(line)
            old -= line[:1] in ("-", " ", "")
            new -= line[:1] in ("+", " ", "")
        elif line.startswith("--- "):
            found.append((_name(line[4:]), []))
        elif line.startswith("+++ ") and found:
            name = _name(line[4:])
            found[-1] = (found[-1][0] if name == "/dev/null" else name, found[-1][1])
        elif found and (hunk := _HUNK.fullmatch(line)):
            found[-1][1].append(line)
            old, new = int(hunk[1] or 1), int(hunk[2] or 1)
        elif line:
            found.append((line, []))  # what is no diff is shown as it is
    return found


def _name(text: str) -> str:
    return text.partition("\t")[0].removeprefix("a/").removeprefix("b/")
