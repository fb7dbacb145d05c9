"""The tool `grep`: lines that match a regular expression, or the files that have them. How it is searched is the
business of workspace/search.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta

from quintet.domain.errors import Invalid
from quintet.domain.ports import ToolContext
from quintet.domain.tool import CallScope, Prepared, ToolOutcome, ToolSpec
from quintet.tools.arguments import Arguments, checked, digest, failed, one_line, os_words, plain
from quintet.workspace.globs import Glob
from quintet.workspace.paths import PathGuard
from quintet.workspace.search import Findings, Hits, Query, Search

MATCHES = 200
MOST_MATCHES = 1_000
LINE_LENGTH = 500
TEXT_LENGTH = 60_000  # characters of a whole result

SPEC = ToolSpec(
    "grep",
    "Search the workspace's files for a regular expression, line by line, in ripgrep's syntax (no look-around, no back"
    " references). Ignored files (.gitignore and its like), binary files and .git are left out; hidden files are not."
    " Tells path:line:text in order of paths, and how many lines match in all.",
    {
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "description": "The regular expression."},
            "path": {
                "type": "string",
                "description": "The file or directory to search; the working directory unless said.",
            },
            "glob": {"type": "string", "description": "Only files that fit, such as *.py or src/**/*.{ts,tsx}."},
            "ignore_case": {"type": "boolean", "description": "Whether upper and lower case are the same; no."},
            "context": {"type": "integer", "description": "Lines to show before and after each match, 0 to 20; 0."},
            "output": {
                "type": "string",
                "enum": ["content", "files", "count"],
                "description": "The lines, only the files' paths, or paths with the number of lines; content.",
            },
            "limit": {"type": "integer", "description": "The most matches (or files) to show, 1 to 1000; 200."},
        },
        "required": ["pattern"],
        "additionalProperties": False,
    },
)


class GrepArguments(Arguments, frozen=True):
    pattern: Annotated[str, Meta(min_length=1, max_length=2_000)]
    path: str = "."
    glob: Annotated[str, Meta(max_length=500)] = ""
    ignore_case: bool = False
    context: Annotated[int, Meta(ge=0, le=20)] = 0
    output: Literal["content", "files", "count"] = "content"
    limit: Annotated[int, Meta(ge=1, le=MOST_MATCHES)] = MATCHES


class GrepTool:
    def __init__(
        self, guard: PathGuard, environment: Mapping[str, str] | None = None, *, hidden: Sequence[str] = ()
    ) -> None:
        self._guard = guard
        self._search = Search(os.environ if environment is None else environment, tuple(hidden))

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    async def prepare(self, arguments: dict[str, Any], scope: CallScope) -> Prepared:
        given = checked("grep", arguments, GrepArguments)
        if any(c in given.pattern + given.glob for c in "\0\n"):
            raise Invalid("grep: pattern and glob are one line each, without NUL bytes.")
        Glob(given.glob)
        place = self._guard.reading(given.path, scope.cwd)
        normal = plain(given)
        title = one_line(f"search {given.pattern}" + (f" in {given.glob or place.shown}"))
        return Prepared(title, normal, cwd=scope.cwd, paths=(place.path,), digest=digest("grep", normal, scope.cwd))

    async def run(self, prepared: Prepared, context: ToolContext) -> ToolOutcome:
        given = checked("grep", prepared.arguments, GrepArguments)
        rows = given.limit if given.output == "content" else 0
        query = Query(given.pattern, given.ignore_case, given.context, given.glob, rows)
        try:
            found = await self._search.lines(self._guard.reading(given.path, prepared.cwd), query)
        except FileNotFoundError:
            return failed(f"There is no file or directory {given.path}.")
        except Invalid as error:
            return failed(error.line(), error.message)
        except OSError as error:
            return failed(os_words(error, given.path))
        return _told(given, found)


def _told(given: GrepArguments, found: Findings) -> ToolOutcome:
    if given.output == "content":
        shown, matches = _fitting(_lines(found, given.limit))
        missing, what = found.lines - matches, "match"
    else:
        shown, _ = _fitting((_file(given, hits), True) for hits in found.files[: given.limit])
        missing, what = len(found.files) - len(shown), "file"
    notes = [f"{_count(missing, f'more {what}')} {'is' if missing == 1 else 'are'} not shown"] if missing else []
    text = "\n".join([*shown, *(f"[{one_line(note, 500)}]" for note in (*notes, *found.notes))])
    message = _count(found.lines, "match")
    if found.files:
        message += f" in {_count(len(found.files), 'file')}"
    return ToolOutcome(text or "No match.", message=message, display=({"type": "brief", "text": message},))


def _file(given: GrepArguments, hits: Hits) -> str:
    path = one_line(hits.path, 4_000)
    return f"{path}:{hits.lines}" if given.output == "count" else path


def _lines(found: Findings, limit: int) -> Iterator[tuple[str, bool]]:
    """Each line as shown and whether it matches; context and the gaps in it look as grep's do."""
    matches = 0
    gaps = any(not row.matches for hits in found.files for row in hits.rows)
    first = True
    for hits in found.files:
        path = one_line(hits.path, 4_000) if hits.rows else ""
        before = 0
        for row in hits.rows:
            if matches + row.matches > limit:
                return
            matches += row.matches
            if gaps and not first and row.number != before + 1:
                yield "--", False
            first, before = False, row.number
            sign = ":" if row.matches else "-"
            yield f"{path}{sign}{row.number}{sign}{_cut(row.text.rstrip(chr(13)))}", row.matches


def _fitting(lines: Iterator[tuple[str, bool]]) -> tuple[list[str], int]:
    """As many as a result may hold, and how many of them are matches."""
    shown: list[str] = []
    matches = size = 0
    for line, counts in lines:
        size += len(line) + 1
        if size > TEXT_LENGTH:
            break
        shown.append(line)
        matches += counts
    return shown, matches


def _cut(text: str) -> str:
    return text if len(text) <= LINE_LENGTH else text[:LINE_LENGTH] + "… [cut]"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "es" if noun.endswith("ch") else "s")
