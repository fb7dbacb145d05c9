"""Excerpt: the beginning and the end of a text that is too long for a model, and how the rest is found. Pure.

Lines are counted in one way here and by whoever reads the rest: a very long line counts as several.
"""

from __future__ import annotations

LINE = 2_000  # characters; what is longer goes on in the next line


def lines_of(text: str) -> list[str]:
    """The lines with their ends. Joined they are the text again."""
    found: list[str] = []
    for line in text.split("\n"):
        whole = line + "\n"
        found += [whole[at : at + LINE] for at in range(0, len(whole), LINE)]
    found[-1] = found[-1][:-1]  # the last one had no end of its own
    return found if found[-1] else found[:-1]


def excerpt(text: str, limit: int, how_to_read: str) -> str:
    """At most about `limit` characters: a third from the beginning, the rest from the end, where most outputs say what
    came of it. `how_to_read` may name {line}, the first line that was left out."""
    if len(text) <= limit:
        return text
    lines = lines_of(text)
    first = _fitting(lines, limit // 3)
    last = len(lines) - _fitting(lines[:first:-1], limit - limit // 3)
    left_out = sum(len(line) for line in lines[first:last])
    marker = (
        f"[{left_out} of {len(text)} characters left out here: lines {first + 1} to {last} of {len(lines)}; "
        f"{how_to_read.replace('{line}', str(first + 1))}]\n"
    )
    head = "".join(lines[:first])
    between = "" if not head or head.endswith("\n") else "\n"
    return head + between + marker + "".join(lines[last:])


def _fitting(lines: list[str], room: int) -> int:
    """How many of the first lines fit."""
    for count, line in enumerate(lines):
        room -= len(line)
        if room < 0:
            return count
    return len(lines)
