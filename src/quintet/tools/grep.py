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
from quintet.tools.arguments import Arguments, checked, counted, digest, failed, one_line, os_words, plain
from quintet.tools.glob import newest_first
from quintet.workspace.files import on_disk
from quintet.workspace.globs import Glob
from quintet.workspace.paths import PathGuard
from quintet.workspace.search import Findings, Hits, Query, Search

MATCHES = 200
MOST_MATCHES = 1_000
MOST_SKIPPED = 1_000_000
LINE_LENGTH = 500
TEXT_LENGTH = 60_000  # characters of a whole result
NOTHING = "No match."

SPEC = ToolSpec(
    "grep",
    "Search the workspace's files for a regular expression, line by line unless you say otherwise, in ripgrep's"
    " syntax (no look-around, no back references). Ignored files (.gitignore and its like), binary files and .git are"
    " left out; hidden files are not."
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
            "before": {"type": "integer", "description": "Lines to show before each match instead."},
            "after": {"type": "integer", "description": "Lines to show after each match instead."},
            "output": {
                "type": "string",
                "enum": ["content", "files", "count", "occurrences"],
                "description": "The lines, only the files' paths, or paths with the number of lines or of matches;"
                " content.",
            },
            "limit": {"type": "integer", "description": "The most matches (or files) to show, 1 to 1000; 200."},
            "skip": {"type": "integer", "description": "Matches (or files) to leave out at the beginning; 0."},
            "sort": {
                "type": "string",
                "enum": ["name", "mtime"],
                "description": "Of files: by path, or last changed first; name.",
            },
            "numbers": {"type": "boolean", "description": "Whether lines are numbered; yes."},
            "multiline": {
                "type": "boolean",
                "description": "The expression may go over several lines, . standing for their ends, too; no.",
            },
            "ignored": {"type": "boolean", "description": "Search ignored files, too; no."},
        },
        "required": ["pattern"],
        "additionalProperties": False,
    },
)


Around = Annotated[int, Meta(ge=0, le=20)]


class GrepArguments(Arguments, frozen=True):
    pattern: Annotated[str, Meta(min_length=1, max_length=2_000)]
    path: str = "."
    glob: Annotated[str, Meta(max_length=500)] = ""
    ignore_case: bool = False
    context: Around = 0
    before: Around | None = None
    after: Around | None = None
    output: Literal["content", "files", "count", "occurrences"] = "content"
    limit: Annotated[int, Meta(ge=1, le=MOST_MATCHES)] = MATCHES
    skip: Annotated[int, Meta(ge=0, le=MOST_SKIPPED)] = 0
    sort: Literal["name", "mtime"] = "name"
    numbers: bool = True
    multiline: bool = False
    ignored: bool = False


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
        if "\0" in given.pattern or any(c in given.glob for c in "\0\n"):
            raise Invalid("grep: pattern and glob hold no NUL bytes, and the glob is one line.")
        if "\n" in given.pattern and not given.multiline:
            raise Invalid("grep: the pattern is one line.", next_step="Set `multiline` for one that goes over several.")
        Glob(given.glob)
        place = self._guard.reading(given.path, scope.cwd, added=scope.directories)
        normal = plain(given)
        title = one_line(f"search {given.pattern}" + (f" in {given.glob or place.shown}"))
        return Prepared(title, normal, cwd=scope.cwd, paths=(place.path,), digest=digest("grep", normal, scope.cwd))

    async def run(self, prepared: Prepared, context: ToolContext) -> ToolOutcome:
        given = checked("grep", prepared.arguments, GrepArguments)
        try:
            found = await self._search.lines(
                self._guard.reading(given.path, prepared.cwd, added=context.directories), _query(given)
            )
            if given.sort == "mtime" and given.output != "content":
                found = await on_disk(_newest_first, found, prepared.cwd)
        except FileNotFoundError:
            return failed(f"There is no file or directory {given.path}.")
        except Invalid as error:
            return failed(error.line(), error.message)
        except OSError as error:
            return failed(os_words(error, given.path))
        return _told(given, found)


def _query(given: GrepArguments) -> Query:
    return Query(
        given.pattern,
        given.ignore_case,
        given.context if given.before is None else given.before,
        given.context if given.after is None else given.after,
        given.glob,
        given.limit + given.skip if given.output == "content" else 0,
        given.multiline,
        given.ignored,
        given.output == "occurrences",
    )


def _newest_first(found: Findings, cwd: str) -> Findings:
    order = {path: n for n, path in enumerate(newest_first([hits.path for hits in found.files], cwd))}
    return Findings(sorted(found.files, key=lambda hits: order[hits.path]), found.notes)


def _told(given: GrepArguments, found: Findings) -> ToolOutcome:
    if given.output == "content":
        shown, told = _fitting(_lines(given, found))
        total, what = found.lines, "match"
    else:
        shown, told = _fitting((_file(given, hits), True) for hits in found.files[given.skip :][: given.limit])
        total, what = len(found.files), "file"
    missing = max(0, total - given.skip - told)
    notes = [f"{counted(missing, f'more {what}')} {'is' if missing == 1 else 'are'} not shown"] if missing else []
    if missing and told:
        notes[0] += f"; go on with skip={given.skip + told}"
    text = "\n".join([*shown, *(f"[{one_line(note, 500)}]" for note in (*notes, *found.notes))])
    message = counted(found.lines, "match")
    if found.files:
        message += f" in {counted(len(found.files), 'file')}"
    facts = {"matches": found.lines, "files": len(found.files), "told": told, "total": total}
    return ToolOutcome(text or NOTHING, message=message, display=({"type": "brief", "text": message},), facts=facts)


def _file(given: GrepArguments, hits: Hits) -> str:
    path = one_line(hits.path, 4_000)
    return path if given.output == "files" else f"{path}:{hits.lines}"


def _lines(given: GrepArguments, found: Findings) -> Iterator[tuple[str, bool]]:
    """Each line as shown and whether it matches; context and the gaps in it look as grep's do."""
    matches = 0
    gaps = any(not row.matches for hits in found.files for row in hits.rows)
    first = True
    for hits in found.files:
        path = one_line(hits.path, 4_000) if hits.rows else ""
        before = 0
        for row in hits.rows:
            if matches + row.matches > given.skip + given.limit:
                return
            matches += row.matches
            if matches <= given.skip and (row.matches or matches < given.skip):
                continue
            if gaps and not first and row.number != before + 1:
                yield "--", False
            first, before = False, row.number
            sign = ":" if row.matches else "-"
            number = f"{row.number}{sign}" if given.numbers else ""
            yield f"{path}{sign}{number}{_cut(row.text.rstrip(chr(13)))}", row.matches


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
