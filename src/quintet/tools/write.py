"""The tool `write`: a file's whole new content, put in place in one move."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from quintet.domain.errors import Invalid
from quintet.domain.ports import ToolContext
from quintet.domain.tool import CallScope, Effect, Prepared, ToolOutcome, ToolSpec
from quintet.tools.arguments import Arguments, checked
from quintet.tools.change import Change, carry_out, prepared_change, text_at
from quintet.workspace.files import TEXT_LIMIT, on_disk
from quintet.workspace.paths import PathGuard
from quintet.workspace.seen import Seen

SPEC = ToolSpec(
    "write",
    "Write a text file of the workspace as a whole, or add to its end; directories above it are made. To change a "
    "part of an existing file use `edit`.",
    {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The file, relative to the working directory or absolute."},
            "content": {"type": "string", "description": "Everything the file shall hold."},
            "append": {"type": "boolean", "description": "Add the content to what is there instead."},
        },
        "required": ["path", "content"],
        "additionalProperties": False,
    },
    Effect.WRITE,
)


class WriteArguments(Arguments, frozen=True):
    path: str
    content: str
    append: bool = False


class WriteTool:
    def __init__(self, guard: PathGuard, seen: Seen) -> None:
        self._guard = guard
        self._seen = seen

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    async def prepare(self, arguments: dict[str, Any], scope: CallScope) -> Prepared:
        given = checked("write", arguments, WriteArguments)
        change = await on_disk(self._change, given, scope.cwd, scope.directories)
        return prepared_change("write", given, scope.cwd, change)

    async def run(self, prepared: Prepared, context: ToolContext) -> ToolOutcome:
        given = checked("write", prepared.arguments, WriteArguments)
        change_now = partial(self._change, given, prepared.cwd, context.directories)
        return await on_disk(carry_out, "write", change_now, prepared, self._seen, context.thread)

    def _change(self, given: WriteArguments, cwd: str, added: Sequence[str]) -> Change:
        place = self._guard.writing(given.path, cwd, added=added)
        try:
            size = len(given.content.encode())
        except UnicodeEncodeError as error:
            raise Invalid("The content holds half of a surrogate pair, which no UTF-8 file can.") from error
        if size > TEXT_LIMIT:
            raise Invalid(f"The content is larger than {TEXT_LIMIT // 1024 // 1024} MiB.")
        before = text_at(place)
        if given.append and before is not None:
            if size + len(before.encode()) > TEXT_LIMIT:
                raise Invalid(f"The file would grow beyond {TEXT_LIMIT // 1024 // 1024} MiB.")
            return Change(place, before, before + given.content, f"Added to {place.shown}.")
        return Change(place, before, given.content, f"{'Created' if before is None else 'Wrote'} {place.shown}.")
