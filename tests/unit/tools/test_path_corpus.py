"""Every file tool, and every attachment, against every path of the corpus: what is refused, what lands where, and that
the world stays.

The tools are run in a process that can write nothing but its own directory: many of these paths lead to the machine's
own files, and a guard that is broken must fail the tests, not overwrite them.
"""

from __future__ import annotations

import functools
import os
import tempfile
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
from quintet.workspace.attachments import WorkspaceAttachments
from quintet.workspace.paths import PathGuard
from quintet.workspace.seen import Seen
from tests.fakes.tool_context import FakeToolContext
from tests.fakes.walled import Walled, walled
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
def elsewhere() -> Iterator[Walled]:
    with walled() as process:
        yield process


@functools.cache
def unchanging(place: Path) -> Path:
    """One tree for all refused paths: refusing leaves it as it is, or the test fails."""
    return build(Path(tempfile.mkdtemp(dir=place)))


@pytest.mark.req("security:S16")
@pytest.mark.parametrize("number", range(len(REFUSED)), ids=lambda number: name_of(REFUSED[number]))
def test_a_path_that_is_nobody_s_business_is_refused_everywhere(elsewhere: Walled, number: int) -> None:
    elsewhere.call(is_refused, number)


async def is_refused(place: Path, number: int) -> None:
    case, ws = REFUSED[number], unchanging(place)
    bench = Bench(ws, case.cwd)
    before = snapshot(ws.parent)
    with filled_in(ws, case.path) as path:
        for tool in ("read", "list", "edit", "write"):
            done = await bench.use(tool, path)
            looks = tool in ("read", "list")
            if case.judged == "stuck":
                assert done is None or done.status is ResultStatus.ERROR
            else:
                assert (done is None) == (not looks or case.judged != "protected"), tool
            assert done is None or CANARY not in done.text
        await is_attached_by_nobody(bench, case, path)
    assert snapshot(ws.parent) == before


async def is_attached_by_nobody(bench: Bench, case: Case, path: str) -> None:
    """With the workspace alone and with a root; what is protected may be read, as with the tool for that."""
    for root in ("", str(bench.ws)):
        try:
            found = await WorkspaceAttachments(bench.guard).read(path, bench.scope.cwd, root)
        except Invalid:
            continue
        assert case.judged == "protected", root
        assert CANARY not in found.text


@pytest.mark.req("security:S16")
@pytest.mark.parametrize("number", range(len(INSIDE)), ids=lambda number: name_of(INSIDE[number]))
def test_a_path_that_stays_inside_lands_where_it_says_and_nowhere_else(elsewhere: Walled, number: int) -> None:
    elsewhere.call(stays_inside, number)


async def stays_inside(place: Path, number: int) -> None:
    case, ws = INSIDE[number], build(Path(tempfile.mkdtemp(dir=place)))
    bench = Bench(ws, case.cwd)
    with filled_in(ws, case.path) as path:
        for tool in ("read", "list"):
            done = await bench.use(tool, path)
            assert done is not None
            assert CANARY not in done.text
        await is_attached(bench, case, path)
        await lands_inside(bench, case, path)


async def is_attached(bench: Bench, case: Case, path: str) -> None:
    """A file's text comes from where the path says; whatever else stands there is refused."""
    for root in ("", str(bench.ws)):
        reading = WorkspaceAttachments(bench.guard).read(path, bench.scope.cwd, root)
        if not (bench.ws / case.lands).is_file():
            with pytest.raises(Invalid):
                await reading
        else:
            assert (await reading).text == (bench.ws / case.lands).read_text()


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


def test_the_process_that_tries_these_paths_can_write_nothing_but_its_own_directory(
    elsewhere: Walled, tmp_path: Path
) -> None:
    (tmp_path / "mine").write_text("mine")
    os.chmod(tmp_path / "mine", 0o666)
    elsewhere.call(writes_nothing, [str(tmp_path / "mine"), str(tmp_path / "new"), "/etc/passwd", "/etc/quintet-test"])
    assert (tmp_path / "mine").read_text() == "mine"
    assert os.listdir(tmp_path) == ["mine"]


def writes_nothing(place: Path, paths: list[str]) -> None:
    """Opened to be written, never written: also where the wall is broken nothing happens to them."""
    for path in paths:
        with pytest.raises(OSError, match=r"Read-only file system|Permission denied"):
            os.close(os.open(path, os.O_WRONLY | (0 if os.path.exists(path) else os.O_CREAT | os.O_EXCL)))
    (place / "probe").write_text("here it may")


def test_what_fails_there_fails_here(elsewhere: Walled) -> None:
    with pytest.raises(pytest.fail.Exception, match="no good"):
        elsewhere.call(fails)


def fails(place: Path) -> None:
    raise AssertionError("no good")
