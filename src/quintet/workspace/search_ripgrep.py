"""The first engine: ripgrep. Never with `--sort`, which would make it use one core; what it prints is sorted here.

It is started in the directory it searches and given no path but `.`: a path on its command line would be followed if it
were a link, and searched even if it were no text.
"""

from __future__ import annotations

import os
import re
from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from quintet.domain.errors import Invalid
from quintet.workspace import search
from quintet.workspace.globs import Glob
from quintet.workspace.paths import contains
from quintet.workspace.search import Findings, Hits, Line, Query, Site, is_utf_8, unread_note
from quintet.workspace.trusted_program import Cut, Program, Ran, run_program

OUTPUT_LIMIT = 16 * 1024 * 1024
NEUTRAL = (
    *("--no-config", "--hidden", "--no-require-git", "--no-ignore-global", "--no-ignore-messages"),
    *("--no-mmap", "--color=never", "--glob=!.git"),  # memory maps look for binary content in another way
)
_COUNTED = re.compile(rb"([^\0]+)\0([0-9]+)\n")
_MAX_CHOSEN = 1_000  # files named one by one on a command line


class _Text(msgspec.Struct, frozen=True, rename={"base64": "bytes"}):
    text: str = ""
    base64: str = ""  # instead, when it is no UTF-8

    def raw(self) -> bytes:
        return b64decode(self.base64) if self.base64 else self.text.encode()


class _Place(msgspec.Struct, frozen=True):
    start: int = 0  # in bytes


class _Data(msgspec.Struct, frozen=True):
    path: _Text
    lines: _Text = _Text()
    line_number: int | None = None
    binary_offset: int | None = None
    submatches: tuple[_Place, ...] = ()


class _Message(msgspec.Struct, frozen=True):
    data: _Data


_MESSAGES = msgspec.json.Decoder(_Message)


class Ripgrep:
    def __init__(
        self, program: str, environment: Mapping[str, str], site: Site, hidden: Sequence[str], *, parents: bool
    ) -> None:
        self._site = site
        self._environment = environment
        unseen = [_glob(os.path.relpath(path, site.path), "!") for path in hidden if contains(site.path, path)]
        only = ["--max-depth=1", _glob(site.name)] if site.name else []
        self._argv = [program, *NEUTRAL, *unseen, *only, *([] if parents else ["--no-ignore-parent"])]

    async def lines(self, query: Query) -> Findings:
        if not query.rows:
            return await self._counted(query)
        ran = await self._run(query, "--json", *_around(query))
        if ran.cut is Cut.SIZE:
            return await self._much(query)
        blocks = _blocks(ran.output)
        return self._told(query, _wanted(query, blocks), ran)

    async def files(self, glob: Glob, *, ignored: bool) -> Findings:
        ran = await self._started([*_rules(ignored=ignored), "--files", "--null", "--", "."], b"")
        if ran.cut is Cut.SIZE:
            raise Invalid(
                "There are more files than can be looked through.", next_step="Give a directory further down."
            )
        paths = [os.fsdecode(path.removeprefix(b"./")) for path in ran.output.split(b"\0")[:-1]]
        fitting = sorted((path for path in paths if glob.fits(path)), key=os.fsencode)
        return Findings([Hits(path, 0) for path in fitting], _notes(ran))

    async def _counted(self, query: Query) -> Findings:
        ran = await self._run(query, "--count-matches" if query.occurrences else "--count", "--null")
        counts = {os.fsdecode(path.removeprefix(b"./")): int(n) for path, n in _COUNTED.findall(ran.output)}
        glob = Glob(query.glob) if query.glob else None
        paths = sorted((path for path in counts if glob is None or query.wants(path, glob)), key=os.fsencode)
        return Findings([Hits(path, counts[path]) for path in paths], _notes(ran))

    async def _much(self, query: Query) -> Findings:
        """More than we want to read: count everything, then look only into the files that will be shown."""
        counted = await self._counted(query)
        chosen: list[str] = []
        left = query.rows
        for hits in counted.files[:_MAX_CHOSEN]:
            if left <= 0:
                break
            left -= hits.lines
            if is_utf_8(hits.path):
                chosen.append(_glob(hits.path))
        ran = await self._run(query, "--json", *_around(query), f"--max-count={query.rows}", *chosen)
        rows = {} if ran.cut else {path: _rows(block) for path, block in _blocks(ran.output).items()}
        files = [Hits(hits.path, hits.lines, rows.get(hits.path, ())) for hits in counted.files]
        more = ("the lines are too long to be shown; only files are told",) if ran.cut else ()
        return Findings(files, (*counted.notes, *more))

    def _told(self, query: Query, blocks: dict[str, list[bytes]], ran: Ran) -> Findings:
        files = []
        left = query.rows
        for path in sorted(blocks, key=os.fsencode):
            count = sum(line.startswith(b'{"type":"match"') for line in blocks[path])
            rows = _rows(blocks[path]) if left > 0 or query.multiline else ()
            if query.multiline:
                count = sum(row.matches for row in rows)
            files.append(Hits(path, count, rows if left > 0 else ()))
            left -= count
        return Findings(files, _notes(ran))

    async def _run(self, query: Query, *flags: str) -> Ran:
        case = "--ignore-case" if query.ignore_case else "--case-sensitive"
        endings = Glob(query.glob).endings() if query.glob and not self._site.name else ()
        kinds = [f"--type-add=wanted:{ending}" for ending in endings]
        kinds += ["--type=wanted"] if kinds else []
        kinds += _rules(ignored=query.ignored)
        kinds += ["--multiline", "--multiline-dotall"] if query.multiline else []
        # The expression comes by stdin: command lines can be read by everybody on the machine. One line is one.
        pattern = query.pattern.replace("\n", "\\n")
        ran = await self._started([case, *kinds, *flags, "--file=-", "--", "."], pattern.encode() + b"\n")
        about_files = all(line.startswith("./") for line in _complaints(ran))
        if ran.code > 1 and not ran.output and not ran.cut and not about_files:
            raise Invalid(f"The search failed: {_reason(ran.errors)}", next_step="Correct the expression.")
        return ran

    async def _started(self, flags: Iterable[str], given: bytes) -> Ran:
        argv = (*self._argv, *flags)
        limit_s = search.TIMEOUT_S
        return await run_program(Program(argv, self._site.handle, self._environment, given, limit_s, OUTPUT_LIMIT))


def _around(query: Query) -> tuple[str, str]:
    return f"--before-context={query.before}", f"--after-context={query.after}"


def _rules(*, ignored: bool) -> list[str]:
    return ["--no-ignore"] if ignored else []


def _glob(path: str, sign: str = "") -> str:
    """An option that means exactly this path from the start."""
    return f"--glob={sign}/" + re.sub(r"([\\*?\[\]{}!#,])", r"\\\1", path)


def _blocks(output: bytes) -> dict[str, list[bytes]]:
    """The messages about each file. A file is told in one piece, and counts only with its last message: one that turned
    out to hold NUL is no text, wherever the NUL is."""
    made: dict[str, list[bytes]] = {}
    block: list[bytes] = []
    for line in output.split(b"\n"):
        if line.startswith((b'{"type":"match"', b'{"type":"context"')):
            block.append(line)
        elif line.startswith(b'{"type":"end"'):
            end = _MESSAGES.decode(line).data
            if end.binary_offset is None:
                made[os.fsdecode(end.path.raw().removeprefix(b"./"))] = block
            block = []
    return made


def _wanted(query: Query, blocks: dict[str, list[bytes]]) -> dict[str, list[bytes]]:
    if not query.glob:
        return blocks
    glob = Glob(query.glob)
    return {path: block for path, block in blocks.items() if query.wants(path, glob)}


def _rows(block: list[bytes]) -> tuple[Line, ...]:
    rows = []
    for line in block:
        data = _MESSAGES.decode(line).data
        raw = data.lines.raw()
        text = raw.removesuffix(b"\n").decode("utf-8", "replace")
        before = raw[: data.submatches[0].start].decode("utf-8", "replace") if data.submatches else None
        column = 0 if before is None else len(before) + 1
        matches, first = line.startswith(b'{"type":"match"'), data.line_number or 0
        # A match over several lines is told in one piece.
        rows += [Line(first + n, matches, each, 0 if n else column) for n, each in enumerate(text.split("\n"))]
    return tuple(rows)


def _notes(ran: Ran) -> tuple[str, ...]:
    if ran.cut is Cut.TIME:
        return (f"the search was ended after {search.TIMEOUT_S:.0f} s; there may be more",)
    return unread_note([line.removeprefix("./") for line in _complaints(ran)])


def _complaints(ran: Ran) -> list[str]:
    lines = ran.errors.decode("utf-8", "replace").splitlines()
    return [line.removeprefix("rg: ") for line in lines if line]


def _reason(errors: bytes) -> str:
    words = errors.decode("utf-8", "replace").strip()
    return " ".join(words.split())[:500] or "no reason given"
