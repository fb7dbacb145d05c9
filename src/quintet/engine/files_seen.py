"""Files seen: which files a thread has read and modified, for the end of a summary. Read off calls and results."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

import msgspec

from quintet.domain.event import CheckpointSettled, Event
from quintet.domain.item import Item, ResultStatus, ToolCall, ToolResult, tool_of

READERS = frozenset({"read"})  # tools whose `path` is a file they show to the model
LISTED = 100  # names of each list


def files_lines(items: Sequence[Item], checkpoints: Iterable[Event], cwd: str) -> str:
    """Two lists in words, the files used last at the end; empty when no file was touched."""
    read, modified = files_seen(items, checkpoints, cwd)
    parts = [_listed("Files read in this thread so far", [path for path in read if path not in modified])]
    parts.append(_listed("Files modified in this thread so far", modified))
    return "\n\n".join(filter(None, parts))


def files_seen(items: Sequence[Item], checkpoints: Iterable[Event], cwd: str) -> tuple[list[str], list[str]]:
    """(read, modified), each file once, in the order of its last use."""
    read: dict[str, None] = {}
    modified: dict[str, None] = {}
    changes = _changes(checkpoints)
    calls: dict[str, ToolCall] = {}
    for item in items:
        if isinstance(item.body, ToolCall):
            calls[item.body.call_id] = item.body
        elif isinstance(item.body, ToolResult):
            result = item.body
            call = calls.get(result.call_id)
            if (
                call is not None
                and tool_of(call) in READERS
                and result.status is ResultStatus.OK
                and (path := _path(call))
            ):
                _use(read, path, cwd)
            for path in (*result.changed_files, *changes.get(result.call_id, ())):
                _use(modified, path, cwd)
    return list(read), list(modified)


def _changes(checkpoints: Iterable[Event]) -> dict[str, list[str]]:
    """By call; also those whose result was never recorded."""
    found: dict[str, list[str]] = {}
    for event in checkpoints:
        if isinstance(event.payload, CheckpointSettled):
            made = event.payload
            found.setdefault(made.call_id, []).extend(os.path.join(made.directory, c.path) for c in made.changes)
    return found


def _path(call: ToolCall) -> str:
    try:
        given = msgspec.json.decode(call.input)
    except (msgspec.DecodeError, UnicodeError):
        return ""
    path = given.get("path") if isinstance(given, dict) else None
    return path if isinstance(path, str) else ""


def _use(files: dict[str, None], path: str, cwd: str) -> None:
    whole = os.path.normpath(os.path.join(cwd, path))
    name = os.path.relpath(whole, cwd) if whole.startswith(cwd.rstrip("/") + "/") else whole
    files.pop(name, None)
    files[name] = None


def _listed(title: str, paths: list[str]) -> str:
    if not paths:
        return ""
    more = f" (and {len(paths) - LISTED:,} used earlier)" if len(paths) > LISTED else ""
    return f"{title}{more}:\n" + "\n".join(f"- {path}" for path in paths[-LISTED:])
