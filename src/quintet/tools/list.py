"""The tool `list`: the names in one directory."""

from __future__ import annotations

import os
from typing import Any

from quintet.domain.errors import Invalid
from quintet.domain.ports import ToolContext
from quintet.domain.tool import CallScope, Prepared, ToolOutcome, ToolSpec
from quintet.tools.arguments import Arguments, checked, digest, failed, one_line, os_words, plain
from quintet.workspace.files import on_disk
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
        place = self._guard.reading(given.path, scope.cwd)
        normal = plain(given)
        title = one_line(f"list {place.shown}")
        return Prepared(title, normal, cwd=scope.cwd, paths=(place.path,), digest=digest("list", normal, scope.cwd))

    async def run(self, prepared: Prepared, context: ToolContext) -> ToolOutcome:
        given = checked("list", prepared.arguments, ListArguments)
        try:
            place = self._guard.reading(given.path, prepared.cwd)
            names = await on_disk(self._names, place)
        except FileNotFoundError:
            return failed(f"There is no directory {given.path}.")
        except NotADirectoryError:
            return failed(f"{given.path} is not a directory; use `read`.")
        except Invalid as error:
            return failed(error.line(), error.message)
        except OSError as error:
            return failed(os_words(error, given.path))
        return _told(place, names)

    def _names(self, place: Place) -> list[str]:
        with os.scandir(place.path) as entries:
            return sorted(_shown(e) for e in entries if e.name != ".git" and not self._guard.hides(e.path))


def _shown(entry: os.DirEntry[str]) -> str:
    mark = "@" if entry.is_symlink() else "/" if entry.is_dir(follow_symlinks=False) else ""
    return one_line(entry.name, 1_000) + mark


def _told(place: Place, names: list[str]) -> ToolOutcome:
    count = f"{len(names)} entr{'y' if len(names) == 1 else 'ies'} in {place.shown}"
    if not names:
        return ToolOutcome(f"[{place.shown} is empty]", message=count)
    text = "\n".join(names[:ENTRIES])
    if len(names) > ENTRIES:
        text += f"\n[{len(names) - ENTRIES} more of {len(names)} entries are not shown]"
    return ToolOutcome(text, message=count)
