"""How much a command can keep in directories of its own: in memory up to a size, on disk until the next command."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from quintet.domain.errors import Busy
from quintet.domain.tool import CallScope
from quintet.tools.shell import ShellTool
from quintet.workspace.sandbox import bubblewrap, scratch
from quintet.workspace.sandbox.bubblewrap import Tool, private_bytes
from quintet.workspace.sandbox.check_up import check_up
from quintet.workspace.sandbox.limits import MIB, memory_here
from quintet.workspace.sandbox.profile import State
from quintet.workspace.sandbox.scratch import Scratches, counted
from tests.fakes.stage import Stage, needs_bubblewrap, staged
from tests.fakes.tool_context import FakeToolContext

pytestmark = [needs_bubblewrap, pytest.mark.req("security:S32")]


@pytest.fixture
def stage() -> Iterator[Stage]:
    with staged() as made:
        yield made


# --- memory -----------------------------------------------------------------------------------------------------------
async def test_every_directory_in_memory_that_can_be_written_is_small(stage: Stage) -> None:
    """Whatever file systems in memory there are inside, found by looking and not by a list."""
    look = r"""
        while read -r _ place kind _; do
          [ "$kind" = tmpfs ] || continue
          [ -w "$place" ] && touch "$place/probe" && echo "$place $(df --output=size -B1 "$place" | tail -n 1)"
        done < /proc/mounts 2>&-
    """
    done = await stage.run(look)
    sizes = {place: int(size) for place, size in map(str.split, done.stdout.splitlines())}
    assert set(sizes) == {"/tmp", "/var/tmp", "/run", "/dev/shm"}
    assert sizes["/dev/shm"] <= 512 * MIB
    assert sum(sizes.values()) <= min(1_088 * MIB, memory_here() // 4)


@pytest.mark.parametrize("place", ["/tmp", "/var/tmp", "/run", "/dev/shm"])
async def test_a_write_beyond_the_size_fails_and_the_command_goes_on(
    stage: Stage, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bubblewrap, "memory_here", lambda: 16 * MIB)
    done = await stage.run(f"head -c 3M /dev/zero > {place}/big; echo code $?; stat -c %s {place}/big")
    assert "No space left on device" in done.stderr
    assert done.stdout.split() == ["code", "1", str(MIB)]


async def test_devices_work_and_nothing_can_be_kept_beside_them(stage: Stage) -> None:
    script = "echo x > /dev/null; head -c 1 /dev/zero | wc -c; echo x > /dev/kept; mkdir /dev/d; echo y > /dev/shm/f"
    done = await stage.run(
        f"{script}; cat /dev/shm/f; ls /dev | grep -cE 'kept|^d$'; $PY -c 'import pty; pty.openpty()'"
    )
    assert done.stdout.split() == ["1", "y", "0"]
    assert done.stderr.count("Read-only file system") == 2
    assert done.returncode == 0


def test_a_machine_with_little_memory_gives_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "memory_here", lambda: 1024 * MIB)
    assert {private_bytes(place) for place in ("/run", "/dev/shm", "/tmp")} == {64 * MIB}


@pytest.mark.parametrize(("version", "good"), [((0, 6, 2), False), ((0, 7), True), ((0, 8, 0), True)])
def test_a_program_that_knows_no_sizes_is_told(version: tuple[int, ...], good: bool) -> None:
    row = check_up(State(True), Tool("/usr/bin/bwrap", version), filters=True, held=())[0]
    assert (row.ok, "too old" in row.detail, bool(row.fix)) == (good, not good, not good)


# --- disk -------------------------------------------------------------------------------------------------------------
@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "MOST", MIB)
    monkeypatch.setattr(scratch, "ALL", 2 * MIB)
    monkeypatch.setattr(scratch, "FILES", 50)


def room(root: Path, name: str, size: int) -> str:
    (root / name).mkdir()
    (root / name / "f").write_bytes(b"x" * size)
    return str(root / name)


@pytest.mark.usefixtures("small")
async def test_a_thread_whose_temporary_files_are_too_much_finds_them_gone_and_is_told(stage: Stage) -> None:
    tool = ShellTool(stage.environment, sandbox=stage.sandbox)

    async def use(command: str) -> str:
        prepared = await tool.prepare({"command": command}, CallScope(str(stage.workspace)))
        return (await tool.run(prepared, FakeToolContext(str(stage.workspace)))).text

    assert await use("head -c 900K /dev/zero > /tmp/a; ls /tmp") == "a\n"
    assert await use("mkdir /tmp/d; head -c 200K /dev/zero > /tmp/d/b; chmod 0 /tmp/d; ls /tmp") == "a\nd\n"
    text = await use("ls -A /tmp; echo kept > /tmp/c")
    assert text.startswith("(no output)\n[/tmp was emptied before it ran: temporary files took 1 MiB here, more than")
    assert await use("cat /tmp/c") == "kept\n"


@pytest.mark.usefixtures("small")
def test_of_all_threads_together_those_used_longest_ago_give_way(tmp_path: Path) -> None:
    scratches, rooms = Scratches(), [room(tmp_path, name, 700 * 1024) for name in "abc"]
    for one in (*rooms[:2], rooms[0]):  # so `b` was used longest ago
        assert scratches.enter(one) == 0
        scratches.leave(one)
    assert scratches.enter(rooms[2]) == 0
    assert [os.listdir(one) for one in rooms] == [["f"], [], ["f"]]
    assert scratches.enter(rooms[1]) >= 700 * 1024
    assert scratches.enter(rooms[1]) == 0  # told once


@pytest.mark.usefixtures("small")
def test_what_a_command_still_uses_is_not_emptied_and_the_next_one_is_refused(tmp_path: Path) -> None:
    scratches, one = Scratches(), room(tmp_path, "a", 10)
    scratches.enter(one)
    (tmp_path / "a" / "big").write_bytes(b"x" * 2 * MIB)
    for place in (one, room(tmp_path, "b", 900 * 1024)):
        with pytest.raises(Busy, match="still run"):
            scratches.enter(place)
    assert sorted(os.listdir(one)) == ["big", "f"]
    scratches.leave(one)
    assert scratches.enter(one) >= 2 * MIB
    assert os.listdir(one) == []


@pytest.mark.usefixtures("small")
def test_very_many_files_are_too_much_and_holes_are_not(tmp_path: Path) -> None:
    place = room(tmp_path, "a", 10)
    with open(tmp_path / "a" / "hole", "wb") as file:
        file.truncate(100 * MIB)
    (tmp_path / "a" / "link").symlink_to("/usr")
    assert counted(place) < MIB
    for number in range(60):
        (tmp_path / "a" / str(number)).touch()
    assert counted(place) > MIB
