"""The tool `list`: the names in one directory."""

from __future__ import annotations

import os
from typing import Any

from quintet.domain.ports import ToolContext
from quintet.domain.tool import CallScope, Prepared, ToolOutcome, ToolSpec
from quintet.tools.arguments import Arguments, checked, failed, one_line
from quintet.tools.looking import brief, look, prepared_look
from quintet.workspace.files import open_directory
from quintet.workspace.paths import PathGuard, Place

ENTRIES = 500

SPEC = ToolSpec(
    "list",
    "List a directory of the workspace, sorted by name; directories end with /, links with @.",
    {
        "type": "object",
        "properties": {"path": {"type": "string", "description": "The directory; the working directory unless said."}},
        "additionalProperties": False,
    },
)


class ListArguments(Arguments, frozen=True):
    path: str = "."


class ListTool:
    def __init__(self, guard: PathGuard) -> None:
        self._guard = guard

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    async def prepare(self, arguments: dict[str, Any], scope: CallScope) -> Prepared:
        given = checked("list", arguments, ListArguments)
        return await prepared_look("list", given, given.path, scope, self._guard)

    async def run(self, prepared: Prepared, context: ToolContext) -> ToolOutcome:
        given = checked("list", prepared.arguments, ListArguments)
        return await look(given.path, prepared.cwd, self._guard, self._list, context.directories)

    def _list(self, place: Place) -> ToolOutcome:
        try:
            directory = open_directory(place)
        except FileNotFoundError:
            return failed(f"There is no directory {place.shown}.")
        except NotADirectoryError:
            return failed(f"{place.shown} is not a directory; use `read`.")
        try:
            with os.scandir(directory) as entries:
                names = sorted(_shown(entry) for entry in entries if not self._left_out(entry, place))
        finally:
            os.close(directory)
        return _told(place, names)

    def _left_out(self, entry: os.DirEntry[str], place: Place) -> bool:
        if entry.name == ".git":
            return True
        return entry.is_dir(follow_symlinks=False) and self._guard.hides(os.path.join(place.path, entry.name))


def _shown(entry: os.DirEntry[str]) -> str:
    mark = "@" if entry.is_symlink() else "/" if entry.is_dir(follow_symlinks=False) else ""
    return one_line(entry.name, 1_000) + mark


def _told(place: Place, names: list[str]) -> ToolOutcome:
    count = f"{len(names)} entr{'y' if len(names) == 1 else 'ies'} in {place.shown}"
    text = "\n".join(names[:ENTRIES]) or f"[{place.shown} is empty]"
    if len(names) > ENTRIES:
        text += f"\n[{len(names) - ENTRIES} more of {len(names)} entries are not shown]"
    return ToolOutcome(text, message=count, display=brief(count))
