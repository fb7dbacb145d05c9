"""The second engine, where there is no ripgrep: starts search_child.py as a program and reads its report. The
expression never runs in this process.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence

import msgspec

from quintet.domain.errors import Invalid
from quintet.workspace import search
from quintet.workspace.child import died_of
from quintet.workspace.files import on_disk
from quintet.workspace.globs import Glob
from quintet.workspace.ignore import Ignored
from quintet.workspace.paths import contains
from quintet.workspace.search import Findings, Hits, Line, Query, Site, unread_note
from quintet.workspace.search_child import Order, Report
from quintet.workspace.trusted_program import Cut, Program, run_program

OUTPUT_LIMIT = 16 * 1024 * 1024
# With -I neither the directory it starts in nor the environment has a say in what is imported.
_SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_START = "import sys; sys.path.append(sys.argv[1]); from quintet.workspace.search_child import main; main()"


class Python:
    def __init__(self, environment: Mapping[str, str], site: Site, hidden: Sequence[str]) -> None:
        self._environment = environment
        self._site = site
        self._hidden = tuple(hidden)

    async def lines(self, query: Query) -> Findings:
        if query.multiline:
            raise Invalid(
                "Without ripgrep lines are searched one by one.",
                next_step="Search for one of the lines, or install ripgrep.",
            )
        order = Order(
            root=os.fsencode(self._site.root),
            start=os.fsencode(self._site.start),
            pattern=query.pattern,
            name=os.fsencode(self._site.name),
            ignore_case=query.ignore_case,
            before=query.before,
            after=query.after,
            ignored=query.ignored,
            occurrences=query.occurrences,
            glob=query.glob,
            prefix=os.fsencode(query.prefix),
            rows=query.rows,
            hidden=tuple(map(os.fsencode, self._hidden)),
            cpu_s=int(search.TIMEOUT_S) + 2,
        )
        report = await self._reported(order)
        if report.unsupported:
            raise Invalid(
                f"The search failed: without ripgrep this expression cannot be used: {report.unsupported}.",
                next_step="Write it more simply, or install ripgrep.",
            )
        files = [
            Hits(
                os.fsdecode(file.path),
                file.lines,
                tuple(Line(r.number, r.matches, r.text.decode("utf-8", "replace"), r.column) for r in file.rows),
            )
            for file in report.files
        ]
        return Findings(files, unread_note(report.unread))

    async def files(self, glob: Glob, *, ignored: bool) -> Findings:
        return await self._walked(glob, ignored=ignored, directories=False)

    async def entries(self, glob: Glob, *, ignored: bool) -> Findings:
        """Files and directories."""
        return await self._walked(glob, ignored=ignored, directories=True)

    async def _walked(self, glob: Glob, *, ignored: bool, directories: bool) -> Findings:
        """In a thread of this process: a glob cannot run away, but a tree can be larger than anybody waits for."""
        tree = Ignored(
            self._site.root, lambda path: any(contains(place, path) for place in self._hidden), rules=not ignored
        )
        cut = len(self._site.start) + 1 if self._site.start else 0
        ends = time.monotonic() + search.TIMEOUT_S
        late: list[str] = []

        def walked() -> list[str]:
            made: list[str] = []
            for found in tree.walk(self._site.start, lambda path: glob.leads(path[cut:])):
                if found.entry.is_file(follow_symlinks=False) and glob.fits(found.path[cut:]):
                    made.append(found.path[cut:])
                if time.monotonic() > ends:
                    late.append(f"the search was ended after {search.TIMEOUT_S:.0f} s; there may be more")
                    break
            if directories:
                seen = (path[cut:] for path in (*tree.entered, *tree.passed))
                made += [f"{path}/" for path in seen if glob.fits(path)]
            return sorted(made, key=os.fsencode)

        paths = await on_disk(walked)
        return Findings([Hits(path, 0) for path in paths], (*late, *unread_note(tree.unread)))

    async def _reported(self, order: Order) -> Report:
        argv = (sys.executable, "-I", "-B", "-c", _START, _SOURCE)
        given = msgspec.msgpack.encode(order)
        limit_s = search.TIMEOUT_S
        ran = await run_program(Program(argv, self._site.handle, self._environment, given, limit_s, OUTPUT_LIMIT))
        if ran.cut is Cut.TIME:
            raise Invalid(
                f"The search was ended after {limit_s:.0f} s and found nothing it could tell.",
                next_step="Use a simpler expression or fewer files, or install ripgrep.",
            )
        if ran.cut or ran.code:
            words = ran.errors.decode("utf-8", "replace").strip().rpartition("\n")[2]
            why = "it found too much" if ran.cut else words or died_of(ran.code)
            raise Invalid(f"The search failed: {why[:500]}.", next_step="Narrow the search, or install ripgrep.")
        return msgspec.msgpack.decode(ran.output, type=Report)
