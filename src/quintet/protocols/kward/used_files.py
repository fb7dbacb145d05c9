"""Used files: what a thread has read or written, and when, as its calls and their results tell. Pure."""

from __future__ import annotations

import os
from collections.abc import Sequence

from quintet.domain.item import Item, ToolCall, ToolResult
from quintet.domain.thread import Thread
from quintet.protocols.kward import normal


def used_files(thread: Thread, items: Sequence[Item]) -> list[tuple[str, int]]:
    """(absolute path, when), each file once, by its last use. A compaction forgets what was read before it."""
    mark = thread.view.mark()
    calls: dict[str, ToolCall] = {}
    used: dict[str, int] = {}
    for item in items:
        match item.body:
            case ToolCall() as call:
                calls[call.call_id] = call
            case ToolResult() as result if not normal.is_error(result) and item.ordinal > (mark.at if mark else 0):
                path = _path(calls.get(result.call_id))
                if path:
                    used[os.path.normpath(os.path.join(thread.settings.cwd, path))] = item.at_ms
    return list(used.items())


def _path(call: ToolCall | None) -> str:
    if call is None or normal.name_of(call) not in ("read", "edit", "write"):
        return ""
    path = normal.arguments_of(call).get("path")
    return path if isinstance(path, str) else ""
