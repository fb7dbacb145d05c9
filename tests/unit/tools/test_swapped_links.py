"""A neighbour swaps a name in the workspace for a link that leads out, over and over, while tools use it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from quintet.domain.errors import Drifted, Invalid
from quintet.domain.item import ResultStatus
from quintet.workspace.attachments import WorkspaceAttachments
from quintet.workspace.exports import write_export
from quintet.workspace.files import open_directory, open_regular, read_bytes, replace_bytes
from quintet.workspace.paths import PathGuard, Place
from tests.fakes.memory_disk import in_memory
from tests.unit.workspace.swapper import exchange

SWAPS = 1_000
MOST = 50_000  # rounds until both sides were met often enough; far more than it ever takes
SECRET = "canary-outside"
MARK = "canary-name"


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Thousands of writes need not wait for a disk."""
    with in_memory() as place:
        yield place


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    made = tmp_path / "outside"
    made.mkdir()
    (made / "f").write_text(SECRET)
    (made / MARK).write_text(SECRET)
    return made


@pytest.fixture
def inside(workspace: Path) -> Path:
    (workspace / "d").mkdir()
    (workspace / "d/f").write_text("a")
    return workspace


def world(outside: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in outside.iterdir()}


@contextmanager
def swapping(name: Path, target: Path) -> Iterator[None]:
    """The name is now itself, now a link to the target, for as long as this lasts."""
    spare = name.with_name(name.name + ".spare")
    spare.symlink_to(target)
    try:
        exchange(str(name), str(spare))
        exchange(str(name), str(spare))
    except OSError as error:
        pytest.skip(f"this file system cannot exchange two names: {error}")
    argv = [sys.executable, "-m", "tests.unit.workspace.swapper", str(name), str(spare), str(target)]
    root = Path(__file__).parents[3]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root) as child:
        assert child.stdin
        assert child.stdout
        try:
            assert child.stdout.readline() == b"ready\n"
            yield
            assert child.poll() is None, "the neighbour gave up"
        finally:
            child.stdin.close()
            child.wait(10)


def swapped(inside: Path, outside: Path, what: str) -> tuple[Path, Path]:
    return (inside / "d", outside) if what == "directory" else (inside / "d/f", outside / "f")


async def one_round(use, tool: str, number: int) -> bool:
    """Use the tool once; whether it did its work."""
    try:
        match tool:
            case "read":
                done = await use("read", path="d/f")
            case "list":
                done = await use("list", path="d")
            case "write":
                done = await use("write", path="d/f", content=f"a{number}")
            case _:
                seen = await use("read", path="d/f")
                assert SECRET not in seen.text
                done = await use("edit", path="d/f", edits=[{"old": "a", "new": "ba"}])
    except (Invalid, Drifted):
        return False
    assert SECRET not in done.text
    assert MARK not in done.text
    assert SECRET not in done.diff
    return done.status is ResultStatus.OK


def enough(met: Counter[bool]) -> bool:
    return met.total() >= SWAPS and min(met[True], met[False]) >= 10


@pytest.mark.req("security:S17")
@pytest.mark.parametrize(
    ("tool", "what"),
    [
        ("read", "directory"),
        ("list", "directory"),
        ("write", "directory"),
        ("edit", "directory"),
        ("read", "file"),
        ("write", "file"),
        ("edit", "file"),
    ],
)
async def test_no_tool_is_led_out_by_a_link_that_comes_and_goes(use, inside, outside, tool, what):
    before, met = world(outside), Counter[bool]()
    with swapping(*swapped(inside, outside, what)):
        for number in range(MOST):
            met[await one_round(use, tool, number)] += 1
            if enough(met):
                break
    assert enough(met), f"the link was not swapped while the tool ran: {met}"
    assert world(outside) == before


@pytest.mark.req("security:S17")
@pytest.mark.parametrize("what", ["directory", "file"])
async def test_no_attachment_is_led_out_by_a_link_that_comes_and_goes(inside: Path, outside: Path, what: str) -> None:
    files, met = WorkspaceAttachments(PathGuard()), Counter[bool]()
    with swapping(*swapped(inside, outside, what)):
        for _ in range(MOST):
            try:
                assert (await files.read("d/f", str(inside))).text == "a"
                met[True] += 1
            except Invalid:
                met[False] += 1
            if enough(met):
                break
    assert enough(met), f"the link was not swapped while it was read: {met}"


def opened(place: Place) -> None:
    handle = open_regular(place)
    with os.fdopen(handle) as file:
        assert SECRET not in file.read()


def listed(place: Place) -> None:
    handle = open_directory(place)
    try:
        assert MARK not in os.listdir(handle)
    finally:
        os.close(handle)


def taken(place: Place) -> None:
    assert SECRET.encode() not in (read_bytes(place) or b"")


def replaced(place: Place) -> None:
    replace_bytes(place, b"a")


@pytest.mark.req("security:S17")
@pytest.mark.parametrize("what", ["directory", "file"])
@pytest.mark.parametrize("contained", [True, False])
def test_no_export_is_led_out_by_a_link_that_comes_and_goes(
    inside: Path, outside: Path, what: str, contained: bool
) -> None:
    """A person may write where a directory's link leads; where a link leads that has the file's name nothing goes."""
    before, met = world(outside), Counter[bool]()
    root = str(inside) if contained else ""
    with swapping(*swapped(inside, outside, what)):
        for number in range(MOST):
            try:
                write_export(PathGuard(), "d/f", [f"a{number}".encode()], cwd=str(inside), root=root, force=True)
                met[True] += 1
            except Invalid:
                met[False] += 1
            if enough(met) or (what == "directory" and not contained and met.total() >= SWAPS):
                break
    if contained or what == "file":
        assert enough(met), f"the link was not swapped while it was written: {met}"
        assert world(outside) == before
    else:
        assert {name for name in world(outside) if name != "f"} == {MARK}, "nothing is left beside it"


@pytest.mark.req("security:S17")
@pytest.mark.parametrize(
    ("act", "path", "what"),
    [
        (opened, "d/f", "directory"),
        (opened, "d/f", "file"),
        (taken, "d/f", "directory"),
        (listed, "d", "directory"),
        (replaced, "d/f", "directory"),
        (replaced, "d/new/f", "directory"),
        (replaced, "d/f", "file"),
    ],
)
def test_a_place_judged_before_the_link_came_is_not_opened_through_it(
    inside: Path, outside: Path, act: Callable[[Place], None], path: str, what: str
) -> None:
    place = PathGuard().reading(path, str(inside))
    before, met = world(outside), Counter[bool]()
    with swapping(*swapped(inside, outside, what)):
        for _ in range(MOST):
            try:
                act(place)
                met[True] += 1
            except (OSError, Invalid):
                met[False] += 1
            if enough(met):
                break
    assert enough(met), f"the link was not swapped while the place was opened: {met}"
    assert world(outside) == before
