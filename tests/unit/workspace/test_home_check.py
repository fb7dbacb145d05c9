"""The home in a check-up: rights, owner, writing, file system, room; each provoked for real where that is possible."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from quintet.domain.checkup import Health, Row
from quintet.workspace.home_check import close_to_others, file_system, look_at_home, open_to_others
from tests.faults.disks import fill, small_disk

MOUNTS = """\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 0:40 / {nfs} rw shared:5 - nfs4 server:/export rw
31 22 0:41 / {spaced} rw - tmpfs tmpfs rw
32 30 0:42 / {inner} rw - xfs /dev/vdb rw
33 32 0:43 / {inner} rw - cifs //server/share rw
torn line
"""


def by_name(rows: list[Row]) -> dict[str, Row]:
    assert len({row.name for row in rows}) == len(rows)
    return {row.name: row for row in rows}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "home"
    made.mkdir(mode=0o700)
    return made


@pytest.fixture
def mounts(tmp_path: Path) -> str:
    (tmp_path / "net" / "inner").mkdir(parents=True)
    (tmp_path / "a place").mkdir()
    text = MOUNTS.format(
        nfs=tmp_path / "net", spaced=str(tmp_path / "a place").replace(" ", "\\040"), inner=tmp_path / "net" / "inner"
    )
    (tmp_path / "mountinfo").write_text(text)
    return str(tmp_path / "mountinfo")


@pytest.mark.req("first_minutes:F5")
def test_a_private_home_is_fine_and_nothing_is_left_of_the_look(home: Path) -> None:
    rows = by_name(look_at_home(str(home)))
    assert [rows[name].health for name in ("home", "writing", "disk")] == [Health.OK] * 3
    assert "free" in rows["disk"].detail
    assert list(home.iterdir()) == []


@pytest.mark.req("first_minutes:F5")
def test_a_home_that_is_not_there_is_no_fault_and_is_not_made(tmp_path: Path) -> None:
    rows = by_name(look_at_home(str(tmp_path / "a" / "home")))
    assert rows["home"].health is Health.OK
    assert rows["disk"].health is Health.OK
    assert not (tmp_path / "a").exists()


@pytest.mark.req("first_minutes:F6")
@pytest.mark.parametrize("under", ["file", "file/home"])
def test_a_home_that_cannot_be_a_directory_fails(tmp_path: Path, under: str) -> None:
    (tmp_path / "file").write_text("")
    row = by_name(look_at_home(str(tmp_path / under)))["home"]
    assert row.health is Health.FAIL
    assert "--home" in row.fix


@pytest.mark.req("first_minutes:F6", "first_minutes:F8")
@pytest.mark.parametrize("mode", [0o755, 0o710, 0o701, 0o770])
def test_a_home_others_may_look_into_fails_until_it_is_closed_to_them(home: Path, mode: int) -> None:
    home.chmod(mode)
    row = by_name(look_at_home(str(home)))["home"]
    assert row.health is Health.FAIL
    assert row.fix == "quintet doctor --fix"
    assert close_to_others(str(home)) == ["."]
    assert home.stat().st_mode & 0o777 == 0o700
    assert by_name(look_at_home(str(home)))["home"].health is Health.OK


@pytest.mark.req("first_minutes:F6", "first_minutes:F8")
def test_private_files_that_others_may_read_are_named_and_closed(home: Path) -> None:
    (home / "credentials").mkdir(mode=0o700)
    for name, mode in (("quintet.db", 0o644), ("credentials/openai", 0o640), ("quintet.log", 0o600)):
        (home / name).write_text("x")
        (home / name).chmod(mode)
    (home / "config.toml").write_text("")
    (home / "config.toml").chmod(0o644)  # the person's own, written with an editor: the directory keeps it private
    row = by_name(look_at_home(str(home)))["home"]
    assert row.health is Health.FAIL
    assert "quintet.db" in row.detail
    assert close_to_others(str(home)) == ["quintet.db", "credentials/openai"]
    assert open_to_others(str(home)) == []
    assert (home / "quintet.db").stat().st_mode & 0o777 == 0o600


def test_a_link_in_the_home_is_not_followed_when_rights_are_mended(home: Path, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere"
    other.write_text("x")
    other.chmod(0o644)
    (home / "quintet.log").symlink_to(other)
    assert close_to_others(str(home)) == []
    assert other.stat().st_mode & 0o777 == 0o644


@pytest.mark.req("first_minutes:F6")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_home_of_another_user_fails(home: Path) -> None:
    os.chown(home, 12_345, -1)
    row = by_name(look_at_home(str(home)))["home"]
    assert row.health is Health.FAIL
    assert row.fix.index("name another home") < row.fix.index("chown")


@pytest.mark.req("first_minutes:F6")
@pytest.mark.parametrize(
    ("place", "health", "kind"),
    [("net/x", Health.WARN, "nfs4"), ("a place/x", Health.WARN, "tmpfs"), ("net/inner/x", Health.WARN, "cifs")],
)
def test_network_and_memory_file_systems_are_warned_about(
    tmp_path: Path, mounts: str, place: str, health: Health, kind: str
) -> None:
    row = by_name(look_at_home(str(tmp_path / place), mounts=mounts))["file system"]
    assert (row.health, kind in row.detail) == (health, True)
    assert "--home" in row.fix


@pytest.mark.req("first_minutes:F5")
def test_the_innermost_mount_counts_and_a_name_that_only_begins_alike_does_not(tmp_path: Path, mounts: str) -> None:
    assert file_system(str(tmp_path / "network"), mounts) == "ext4"
    assert file_system(str(tmp_path / "net"), mounts) == "nfs4"
    assert file_system(str(tmp_path), str(tmp_path / "nothing")) == ""
    assert file_system("/proc") == "proc", "the real table is read"


@pytest.mark.req("first_minutes:F6")
def test_a_disk_that_is_full_fails_and_one_with_little_room_warns(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 16) as disk:
        (disk / "home").mkdir(mode=0o700)
        rows = by_name(look_at_home(str(disk / "home")))
        assert rows["disk"].health is Health.WARN
        assert rows["disk"].fix == "quintet gc"
        fill(disk)
        rows = by_name(look_at_home(str(disk / "home")))
        assert rows["disk"].health is Health.FAIL
        assert rows["writing"].health is Health.FAIL
        assert rows["writing"].fix.startswith("Free some space")
        assert list((disk / "home").iterdir()) == []
