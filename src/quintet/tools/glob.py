"""The tool `glob`: files, and directories if wanted, whose path fits a glob, by name or newest first."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta

from quintet.domain.errors import Invalid
from quintet.domain.ports import ToolContext
from quintet.domain.tool import CallScope, Prepared, ToolOutcome, ToolSpec
from quintet.tools.arguments import Arguments, checked, counted, digest, failed, one_line, os_words, plain
from quintet.workspace.files import on_disk
from quintet.workspace.globs import Glob
from quintet.workspace.paths import PathGuard
from quintet.workspace.search import Findings, Search

FILES = 500
MOST_FILES = 2_000
TEXT_LENGTH = 60_000  # characters of a whole result
NOTHING = "No file fits."

SPEC = ToolSpec(
    "glob",
    "Find files of the workspace by a glob. A pattern without a slash fits a name anywhere; one with a slash fits the"
    " whole path from the directory that is searched, ** standing for any directories. Ignored files (.gitignore and"
    " its like) and .git are left out; hidden files are not.",
    {
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "description": "Such as **/*.py, src/*.{ts,tsx} or Makefile."},
            "path": {"type": "string", "description": "The directory to search; the working directory unless said."},
            "sort": {
                "type": "string",
                "enum": ["name", "mtime"],
                "description": "By path, or last changed first; name.",
            },
            "limit": {"type": "integer", "description": "The most files to show, 1 to 2000; 500."},
            "directories": {"type": "boolean", "description": "Find directories, too; they end in a slash."},
            "ignored": {"type": "boolean", "description": "Find ignored files, too."},
        },
        "required": ["pattern"],
        "additionalProperties": False,
    },
)


class GlobArguments(Arguments, frozen=True):
    pattern: Annotated[str, Meta(min_length=1, max_length=500)]
    path: str = "."
    sort: Literal["name", "mtime"] = "name"
    limit: Annotated[int, Meta(ge=1, le=MOST_FILES)] = FILES
    directories: bool = False
    ignored: bool = False


class GlobTool:
    def __init__(
        self, guard: PathGuard, environment: Mapping[str, str] | None = None, *, hidden: Sequence[str] = ()
    ) -> None:
        self._guard = guard
        self._search = Search(os.environ if environment is None else environment, tuple(hidden))

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    async def prepare(self, arguments: dict[str, Any], scope: CallScope) -> Prepared:
        given = checked("glob", arguments, GlobArguments)
        if any(c in given.pattern for c in "\0\n"):
            raise Invalid("glob: the pattern is one line without NUL bytes.")
        if given.pattern.startswith("/") or ".." in given.pattern.split("/"):
            raise Invalid(
                "glob: the pattern is read from the directory that is searched.",
                next_step="Name another directory in `path`.",
            )
        Glob(given.pattern)
        place = self._guard.reading(given.path, scope.cwd, added=scope.directories)
        normal = plain(given)
        title = one_line(f"find {given.pattern} in {place.shown}")
        return Prepared(title, normal, cwd=scope.cwd, paths=(place.path,), digest=digest("glob", normal, scope.cwd))

    async def run(self, prepared: Prepared, context: ToolContext) -> ToolOutcome:
        given = checked("glob", prepared.arguments, GlobArguments)
        try:
            place = self._guard.reading(given.path, prepared.cwd, added=context.directories)
            found = await self._search.files(
                place, Glob(given.pattern), directories=given.directories, ignored=given.ignored
            )
            paths = [hits.path for hits in found.files]
            if given.sort == "mtime":
                paths = await on_disk(newest_first, paths, prepared.cwd)
        except FileNotFoundError:
            return failed(f"There is no directory {given.path}.")
        except Invalid as error:
            return failed(error.line(), error.message)
        except OSError as error:
            return failed(os_words(error, given.path))
        return _told(given, found, paths)


def newest_first(paths: list[str], cwd: str) -> list[str]:
    def changed(path: str) -> int:
        try:
            return -os.lstat(os.path.join(cwd, path)).st_mtime_ns
        except OSError:
            return 0  # gone since it was found: last

    return sorted(paths, key=changed)


def _told(given: GlobArguments, found: Findings, paths: list[str]) -> ToolOutcome:
    shown: list[str] = []
    size = 0
    for path in paths[: given.limit]:
        shown.append(one_line(path, 4_000))
        size += len(shown[-1]) + 1
        if size > TEXT_LENGTH:
            shown.pop()
            break
    missing = len(paths) - len(shown)
    what = "match" if given.directories else "file"
    notes = [f"{missing:,} more of {counted(len(paths), what)} are not shown"] if missing else []
    text = "\n".join([*shown, *(f"[{one_line(note, 500)}]" for note in (*notes, *found.notes))])
    message = counted(len(paths), what)
    facts = {"found": len(paths), "shown": len(shown)}
    return ToolOutcome(text or NOTHING, message=message, display=({"type": "brief", "text": message},), facts=facts)
