"""Trees a command can do anything with: however it nests, closes or exchanges its directories, nothing of ours is
touched, everything is counted and nothing is left."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from quintet.workspace.sandbox.command_trees import remove
from quintet.workspace.sandbox.limits import MIB
from quintet.workspace.sandbox.rooms import Rooms
from quintet.workspace.sandbox.scratch import MOST, Scratches, counted
from tests.unit.tools.test_swapped_links import swapping

pytestmark = pytest.mark.req("security:S32")
NESTED = 3_000
LOOKS = 2_000
UNPRIVILEGED = 65_534

# Run as somebody who cannot pass by modes: root could.
CLOSED = f"""
import os, sys
from quintet.workspace.sandbox.command_trees import remove
from quintet.workspace.sandbox.scratch import counted
top = sys.argv[1]
if os.geteuid() == 0:
    os.setgid({UNPRIVILEGED})
    os.setuid({UNPRIVILEGED})
os.makedirs(f"{{top}}/t/closed/inner")
for place in ("closed", "closed/inner"):
    with open(f"{{top}}/t/{{place}}/big", "wb") as file:
        file.write(bytes(3 << 20))
for place in ("closed/inner", "closed"):
    os.chmod(f"{{top}}/t/{{place}}", 0)
print(counted(f"{{top}}/t"), oct(os.stat(f"{{top}}/t/closed").st_mode & 0o7777))
remove(f"{{top}}/t")
print(os.path.lexists(f"{{top}}/t"))
"""


@pytest.fixture
def deep_place(tmp_path: Path) -> Iterator[Path]:
    """What a failing test leaves in it would be too deep for pytest to clear away."""
    yield tmp_path
    subprocess.run(["rm", "-rf", str(tmp_path)], timeout=30, check=True)


def nested(place: Path, depth: int) -> None:
    """Far deeper than a path can be long."""
    above = os.open(place, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d" * 40, dir_fd=above)
        below = os.open("d" * 40, os.O_RDONLY, dir_fd=above)
        os.close(above)
        above = below
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=above))
    os.close(above)


@pytest.mark.req("security:S17")
def test_a_link_put_in_a_directory_s_place_while_it_is_counted_changes_no_mode_outside(tmp_path: Path) -> None:
    """As a command in the background does while the next one of its thread is set up."""
    secret, place = tmp_path / "secret", tmp_path / "scratch"
    secret.touch(0o600)
    place.mkdir()
    (place / "d").mkdir()
    (place / "d").chmod(0o4777)
    with swapping(place / "d", secret):
        for _ in range(LOOKS):
            counted(str(place))
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600


def test_what_lies_deeper_than_can_be_counted_is_too_much_and_is_emptied(deep_place: Path) -> None:
    place = deep_place / "scratch"
    place.mkdir()
    nested(place, NESTED)
    assert counted(str(place)) > MOST
    scratches = Scratches()
    assert scratches.enter(str(place)) > MOST
    assert list(place.iterdir()) == []


def test_a_tree_deeper_than_any_path_keeps_no_later_process_from_working(deep_place: Path) -> None:
    """A process that was killed has left it: whoever comes next sweeps it away."""
    died = Rooms(str(deep_place))
    left = Path(died.scratch("one"))
    nested(left, NESTED)
    os.close(died._lock)  # as the kernel does for the dead
    later = Rooms(str(deep_place))
    assert Path(later.scratch("two")).is_dir()
    assert not left.parent.exists()
    later.close()


def test_what_lies_in_a_directory_without_rights_is_counted_and_removed() -> None:
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o777)
        argv = [sys.executable, "-c", CLOSED, place]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
    assert done.stderr == ""
    counted_bytes, mode, left = done.stdout.split()
    assert int(counted_bytes) >= 6 * MIB
    assert (mode, left) == ("0o0", "False")


def test_links_are_removed_and_never_followed(tmp_path: Path) -> None:
    outside, place = tmp_path / "outside", tmp_path / "t"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    (place / "a" / "b").mkdir(parents=True)
    for name in ("a/link", "a/b/link", "link"):
        (place / name).symlink_to(outside)
    remove(str(place))
    assert not place.exists()
    assert (outside / "kept").read_text() == "kept"
    (tmp_path / "t").symlink_to(outside)
    remove(str(tmp_path / "t"))  # a link is no tree of a command
    assert (outside / "kept").read_text() == "kept"
