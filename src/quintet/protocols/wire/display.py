"""Display blocks: what a person is shown of a request or a result, as Wire's clients draw it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

Block = dict[str, Any]
# What holds for every command that is asked for; a note that says anything else is shown.
USUAL = frozenset({"sandboxed: writes the working directory, no network"})


def brief(text: str) -> Block:
    return {"type": "brief", "text": text}


def shell(command: str) -> Block:
    return {"type": "shell", "language": "bash", "command": command}


def todo(items: list[dict[str, str]]) -> Block:
    return {"type": "todo", "items": [{"title": i["text"], "status": i["status"]} for i in items]}


def task(name: str, command: str) -> Block:
    return {"type": "background_task", "task_id": name, "kind": "bash", "status": "running", "description": command}


SHOWN_LINES = 10_000  # of one file's changes

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def diffs(unified: str, paths: Sequence[str] = ()) -> list[Block]:
    """One block per hunk: what changes, with the lines around it; of a file with very much of it, one that says how
    much. `paths` are the whole paths of the files."""
    blocks: list[Block] = []
    lines = iter(unified.splitlines(keepends=True) if unified else ())
    path = ""
    for line in lines:
        if line.startswith("--- "):
            name = next(lines, "+++ ")[4:].strip()
            path = (line[4:].strip() if name == "/dev/null" else name)[2:]
        elif found := _HUNK.match(line):
            whole = next((p for p in paths if p == path or p.endswith(f"/{path}")), path)
            blocks.append(_hunk(whole, found, lines))
    return _summed_up(blocks) if unified.count("\n") > SHOWN_LINES else blocks


def _summed_up(blocks: list[Block]) -> list[Block]:
    made: dict[str, list[Block]] = {}
    for block in blocks:
        made.setdefault(block["path"], []).append(block)
    return [out for path, of_one in made.items() for out in _summary(path, of_one)]


def _summary(path: str, blocks: list[Block]) -> list[Block]:
    old, new = (sum(len(block[side].splitlines()) for block in blocks) for side in ("old_text", "new_text"))
    if max(old, new) <= SHOWN_LINES:
        return blocks
    changed = f"({new} lines, modified)" if old == new else f"({new} lines)"
    return [{**blocks[0], "old_text": f"({old} lines)", "new_text": changed, "is_summary": True}]


def _hunk(path: str, head: re.Match[str], lines: Iterator[str]) -> Block:
    """As many lines as its head says, so that no line of a file passes for one of the diff."""
    old_start, old, new_start, new = (int(n) if n else 1 for n in head.groups())
    before: list[str] = []
    after: list[str] = []
    while len(before) < old or len(after) < new:
        line = next(lines, "")
        if not line:
            break  # it was cut off
        text = line[1:].removesuffix("\n")
        if line[0] in " -":
            before.append(text)
        if line[0] in " +":
            after.append(text)
    return {
        "type": "diff",
        "path": path,
        "old_text": "\n".join(before),
        "new_text": "\n".join(after),
        "old_start": max(1, old_start),
        "new_start": max(1, new_start),
        "is_summary": False,
    }


def known(block: Block) -> Block:
    """A block of the engine's tools under the name that clients know; another is wrapped as one they show raw."""
    match block:
        case {"type": "todo", "items": list() as items}:
            return todo(items)
        case {"type": "brief" | "shell" | "diff"}:
            return block
        case {"type": str() as kind}:
            return {"type": kind, "data": {k: v for k, v in block.items() if k != "type"}}
    return {"type": "unknown", "data": block}
