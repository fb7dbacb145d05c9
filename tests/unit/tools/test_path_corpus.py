"""Every file tool against every path of the corpus: what is refused, what lands where, and that the world stays."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from quintet.domain.errors import Invalid
from quintet.domain.item import ResultStatus
from quintet.domain.tool import CallScope, Prepared, ToolOutcome
from quintet.tools.edit import EditTool
from quintet.tools.list import ListTool
from quintet.tools.read import ReadTool
from quintet.tools.write import WriteTool
from quintet.workspace.paths import PathGuard
from quintet.workspace.seen import Seen
from tests.fakes.tool_context import FakeToolContext
from tests.unit.workspace.corpus_paths import CANARY, CASES, Case, build

WRITTEN = "written by a tool"


class Bench:
    """The four tools on one tree. The ledger already knows every file: nothing but the guard stands in the way."""

    def __init__(self, ws: Path, cwd: str) -> None:
        self.ws = ws
        self.guard, seen = PathGuard(str(ws / "home")), Seen()
        self.context = FakeToolContext(str(ws / cwd))
        self.scope = CallScope(self.context.cwd, self.context.thread)
        for path, content in snapshot(ws.parent).items():
            if content is not None:
                seen.note(self.context.thread, path, content)
        self._tools: dict[str, Any] = {
            "read": ReadTool(self.guard, seen),
            "list": ListTool(self.guard),
            "edit": EditTool(self.guard, seen),
            "write": WriteTool(self.guard, seen),
        }

    async def use(self, tool: str, path: str) -> ToolOutcome | None:
        """None: refused while preparing. Then it is run all the same, as if the preparing had been deceived."""
        arguments: dict[str, Any] = {"path": path}
        if tool == "write":
            arguments["content"] = WRITTEN
        if tool == "edit":
            arguments["edits"] = [{"old": "plain", "new": "plainer"}, {"old": "plainer", "new": "plain."}]
        try:
            prepared = await self._tools[tool].prepare(arguments, self.scope)
        except Invalid:
            deceived = Prepared(tool, arguments, cwd=self.scope.cwd)
            done = await self._tools[tool].run(deceived, self.context)
            assert done.status is ResultStatus.ERROR
            assert CANARY not in done.text
            return None
        return await self._tools[tool].run(prepared, self.context)


def snapshot(directory: Path) -> dict[str, bytes | None]:
    """Everything in a directory, links not followed: content of files, None for the rest."""
    found: dict[str, bytes | None] = {}
    for top, directories, files in os.walk(directory):
        for name in (*directories, *files):
            path = Path(top, name)
            found[str(path)] = path.read_bytes() if path.is_file() and not path.is_symlink() else None
    return found


@contextmanager
def filled_in(ws: Path, path: str) -> Iterator[str]:
    """The case's path with what only this run knows, while its descriptors are open."""
    base = ws.parent
    handles = {
        "secret_fd": os.open(base / "out/secret.txt", os.O_RDONLY),
        "out_fd": os.open(base / "out", os.O_RDONLY),
        "ws_fd": os.open(ws, os.O_RDONLY),
    }
    try:
        known = {"ws": ws, "base": base, "pid": os.getpid(), **handles}
        yield path.format(**known) if any(f"{{{name}}}" in path for name in known) else path
    finally:
        for handle in handles.values():
            os.close(handle)


REFUSED = [case for case in CASES if case.judged != "inside"]
INSIDE = [case for case in CASES if case.judged == "inside"]


def name_of(case: Case) -> str:
    return ascii(case.path)[1:-1][:60]


@pytest.fixture(scope="module")
def unchanging(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One tree for all refused paths: refusing leaves it as it is, or the test fails."""
    return build(tmp_path_factory.mktemp("corpus"))


@pytest.mark.req("security:S16")
@pytest.mark.parametrize("case", REFUSED, ids=name_of)
async def test_a_path_that_is_nobody_s_business_is_refused_by_every_file_tool(unchanging: Path, case: Case) -> None:
    bench = Bench(unchanging, case.cwd)
    before = snapshot(unchanging.parent)
    with filled_in(unchanging, case.path) as path:
        for tool in ("read", "list", "edit", "write"):
            done = await bench.use(tool, path)
            looks = tool in ("read", "list")
            if case.judged == "stuck":
                assert done is None or done.status is ResultStatus.ERROR
            else:
                assert (done is None) == (not looks or case.judged != "protected"), tool
            assert done is None or CANARY not in done.text
    assert snapshot(unchanging.parent) == before


@pytest.mark.req("security:S16")
@pytest.mark.parametrize("case", INSIDE, ids=name_of)
async def test_a_path_that_stays_inside_lands_where_it_says_and_nowhere_else(tmp_path: Path, case: Case) -> None:
    ws = build(tmp_path)
    bench = Bench(ws, case.cwd)
    with filled_in(ws, case.path) as path:
        for tool in ("read", "list"):
            done = await bench.use(tool, path)
            assert done is not None
            assert CANARY not in done.text
        await lands_inside(bench, case, path)


async def lands_inside(bench: Bench, case: Case, path: str) -> None:
    target = bench.ws / case.lands
    assert bench.guard.reading(path, bench.scope.cwd).path == os.path.normpath(target)
    was_file, was_directory = target.is_file(), target.is_dir()
    around = {name: data for name, data in snapshot(bench.ws.parent).items() if name != str(target)}
    edited = await bench.use("edit", path)
    assert (edited is not None) == was_file
    if was_file:
        assert target.read_text() == "plain."
    written = await bench.use("write", path)
    assert (written is None) == was_directory
    if not was_directory:
        assert target.read_text() == WRITTEN
    # Directories may have been made on the way; nothing else is new or changed, also not a hard link's other name.
    after = {name: data for name, data in snapshot(bench.ws.parent).items() if name != str(target)}
    assert {name: data for name, data in after.items() if name in around} == around
    assert all(str(target).startswith(name + os.sep) for name in after.keys() - around.keys())


@pytest.mark.req("security:S16")
def test_the_corpus_is_as_large_as_it_says() -> None:
    assert len({(case.path, case.cwd) for case in CASES}) == len(CASES) >= 300
    assert {case.judged for case in CASES} == {"outside", "hidden", "wrong", "protected", "inside", "stuck"}
