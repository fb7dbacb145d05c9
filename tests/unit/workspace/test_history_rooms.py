"""What stands in a tree beside the tracked files: looked up name by name, and always what git itself would say."""

from __future__ import annotations

import errno
import os
import random
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from quintet.workspace import history_rooms
from quintet.workspace.git import Git, read_index
from quintet.workspace.git_layout import layout_of
from quintet.workspace.history import WorkspaceHistory
from quintet.workspace.history_git import Look, look
from quintet.workspace.history_others import ARGUMENTS, OthersMemory
from quintet.workspace.history_rooms import RoomMemory, rooms_of
from quintet.workspace.tree import Seen
from tests.fakes.clock import SettableClock
from tests.unit.workspace.repositories import repository, sh, write

ROOMS = rooms_of(b"a.txt\0src/b.txt\0src/deep/er/c.txt\0")


@pytest.fixture
def tree(tmp_path):
    place = tmp_path / "tree"
    write(place, {"a.txt": "", "src/b.txt": "", "src/deep/er/c.txt": ""})
    return place


@pytest.fixture
def listed(monkeypatch):
    """The directories that are listed."""
    places: list[str] = []
    really = os.listdir

    def listdir(place):
        places.append(os.fsdecode(place))
        return really(place)

    monkeypatch.setattr("quintet.workspace.history_rooms.os.listdir", listdir)
    return places


@pytest.fixture
def history(tmp_path):
    (tmp_path / "home").mkdir(mode=0o700)
    return WorkspaceHistory(str(tmp_path / "home"), os.environ, SettableClock())


def look_around(memory: RoomMemory, tree: Path, *, fresh: bool = False) -> set[str]:
    return {os.fsdecode(path) for path in memory.untracked(str(tree), ROOMS, fresh=fresh)}


def wait_until_sure(tree: Path) -> None:
    """Until what was touched last is older than now, by the clock that is asked."""
    last = max(os.lstat(place).st_ctime_ns for place, _, _ in os.walk(tree))
    for _ in range(10_000):
        if time.time_ns() > last:
            return
    pytest.fail("the clock stands still")


def test_tracked_paths_are_put_into_their_directories_with_those_above_first():
    assert list(ROOMS.items()) == [
        (b"", b"a.txt\0src\0"),
        (b"src", b"b.txt\0deep\0"),
        (b"src/deep", b"er\0"),
        (b"src/deep/er", b"c.txt\0"),
    ]
    assert len(rooms_of(b"d/" * 3000 + b"f\0")) == 3001


@pytest.mark.parametrize("seed", range(5))
def test_whatever_the_paths_are_each_name_is_in_its_directory_and_in_no_other(seed):
    chance = random.Random(seed)
    names = [b"a", b"aa", b"a.b", b"H ", b"sp ace", "é".encode(), b"\n", b"a\xff"]
    paths = {b"/".join(chance.choices(names, k=chance.randint(1, 4))) for _ in range(300)}
    listing = [path for path in sorted(paths) if not any(other.startswith(path + b"/") for other in paths)]
    expected: dict[bytes, set[bytes]] = {b"": set()}
    for path in listing:
        while path:
            path, _, name = path.rpartition(b"/")
            expected.setdefault(path, set()).add(name)
    rooms = rooms_of(b"".join(path + b"\0" for path in listing))
    assert {room: {*tracked.split(b"\0")[:-1]} for room, tracked in rooms.items()} == expected


def test_a_path_that_ends_in_a_slash_is_looked_at_once_and_not_from_each_of_its_names():
    assert len(rooms_of(b"a\0" + b"d/" * 2000 + b"\0b\0")) == 2001


@pytest.mark.req("mechanisms:M8.shell")
def test_what_is_not_tracked_is_found_in_every_directory_that_holds_something_tracked(tree):
    write(tree, {"new": "", "src/deep/new": "", "other/inside": "", ".git/config": "", "src/.hidden": ""})
    assert look_around(RoomMemory(), tree) == {"new", "src/deep/new", "other", "src/.hidden"}


@pytest.mark.req("mechanisms:M8.shell")
def test_a_link_or_file_in_the_place_of_a_directory_is_told_and_nothing_behind_it(tree, tmp_path):
    write(tmp_path / "elsewhere", {"deep/er/theirs": ""})
    shutil.rmtree(tree / "src")
    (tree / "src").symlink_to(tmp_path / "elsewhere")
    assert look_around(RoomMemory(), tree) == {"src"}


def test_a_directory_that_was_not_touched_is_not_listed_again(tree, listed, monkeypatch):
    monkeypatch.setattr(history_rooms, "_SURE_NS", 0)
    memory = RoomMemory()
    wait_until_sure(tree)
    write(tree, {"src/new": ""})
    wait_until_sure(tree)
    assert look_around(memory, tree) == {"src/new"}
    listed.clear()
    assert look_around(memory, tree) == {"src/new"}
    assert listed == []
    (tree / "src/deep/er/c.txt").write_text("another content is no other name")
    os.replace(tree / "src/new", tree / "src/deep/new")
    assert look_around(memory, tree) == {"src/deep/new"}
    assert listed == [f"{tree}/src", f"{tree}/src/deep"]


def test_a_directory_touched_a_moment_ago_is_listed_again(tree, listed):
    memory = RoomMemory()
    look_around(memory, tree)
    listed.clear()
    look_around(memory, tree)
    assert len(listed) == len(ROOMS)


def test_another_list_of_tracked_names_counts_at_once(tree, monkeypatch):
    monkeypatch.setattr(history_rooms, "_SURE_NS", 0)
    write(tree, {"new": ""})
    wait_until_sure(tree)
    memory = RoomMemory()
    assert look_around(memory, tree) == {"new"}
    assert memory.untracked(str(tree), rooms_of(b"a.txt\0new\0src/b.txt\0"), fresh=False) == [b"src/deep"]


@pytest.mark.parametrize("kind", ["fuse.sshfs", "nfs4", "vfat"])
def test_on_a_file_system_that_may_not_stamp_directories_nothing_is_remembered(
    tree, listed, tmp_path, monkeypatch, kind
):
    monkeypatch.setattr(history_rooms, "_SURE_NS", 0)
    escaped = str(tree).replace("tree", "\\164ree")
    lines = ["1 0 8:1 / / rw - ext4 /dev/x rw", f"2 1 0:9 / {escaped} rw shared:1 - {kind} x rw"]
    (tmp_path / "mounts").write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(history_rooms, "_MOUNTS", str(tmp_path / "mounts"))
    wait_until_sure(tree)
    memory = RoomMemory()
    look_around(memory, tree)
    listed.clear()
    look_around(memory, tree)
    assert len(listed) == len(ROOMS)


@pytest.mark.req("mechanisms:M8.shell")
async def test_what_a_command_made_is_found_even_where_directories_do_not_show_it(tmp_path, history, monkeypatch):
    class Blind(Seen):
        @classmethod
        def of(cls, found: os.stat_result) -> Seen:
            return Seen(0, 0, 0, 0)

    tree = repository(tmp_path / "tree")
    monkeypatch.setattr(history_rooms, "_SURE_NS", 0)
    monkeypatch.setattr(history_rooms, "Seen", Blind)
    wait_until_sure(tree)
    await history.secure(str(tree))
    secured = await history.secure(str(tree))
    sh("echo made > src/made; echo made > made", tree)
    compared = await history.compare(secured)
    assert [change.path for change in compared.changes] == ["made", "src/made"]


@pytest.mark.req("mechanisms:M8.places")
async def test_a_directory_that_cannot_be_listed_for_want_of_handles_is_never_taken_for_empty(
    tmp_path, history, monkeypatch
):
    tree = repository(tmp_path / "tree")
    write(tree, {"src/new": "mine\n"})

    def fails(place):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr("quintet.workspace.history_rooms.os.listdir", fails)
    secured = await history.secure(str(tree))
    assert secured.files == 3  # all of them: every file was looked at instead
    assert "git could not be asked (the work tree could not be looked at: Too many open files)" in secured.partial[0]


@pytest.mark.req("mechanisms:M8.before")
@pytest.mark.parametrize("paths", [None, ["a.txt"]])
async def test_a_call_begins_only_when_all_it_writes_is_younger_than_what_was_put_aside(
    tmp_path, history, monkeypatch, paths
):
    tree = repository(tmp_path / "tree")
    monkeypatch.setattr("quintet.workspace.history.now_ns", lambda: time.time_ns() + 20_000_000)
    secured = await history.secure(str(tree), paths)
    (tree / "made").touch()
    assert (tree / "made").stat().st_mtime_ns >= history._manifest(secured.manifest).at_ns


NAMES = ("f", "g.txt", ".gitignore", ".ignore", "h.log", "-dash", "[x]", "*", "é", "new\nline")
PLACES = ("", "a", "a/b", "a/b/c", "d", "d/build", "build", "sp ace")
RULES = ("*.log", "build/", "build", "/a/b", "build/*", "!h.log", "!.gitignore", ".gitignore", ".ignore", "d/", "*")
RULES += ("!*/", "!g.txt", "a/b/*", "f", ".*", "\\[x\\]")


def anything(chance: random.Random, tree: Path) -> None:
    place, name = chance.choice(PLACES), chance.choice(NAMES)
    path = tree / place / name
    rules = "".join(f"{rule}\n" for rule in chance.choices(RULES, k=2))
    steps = (
        *[lambda: write(tree, {f"{place}/{name}".lstrip("/"): rules if name[0] == "." else "x"})] * 6,
        lambda: (tree / place / chance.choice(("empty", "build"))).mkdir(parents=True),
        lambda: path.unlink(),
        lambda: shutil.rmtree(tree / (place or "d")),
        lambda: (shutil.rmtree(tree / (place or "d")), (tree / (place or "d")).symlink_to("a")),
        lambda: (path.unlink(), write(path, {"in": "", ".gitignore": "in\n.gitignore\n"})),
        lambda: (tree / (place or "d")).rename(tree / f"{place or 'd'}.moved"),
        lambda: sh("git add -A", tree, check=False),
        lambda: sh("mkdir nested && cd nested && git init -q . && touch theirs", tree, check=False),
        lambda: write(tree, {".git/info/exclude": rules}),
        lambda: path.symlink_to(chance.choice(("f", "/etc", ".."))),
    )
    try:
        chance.choice(steps)()
    except OSError:
        return  # nothing to do that to


async def both_ways(tree: Path, scratch: Path, memory: OthersMemory) -> tuple[Look, Look]:
    layout = layout_of(str(tree))
    assert layout is not None
    async with Git(os.environ, str(scratch)).opened(layout, read_index(layout)) as git:
        ours, _ = await look(git, memory, settle=True)
        git.folds = True  # then git walks through the whole tree itself
        return ours, (await look(git, memory, settle=True))[0]


@pytest.mark.req("mechanisms:M8.ignored")
@pytest.mark.parametrize("seed", range(12))
async def test_git_asked_about_single_names_says_what_it_says_of_the_whole_tree(tmp_path, monkeypatch, seed):
    monkeypatch.setattr(history_rooms, "_SURE_NS", 0)
    chance = random.Random(seed)
    tree, memory = tmp_path / "tree", OthersMemory()
    repository(tree, {"a/b/c/f": "", "d/build/g.txt": "", "build/h.log": "", "sp ace/é": ""})
    for _ in range(4):
        for _ in range(chance.choice((1, 3, 10))):
            anything(chance, tree)
        wait_until_sure(tree)
        ours, gits = await both_ways(tree, tmp_path / "scratch", memory)
        assert [sorted(map(str, {*part})) for part in ours] == [sorted(map(str, {*part})) for part in gits]


@pytest.mark.req("mechanisms:M8.ignored")
@pytest.mark.parametrize(
    "script",
    [
        "mkdir new; printf '.gitignore\\nhidden\\n' > new/.gitignore; touch new/hidden new/seen",
        "rm src/b.txt; mkdir src/b.txt; printf '.gitignore\\n' > src/b.txt/.gitignore; touch src/b.txt/seen",
        "echo .ignore > .gitignore; touch .ignore src/.ignore",
    ],
    ids=["untracked directory", "directory instead of a file", "tracked directory"],
)
async def test_ignore_files_that_hide_themselves_are_found_wherever_they_are(tmp_path, script):
    tree = repository(tmp_path / "tree")
    sh(script, tree)
    ours, gits = await both_ways(tree, tmp_path / "scratch", OthersMemory())
    assert {*ours.rules} == {*gits.rules} != set()


@pytest.mark.req("mechanisms:M8.shell")
async def test_more_names_than_go_into_a_command_line_are_all_found(tmp_path):
    tree = repository(tmp_path / "tree")
    write(tree, {f"src/new{number}": "" for number in range(ARGUMENTS + 1)} | {"x.log": "", ".gitignore": "*.log\n"})
    ours, gits = await both_ways(tree, tmp_path / "scratch", OthersMemory())
    assert ours == gits
    assert len(ours.others) == ARGUMENTS + 2


@pytest.mark.req("mechanisms:M8.places")
async def test_where_case_does_not_count_git_looks_at_the_tree_itself(tmp_path, listed):
    tree = repository(tmp_path / "tree")
    sh("git config core.ignorecase true; mv a.txt A.txt; mv src/b.txt src/B.txt; touch src/new", tree)
    layout = layout_of(str(tree))
    assert layout is not None
    async with Git(os.environ, str(tmp_path / "scratch")).opened(layout, read_index(layout)) as git:
        found, _ = await look(git, OthersMemory())
    assert (found.others, listed) == (("src/new",), [])


class Slow(dict):
    """Gives the others time between finding a name and using it."""

    def __iter__(self):
        for key in super().__iter__():
            time.sleep(0.001)
            yield key


@pytest.mark.req("mechanisms:M8.shell")
def test_looks_at_many_trees_at_the_same_time_do_not_disturb_each_other(tmp_path):
    """One that failed would let its command run with nothing put aside."""
    memory, tops = RoomMemory(), [tmp_path / str(number) for number in range(12)]
    memory._trees = Slow()
    for top in tops:
        write(top, {"there": ""})

    def look_around(first):
        for number in range(50):
            top = str(tops[(7 * number + first) % len(tops)])
            assert memory.untracked(top, {b"": b""}, fresh=False) == [b"there"]

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(look_around, range(6), timeout=60)) == [None] * 6
