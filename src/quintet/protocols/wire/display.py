"""Display blocks: what a person is shown of a request or a result, as Wire's clients draw it. Pure."""

from __future__ import annotations

from typing import Any

Block = dict[str, Any]


def brief(text: str) -> Block:
    return {"type": "brief", "text": text}


def shell(command: str) -> Block:
    return {"type": "shell", "language": "bash", "command": command}


def todo(items: list[dict[str, str]]) -> Block:
    return {"type": "todo", "items": [{"title": i["text"], "status": i["status"]} for i in items]}


def diffs(unified: str) -> list[Block]:
    """One block per file. What lies between hunks is not there: only what changes, with the lines around it."""
    blocks: list[Block] = []
    for line in unified.splitlines(keepends=True):
        if line.startswith("--- "):
            blocks.append({"type": "diff", "path": "", "old_text": "", "new_text": "", "is_summary": False})
        elif line.startswith("+++ ") and blocks and not blocks[-1]["path"]:
            blocks[-1]["path"] = line[4:].strip().removeprefix("b/")
        elif blocks and line[:1] in (" ", "-", "+"):
            if line[0] != "+":
                blocks[-1]["old_text"] += line[1:]
            if line[0] != "-":
                blocks[-1]["new_text"] += line[1:]
    return blocks


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
