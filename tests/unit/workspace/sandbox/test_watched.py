"""Names that are put back: as they were, and with nothing lost."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from quintet.workspace.sandbox.watched import Before, PutBack, Watched, put_back
from quintet.workspace.sandbox.watched import remember as remember_all
from tests.fakes.walled import Walled, walled
from tests.unit.tools.test_swapped_links import swapping

pytestmark = pytest.mark.req("security:S28")
ROUNDS = 300


def remember(root: Path, *names: str) -> Before:
    return remember_all(Watched(str(root), str(root / name)) for name in names)


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Walled]:
    """Where a guard that is broken harms nothing."""
    with walled() as process:
        yield process


def test_what_did_not_change_is_left(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("somewhere")
    assert put_back(remember(tmp_path, "link", "absent")) == []
    assert [p.name for p in tmp_path.iterdir()] == ["link"]


def test_a_whole_directory_is_moved_aside_with_what_is_in_it(tmp_path: Path) -> None:
    name = tmp_path / "opencode.json"
    before = remember(tmp_path, str(name.relative_to(tmp_path)))
    (name / "deep").mkdir(parents=True)
    (name / "deep" / "f").write_text("kept")
    assert put_back(before) == [PutBack(str(name), f"{name}.from-command")]
    assert (tmp_path / "opencode.json.from-command/deep/f").read_text() == "kept"
    assert not name.exists()


def test_a_link_that_was_removed_is_there_again(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("somewhere")
    before = remember(tmp_path, "link")
    (tmp_path / "link").unlink()
    assert put_back(before) == [PutBack(str(tmp_path / "link"))]
    assert os.readlink(tmp_path / "link") == "somewhere"


def test_a_link_that_leads_elsewhere_now_is_moved_aside_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("untouched")
    before = remember(tmp_path, "name")
    (tmp_path / "name").symlink_to("target")
    [one] = put_back(before)
    assert os.readlink(one.aside) == "target"
    assert (tmp_path / "target").read_text() == "untouched"


def made(place: Path, name: str) -> tuple[Path, Path]:
    """A workspace with a directory `d`, and somebody else's directory with a file and a link."""
    workspace, outside = place / name / "ws", place / name / "outside"
    (workspace / "d").mkdir(parents=True)
    outside.mkdir()
    (outside / "absent").write_text("theirs")
    (outside / "link").symlink_to("theirs")
    outside.chmod(0o555)
    return workspace, outside


def untouched(outside: Path) -> None:
    assert sorted(os.listdir(outside)) == ["absent", "link"]
    assert os.readlink(outside / "link") == "theirs"
    assert outside.stat().st_mode & 0o777 == 0o555


def unwritable(place: Path) -> None:
    workspace, outside = made(place, "unwritable")
    outside.chmod(0o755)
    name = workspace / "d" / "absent"
    for mode in (0o555, 0o000):
        before = remember(workspace, "d/absent")
        name.write_text("x")
        name.parent.chmod(mode)
        try:
            aside = f"{name}.from-command{'' if mode else '-2'}"
            assert put_back(before) == [PutBack(str(name), aside)]
            assert name.parent.stat().st_mode & 0o777 == mode
        finally:
            name.parent.chmod(0o755)


def test_a_directory_made_unwritable_does_not_keep_it_in_place(elsewhere: Walled) -> None:
    elsewhere.call(unwritable)


def replaced(place: Path) -> None:
    workspace, outside = made(place, "replaced")
    (workspace / "d/link").symlink_to("ours")
    before = remember(workspace, "d/link", "d/absent", "d/neither")
    (workspace / "d").rename(workspace / "away")
    (workspace / "d").symlink_to(outside)
    told = {Path(one.place).name: one for one in put_back(before)}
    untouched(outside)
    assert told.keys() == {"link", "absent"}
    assert all(one.failure == "Not a directory" and not one.aside for one in told.values())


def test_a_link_in_the_place_of_their_directory_is_told_and_nothing_changes_where_it_leads(elsewhere: Walled) -> None:
    elsewhere.call(replaced)


def swapped(place: Path) -> None:
    workspace, outside = made(place, "swapped")
    (workspace / "d/link").symlink_to("ours")
    before = remember(workspace, "d/link", "d/absent")
    with swapping(workspace / "d", outside):
        for number in range(ROUNDS):
            # Both names need putting back, whatever stands at `d` now.
            put_back({**before, Watched(str(workspace), str(workspace / "d/link")): f"ours-{number}"})
            untouched(outside)


def test_a_directory_swapped_while_names_are_put_back_changes_nothing_elsewhere(elsewhere: Walled) -> None:
    """As a command in the background does while the next one of its thread ends."""
    elsewhere.call(swapped)


def test_what_appears_at_the_name_beside_it_is_not_replaced(tmp_path: Path) -> None:
    before = remember(tmp_path, "name")
    (tmp_path / "name").write_text("new")
    (tmp_path / "name.from-command").symlink_to("nowhere")
    assert put_back(before) == [PutBack(str(tmp_path / "name"), str(tmp_path / "name.from-command-2"))]
    assert os.readlink(tmp_path / "name.from-command") == "nowhere"


def test_what_cannot_be_put_back_is_told(tmp_path: Path) -> None:
    before: Before = {Watched(str(tmp_path), str(tmp_path / "d" / "name")): "somewhere"}  # even its directory is gone
    [one] = put_back(before)
    assert (one.aside, one.failure) == ("", "No such file or directory")
