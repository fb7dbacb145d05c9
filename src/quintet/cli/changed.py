"""The one line that names what a call changed in files, and why undoing it would be partial. Bounded."""

from __future__ import annotations

import os

from quintet.domain.item import ToolResult
from quintet.domain.shown import shown_line

NAMES = 8
NAME_LENGTH = 80
WHY_LENGTH = 200


def changed_line(result: ToolResult, cwd: str) -> str:
    """Empty where nothing was changed and nothing is missing."""
    names = [_short(path, cwd) for path in result.changed_files[:NAMES]]
    if more := len(result.changed_files) - len(names):
        names.append(f"{more:,} more")
    notes = [str(d.get("text", "")) for d in result.display if d.get("type") == "note"]
    why = _cut(shown_line("; ".join(notes)), WHY_LENGTH)
    if not names:
        return why
    return f"changed: {', '.join(names)}" + (f" ({why})" if why else "")


def _short(path: str, cwd: str) -> str:
    inner = cwd.rstrip(os.sep) + os.sep
    name = shown_line(path.removeprefix(inner) if cwd else path)
    return name if len(name) <= NAME_LENGTH else f"…{name[-NAME_LENGTH:]}"


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]}…"
