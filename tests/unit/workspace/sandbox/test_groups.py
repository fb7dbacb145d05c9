"""Control groups: where they may be made (drawn in a directory), and what they do (the real ones, where we may)."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from quintet.workspace.process_tree import begun
from quintet.workspace.sandbox import group_places, groups
from quintet.workspace.sandbox.group_places import Place, places
from quintet.workspace.sandbox.groups import Group, Groups, groups_here
from quintet.workspace.sandbox.limits import MIB, TASKS, Caps
from tests.faults.processes import wait_until

pytestmark = pytest.mark.req("security:S32")
CAPS = Caps(processes=10, memory=100 * MIB, file=MIB)
V1 = "30 20 0:1 {top} /groups/{name} rw - cgroup cgroup rw,{name}\n"
V2 = "30 20 0:1 / /groups rw - cgroup2 cgroup2 rw,nsdelegate\n"
needs_memory = pytest.mark.skipif(
    "memory" not in places(), reason="no group that counts memory can be made here, or only in one that is not ours"
)
needs_groups = pytest.mark.skipif("pids" not in places(), reason="no control group can be made here")


def machine(root: Path, mounts: str, own: str) -> str:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/mountinfo").write_text("22 20 0:2 / / rw - ext4 /dev/sda rw\n" + mounts)
    (root / "proc/self/cgroup").write_text(own)
    return str(root)


def unified(root: Path, group: str, *, available: str = "cpu memory pids", on: str = "") -> Path:
    made = root / "groups" / group
    made.mkdir(parents=True, exist_ok=True)
    (made / "cgroup.controllers").write_text(available + "\n")
    (made / "cgroup.subtree_control").write_text(on + "\n")
    return made


@pytest.fixture
def delegated(monkeypatch: pytest.MonkeyPatch) -> set[Path]:
    """Filled by a test; the attribute itself is not to be had on every file system."""
    marked: set[Path] = set()
    monkeypatch.setattr(group_places, "_delegated", lambda place: Path(place) in marked)
    return marked


# --- where ------------------------------------------------------------------------------------------------------------
def test_at_the_top_of_a_tree_of_version_1_groups_may_be_made(tmp_path: Path) -> None:
    (tmp_path / "groups/pids").mkdir(parents=True)
    root = machine(tmp_path, V1.format(top="/", name="pids"), "8:pids:/\n1:cpu:/\n")
    assert places(root) == {"pids": Place(str(tmp_path / "groups/pids"), False)}


def test_a_container_that_sees_its_own_group_as_the_top_may_too(tmp_path: Path) -> None:
    (tmp_path / "groups/pids").mkdir(parents=True)
    root = machine(tmp_path, V1.format(top="/docker/abc", name="pids"), "8:pids:/docker/abc\n")
    assert list(places(root)) == ["pids"]


def test_what_somebody_else_counts_us_in_is_left_alone(tmp_path: Path, delegated: set[Path]) -> None:
    (tmp_path / "groups/memory/runner/job").mkdir(parents=True)
    unified(tmp_path, "user.slice", on="memory pids")
    unified(tmp_path, "user.slice/session.scope", on="memory pids")
    mounts = V1.format(top="/", name="memory") + V2
    root = machine(tmp_path, mounts, "4:memory:/runner/job\n0::/user.slice/session.scope\n")
    assert places(root) == {}


def test_in_version_2_a_delegated_group_is_ours_and_controllers_are_switched_on(
    tmp_path: Path, delegated: set[Path]
) -> None:
    own = unified(tmp_path, "quintet.service", available="pids")
    delegated.add(own)
    found = places(machine(tmp_path, V2, "0::/quintet.service\n"))
    assert found == {"pids": Place(str(own), True)}
    assert (own / "cgroup.subtree_control").read_text() == "+pids"


def test_a_service_with_its_processes_one_below_makes_groups_beside_them(tmp_path: Path, delegated: set[Path]) -> None:
    service = unified(tmp_path, "quintet.service", available="pids", on="pids")
    unified(tmp_path, "quintet.service/main", available="")
    delegated.update((service, service / "main"))
    found = places(machine(tmp_path, V2, "0::/quintet.service/main\n"))
    assert found == {"pids": Place(str(service), True)}


def test_a_machine_without_groups_has_none(tmp_path: Path) -> None:
    assert places(str(tmp_path)) == {}
    assert Groups({}).made(CAPS) is None


# --- the files of each version ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("version_2", "limit", "events"),
    [(True, "memory.max", "memory.events"), (False, "memory.limit_in_bytes", "memory.oom_control")],
)
def test_limits_are_written_and_the_cap_that_was_hit_is_read(
    tmp_path: Path, version_2: bool, limit: str, events: str
) -> None:
    tops = {name: tmp_path / ("one" if version_2 else name) for name in ("pids", "memory")}
    for top in tops.values():
        top.mkdir(exist_ok=True)
    group = Group("g", {name: Place(str(top), version_2) for name, top in tops.items()})
    group.make(CAPS)
    assert (tops["pids"] / "g/pids.max").read_text() == str(TASKS * 10)
    assert (tops["memory"] / "g" / limit).read_text() == str(100 * MIB)
    (tops["memory"] / "g" / events).write_text("max 7\noom_kill_disable 0\noom_kill 0\n")
    assert group.hit() is None
    (tops["memory"] / "g" / events).write_text("max 7\noom_kill_disable 0\noom_kill 1\n")
    assert group.hit() == "memory"
    (tops["pids"] / "g/pids.events").write_text("max 3\n")
    assert group.hit() == "tasks"


# --- the real ones ----------------------------------------------------------------------------------------------------
@pytest.fixture
def here() -> Groups:
    return groups_here()


@pytest.fixture
def spawned() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts in a group; has ended everything at the end of the test."""
    running: list[subprocess.Popen[bytes]] = []

    def start(group: Group, script: str) -> subprocess.Popen[bytes]:
        words = group.entering(["bash", "-c", script])
        running.append(subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.communicate()


def exists(name: str) -> bool:
    return os.path.isdir(os.path.join(places()["pids"].directory, name))


@needs_groups
def test_what_a_command_starts_is_in_its_group_and_dies_with_it(here: Groups, spawned) -> None:
    group = here.made(CAPS)
    assert group is not None
    process = spawned(group, "setsid --fork env -i sleep 600 <&- >&- 2>&-; echo ready; read word")
    assert process.stdout.readline() == b"ready\n"
    assert len(group.members()) == 2  # bash, and the one that left session, group and environment
    here.discard(group)
    wait_until(lambda: not group.members(), 5)
    assert process.wait(5) == -9
    here.tidy()
    assert not os.path.exists(group._pids)


@needs_groups
def test_the_kernel_lets_no_more_through_and_tells(here: Groups, spawned) -> None:
    group = here.made(CAPS)
    assert group is not None
    assert group.hit() is None
    script = "import os\nfor n in range(100): os.fork() or (os.read(0, 1), os._exit(0))"
    process = spawned(group, f"exec python3 -c '{script}'")
    wait_until(lambda: group.hit() is not None, 10)
    assert group.hit() == "tasks"
    assert group.tasks() <= TASKS * 10
    here.discard(group)
    process.wait(5)
    wait_until(group.remove, 5)


@needs_groups
def test_what_a_dead_process_left_is_removed_and_what_a_living_one_has_is_not(here: Groups, spawned) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    left = f"quintet-{groups._namespace()}-{dead.pid}-1-1"
    living = f"quintet-{groups._namespace()}-{os.getppid()}-{begun(os.getppid())}-1"
    foreign = f"quintet-1-{dead.pid}-1-1"
    made = [Group(name, places()) for name in (left, living, foreign)]
    try:
        for group in made:
            group.make(CAPS)
        process = spawned(made[0], "echo ready; read word")
        assert process.stdout.readline() == b"ready\n"
        here.sweep()
        assert process.wait(5) == -9
        here.tidy()
        assert [exists(name) for name in (left, living, foreign)] == [False, True, True]
    finally:
        for group in made:
            group.remove()


@needs_groups
def test_a_command_that_cannot_enter_does_not_run(here: Groups) -> None:
    group = here.made(CAPS)
    assert group is not None
    assert group.remove()
    done = subprocess.run(group.entering(["echo", "ran"]), capture_output=True, timeout=10, check=False)
    assert (done.returncode, done.stdout) == (125, b"")


@needs_memory
def test_who_takes_more_memory_than_the_cap_is_ended_by_the_kernel_and_told(here: Groups, spawned) -> None:
    group = here.made(CAPS)
    assert group is not None
    process = spawned(group, "exec python3 -c 'b = bytearray(400 * 2**20)\nfor i in range(0, len(b), 4096): b[i] = 1'")
    assert process.wait(20) == -9
    assert group.hit() == "memory"
    here.discard(group)
    wait_until(group.remove, 5)


# --- a real tree of version 2, with or without controllers ------------------------------------------------------------
@pytest.fixture
def real_2() -> Iterator[str]:
    """A group made at the top of what we are given; where that is somebody else's group, nothing is made in it."""
    own = dict(group_places._own_groups("/")).get("")
    tops = [point for kind, top, point, _ in group_places._mounts("/") if kind == "cgroup2" and top == own]
    usable = [top for top in tops if os.access(f"/{top}", os.W_OK)]
    if not usable:
        pytest.skip("no tree of control groups version 2 whose top is ours to write")
    made = f"/{usable[0]}/quintet-test-{os.getpid()}"
    os.mkdir(made)
    try:
        yield made
    finally:
        for pid in Path(made, "cgroup.procs").read_text().split():
            os.kill(int(pid), signal.SIGKILL)
        wait_until(lambda: not Path(made, "cgroup.procs").read_text(), 5)
        os.rmdir(made)


def test_in_a_real_tree_of_version_2_a_program_enters_is_seen_and_is_ended(real_2: str, spawned) -> None:
    """Doors, members and the end need no controller; the caps themselves do."""
    group = Group(os.path.basename(real_2), {"pids": Place(os.path.dirname(real_2), True)})
    process = spawned(group, "setsid --fork sleep 600 <&- >&- 2>&-; grep ^0: /proc/self/cgroup; echo ready; read word")
    assert process.stdout.readline() == f"0::/{os.path.basename(real_2)}\n".encode()
    assert process.stdout.readline() == b"ready\n"
    assert len(group.members()) == 2
    assert group.members(1) == group.members()[:1]
    assert not group.remove()  # somebody is in it
    group.strike()
    assert process.wait(5) == -9
    wait_until(lambda: not group.members(), 5)


def test_in_a_real_tree_of_version_2_the_mark_of_a_delegated_group_is_read(real_2: str) -> None:
    assert not group_places._delegated(real_2)
    try:
        os.setxattr(real_2, group_places.DELEGATED, b"1")
    except OSError as error:
        pytest.skip(f"this kernel keeps no marks on groups: {error.strerror}")
    assert group_places._delegated(real_2)
    assert group_places._delegated_above(f"{real_2}/main")
    assert group_places._unified(real_2, "no-such-controller", at_top=False) is None
