"""The tool `write`: a file's whole new content, put in place in one move."""

from __future__ import annotations

from typing import Any

from quintet.domain.errors import Invalid
from quintet.domain.ports import ToolContext
from quintet.domain.tool import CallScope, Effect, Prepared, ToolOutcome, ToolSpec
from quintet.tools.arguments import Arguments, checked, failed, one_line, plain
from quintet.tools.change import Change, apply_change, digest_of
from quintet.workspace.files import TEXT_LIMIT, on_disk, read_text
from quintet.workspace.paths import PathGuard

SPEC = ToolSpec(
    "write",
    "Write a text file of the workspace as a whole; directories above it are made. To change a part of an existing "
    "file use `edit`.",
    {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The file, relative to the working directory or absolute."},
            "content": {"type": "string", "description": "Everything the file shall hold."},
        },
        "required": ["path", "content"],
        "additionalProperties": False,
    },
    Effect.WRITE,
)


class WriteArguments(Arguments, frozen=True):
    path: str
    content: str


class WriteTool:
    def __init__(self, guard: PathGuard) -> None:
        self._guard = guard

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    async def prepare(self, arguments: dict[str, Any], scope: CallScope) -> Prepared:
        given = checked("write", arguments, WriteArguments)
        change = await on_disk(self._change, given, scope.cwd)
        normal = plain(given)
        return Prepared(
            title=one_line(f"write {change.place.shown}"),
            arguments=normal,
            cwd=scope.cwd,
            paths=(change.place.path,),
            diff=change.diff(),
            digest=digest_of("write", normal, scope.cwd, change),
        )

    async def run(self, prepared: Prepared, context: ToolContext) -> ToolOutcome:
        given = checked("write", prepared.arguments, WriteArguments)
        try:
            return await on_disk(self._run, given, prepared)
        except Invalid as error:
            return failed(error.line(), error.message)

    def _run(self, given: WriteArguments, prepared: Prepared) -> ToolOutcome:
        change = self._change(given, prepared.cwd)
        verb = "Created" if change.before is None else "Wrote"
        return apply_change("write", change, prepared, f"{verb} {change.place.shown}.")

    def _change(self, given: WriteArguments, cwd: str) -> Change:
        place = self._guard.writing(given.path, cwd)
        try:
            size = len(given.content.encode())
        except UnicodeEncodeError as error:
            raise Invalid("The content holds half of a surrogate pair, which no UTF-8 file can.") from error
        if size > TEXT_LIMIT:
            raise Invalid(f"The content is larger than {TEXT_LIMIT // 1024 // 1024} MiB.")
        try:
            before = read_text(place)
        except OSError as error:
            raise Invalid(f"{place.shown}: {error.strerror}.") from error
        return Change(place, before, given.content)
