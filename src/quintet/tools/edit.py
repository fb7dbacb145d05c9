"""The tool `edit`: exact replacements in one file, all of them or none."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

from msgspec import Meta

from quintet.domain.errors import Invalid
from quintet.domain.ports import ToolContext
from quintet.domain.tool import CallScope, Effect, Prepared, ToolOutcome, ToolSpec
from quintet.tools.arguments import Arguments, checked
from quintet.tools.change import Change, carry_out, prepared_change, text_at
from quintet.workspace.files import TEXT_LIMIT, on_disk
from quintet.workspace.paths import PathGuard, Place
from quintet.workspace.seen import Seen, Sight

SPEC = ToolSpec(
    "edit",
    "Change a text file of the workspace that was read before, by exact replacements, applied in order, all or none. "
    "`old` must occur exactly once, white space included; give more of the lines around it if it occurs more often, "
    "or set `all`.",
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
    # Not offered: only a protocol whose own tool of this kind knows no such rule sets it.
    unread: bool = False


class EditTool:
    def __init__(self, guard: PathGuard, seen: Seen) -> None:
        self._guard = guard
        self._seen = seen

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    async def prepare(self, arguments: dict[str, Any], scope: CallScope) -> Prepared:
        given = checked("edit", arguments, EditArguments)
        change = await on_disk(self._change, given, scope.cwd, scope.thread, scope.directories)
        return prepared_change("edit", given, scope.cwd, change)

    async def run(self, prepared: Prepared, context: ToolContext) -> ToolOutcome:
        given = checked("edit", prepared.arguments, EditArguments)
        change_now = partial(self._change, given, prepared.cwd, context.thread, context.directories)
        return await on_disk(carry_out, "edit", change_now, prepared, self._seen, context.thread)

    def _change(self, given: EditArguments, cwd: str, thread: str, added: Sequence[str]) -> Change:
        place = self._guard.writing(given.path, cwd, added=added)
        before = text_at(place)
        if before is None:
            raise Invalid(f"There is no file {place.shown}.", next_step="Use `write` to make a new file.")
        if not given.unread:
            self._check_seen(place, before, thread)
        after, replaced = before, 0
        for number, edit in enumerate(given.edits, 1):
            after, count = _replaced(after, edit, f"Edit {number} of {place.shown}")
            replaced += count
        words = f"Edited {place.shown}: {replaced} replacement{'s' if replaced > 1 else ''}."
        return Change(place, before, after, words, replaced)

    def _check_seen(self, place: Place, content: str, thread: str) -> None:
        """Nobody changes what they have not looked at: the text may say something else than they believe."""
        match self._seen.sight(thread, place.path, content.encode()):
            case Sight.NEVER:
                raise Invalid(f"{place.shown} must be read before editing: it was not read in this thread.")
            case Sight.CHANGED:
                raise Invalid(f"{place.shown} has changed since it was read in this thread. Read it again first.")


def _replaced(text: str, edit: Edit, where: str) -> tuple[str, int]:
    """The text, and how often it was changed."""
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
    try:
        growth = len(edit.new.encode()) - len(edit.old.encode())
    except UnicodeEncodeError as error:
        raise Invalid(f"{where}: the new text holds half of a surrogate pair, which no UTF-8 file can.") from error
    if len(text.encode()) + text.count(edit.old) * growth > TEXT_LIMIT:  # counted first: the result may be enormous
        raise Invalid(f"{where}: the file would grow beyond {TEXT_LIMIT // 1024 // 1024} MiB.")
    return text.replace(edit.old, edit.new), text.count(edit.old)


def _occurrences(text: str, old: str) -> int:
    """Overlapping ones count too: "aa" lies twice in "aaa", and nobody knows which was meant."""
    count, place = 0, text.find(old)
    while place >= 0:
        count += 1
        place = text.find(old, place + 1)
    return count
