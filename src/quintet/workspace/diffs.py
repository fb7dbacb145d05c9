"""Unified diffs of whole texts. Pure, and bounded: two large unlike texts become one replaced block, not minutes."""

from __future__ import annotations

from quintet.domain.shown import shown_line

CONTEXT = 3
_WORK_LIMIT = 4_000_000  # lines of one side times lines of the other that are still compared line by line


def unified_diff(before: str | None, after: str | None, path: str) -> str:
    """What changes at `path`; None where there is no file. Empty when nothing changes."""
    if before == after:
        return ""
    old, new = _lines(before or ""), _lines(after or "")
    name = shown_line(path.lstrip("/"))  # a name must not pass for a line of the diff
    head = f"--- {'/dev/null' if before is None else 'a/' + name}\n"
    head += f"+++ {'/dev/null' if after is None else 'b/' + name}\n"
    return head + "".join(_hunks(old, new))


def hunks(before: str | None, after: str) -> list[dict[str, int | str]]:
    """The same change as pairs of texts, each with the line it begins at, for whoever draws it side by side."""
    old, new = _lines(before or ""), _lines(after)
    made: list[dict[str, int | str]] = []
    for group in _groups(old, new) if before != after else []:
        a, b, c, d = group[0][1], group[-1][2], group[0][3], group[-1][4]
        made.append({"old_line": a + 1, "new_line": c + 1, "before": "".join(old[a:b]), "after": "".join(new[c:d])})
    return made


def _lines(text: str) -> list[str]:
    # Only \n ends a line here: str.splitlines would also break at form feeds and the like, which diffs do not.
    parts = text.split("\n")
    lines = [part + "\n" for part in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines


def _hunks(old: list[str], new: list[str]) -> list[str]:
    out: list[str] = []
    for group in _groups(old, new):
        first, last = group[0], group[-1]
        out.append(f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@\n")
        for tag, a, b, c, d in group:
            if tag == "equal":
                out.extend(_line(" ", line) for line in old[a:b])
                continue
            out.extend(_line("-", line) for line in old[a:b])
            out.extend(_line("+", line) for line in new[c:d])
    return out


def _groups(old: list[str], new: list[str]) -> list[list[tuple[str, int, int, int, int]]]:
    same = 0
    while same < min(len(old), len(new)) and old[same] == new[same]:
        same += 1
    tail = 0
    while tail < min(len(old), len(new)) - same and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    a, b, c, d = same, len(old) - tail, same, len(new) - tail
    if (b - a) * (d - c) <= _WORK_LIMIT:
        from difflib import SequenceMatcher

        matcher = SequenceMatcher(None, old[a:b], new[c:d], autojunk=False)
        codes = [(tag, i + a, j + a, k + c, m + c) for tag, i, j, k, m in matcher.get_opcodes()]
    else:
        codes = [("replace", a, b, c, d)]
    return _with_context([("equal", 0, a, 0, c), *codes, ("equal", b, len(old), d, len(new))])


def _with_context(codes: list[tuple[str, int, int, int, int]]) -> list[list[tuple[str, int, int, int, int]]]:
    """Changes that lie close together share a hunk; long equal stretches between them are cut."""
    groups: list[list[tuple[str, int, int, int, int]]] = []
    group: list[tuple[str, int, int, int, int]] = []
    for place, (tag, a, b, c, d) in enumerate(codes):
        if tag != "equal":
            group.append((tag, a, b, c, d))
            continue
        first, last = not group, place == len(codes) - 1
        if first or last or b - a > 2 * CONTEXT:
            if not first:
                keep = min(CONTEXT, b - a)
                groups.append([*group, ("equal", a, a + keep, c, c + keep)])
            keep = min(CONTEXT, b - a)
            group = [] if last else [("equal", b - keep, b, d - keep, d)]
        else:
            group.append((tag, a, b, c, d))
    return groups


def _range(start: int, stop: int) -> str:
    length = stop - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


def _line(mark: str, line: str) -> str:
    return mark + line if line.endswith("\n") else f"{mark}{line}\n\\ No newline at end of file\n"
