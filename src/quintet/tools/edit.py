"""The tool `edit`: exact replacements in one file, all of them or none."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from quintet.domain.errors import Invalid
from quintet.domain.ports import ToolContext
from quintet.domain.tool import CallScope, Effect, Prepared, ToolOutcome, ToolSpec
from quintet.tools.arguments import Arguments, checked, failed, one_line, plain
from quintet.tools.change import Change, apply_change, digest_of
from quintet.workspace.files import TEXT_LIMIT, on_disk, read_text
from quintet.workspace.paths import PathGuard

SPEC = ToolSpec(
    "edit",
    "Change a text file of the workspace by exact replacements, applied in order, all or none. `old` must occur "
    "exactly once, white space included; give more of the lines around it if it occurs more often, or set `all`.",
    {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The file, relative to the working directory or absolute."},
            "edits": {
                "type": "array",
                "minItems": 1,
                "maxItems": 100,
                "items": {
                    "type": "object",
                    "properties": {
                        "old": {"type": "string", "description": "The text as it stands in the file."},
                        "new": {"type": "string", "description": "What shall stand there instead."},
                        "all": {"type": "boolean", "description": "Replace every occurrence."},
                    },
                    "required": ["old", "new"],
                    "additionalProperties": False,
                },
            },
        },
        "required": ["path", "edits"],
        "additionalProperties": False,
    },
    Effect.WRITE,
)


class Edit(Arguments, frozen=True):
    old: Annotated[str, Meta(min_length=1)]
    new: str
    all: bool = False


class EditArguments(Arguments, frozen=True):
    path: str
    edits: Annotated[tuple[Edit, ...], Meta(min_length=1, max_length=100)]


class EditTool:
    def __init__(self, guard: PathGuard) -> None:
        self._guard = guard

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    async def prepare(self, arguments: dict[str, Any], scope: CallScope) -> Prepared:
        given = checked("edit", arguments, EditArguments)
        change = await on_disk(self._change, given, scope.cwd)
        normal = plain(given)
        return Prepared(
            title=one_line(f"edit {change.place.shown}"),
            arguments=normal,
            cwd=scope.cwd,
            paths=(change.place.path,),
            diff=change.diff(),
            digest=digest_of("edit", normal, scope.cwd, change),
        )

    async def run(self, prepared: Prepared, context: ToolContext) -> ToolOutcome:
        given = checked("edit", prepared.arguments, EditArguments)
        try:
            return await on_disk(self._run, given, prepared)
        except Invalid as error:
            # What could be prepared and cannot be applied was changed in between.
            return failed(f"{error.message} The file has changed since this was prepared; nothing was written.")

    def _run(self, given: EditArguments, prepared: Prepared) -> ToolOutcome:
        change = self._change(given, prepared.cwd)
        count = len(given.edits)
        words = f"Edited {change.place.shown}: {count} replacement{'s' if count > 1 else ''}."
        return apply_change("edit", change, prepared, words)

    def _change(self, given: EditArguments, cwd: str) -> Change:
        place = self._guard.writing(given.path, cwd)
        try:
            before = read_text(place)
        except OSError as error:
            raise Invalid(f"{place.shown}: {error.strerror}.") from error
        if before is None:
            raise Invalid(f"There is no file {place.shown}.", next_step="Use `write` to make a new file.")
        after = before
        for number, edit in enumerate(given.edits, 1):
            after = _replaced(after, edit, f"Edit {number} of {place.shown}")
            if len(after) > TEXT_LIMIT:
                raise Invalid(f"{place.shown} would grow beyond {TEXT_LIMIT // 1024 // 1024} MiB.")
        return Change(place, before, after)


def _replaced(text: str, edit: Edit, where: str) -> str:
    if edit.old == edit.new:
        raise Invalid(f"{where}: old and new are the same.")
    count = _occurrences(text, edit.old)
    if not count:
        ends = " The file's lines end with \\r\\n." if "\r\n" in text and "\r" not in edit.old else ""
        raise Invalid(f"{where}: the old text does not occur.{ends}", next_step="Read the file and copy it exactly.")
    if count > 1 and not edit.all:
        raise Invalid(
            f"{where}: the old text occurs {count} times.",
            next_step="Give more of the text around the one you mean, or set `all`.",
        )
    return text.replace(edit.old, edit.new)


def _occurrences(text: str, old: str) -> int:
    """Overlapping ones count too: "aa" lies twice in "aaa", and nobody knows which was meant."""
    count, place = 0, text.find(old)
    while place >= 0:
        count += 1
        place = text.find(old, place + 1)
    return count
