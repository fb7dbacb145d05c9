"""The real `quintet backup`: one private file from which a home works again, made while others write."""

from __future__ import annotations

import os
import stat
import subprocess
import tarfile
from pathlib import Path

import apsw
import pytest

from quintet.cli import main
from tests.faults.processes import no_traceback, one_line, python_running, quintet, write_home


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = write_home(tmp_path / "home")
    for word in ("alpha", "beta"):
        assert quintet("run", f"echo {word}", home=made).code == 0
    (made / "credentials").mkdir(mode=0o700)
    (made / "credentials" / "openai").write_text("sk-canary-0123456789")
    (made / ".server.json.4711").write_text('{"token": "sk-canary-0123456789"}')  # a server was killed as it started
    (made / "backups" / ".making-dead").mkdir(parents=True)  # a backup was killed
    (made / "backups" / ".making-dead" / "quintet.db").write_text("half")
    (made / "blobs" / "ab").mkdir(parents=True)
    (made / "blobs" / "ab" / ("ab" * 32)).write_bytes(os.urandom(3_000_000))
    return made


def restored(archive: str, to: Path) -> Path:
    to.mkdir(mode=0o700)
    with tarfile.open(archive) as tar:
        tar.extractall(to, filter="data")
    return to


def test_a_home_works_again_from_its_backup_without_its_keys(home: Path, tmp_path: Path) -> None:
    done = quintet("backup", "--json", home=home)
    assert done.code == 0, done
    (said,) = done.lines
    assert said["whole"] is True
    assert stat.S_IMODE(os.stat(said["path"]).st_mode) == 0o600
    assert b"sk-canary" not in Path(said["path"]).read_bytes()
    again = restored(said["path"], tmp_path / "again")  # without what the killed one had left
    assert [p.name for p in (home / "backups").iterdir()] == [os.path.basename(said["path"])]
    before, after = (quintet("threads", "list", "--json", home=h).lines for h in (home, again))
    assert before == after
    assert (again / "blobs" / "ab" / ("ab" * 32)).read_bytes() == (home / "blobs" / "ab" / ("ab" * 32)).read_bytes()
    assert quintet("run", "echo gamma", home=again).code == 0
    assert quintet("audit", "verify", home=again).code == 0


def test_several_of_one_second_each_have_their_own_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = write_home(tmp_path / "home")
    assert main(["run", "echo hi", "--home", str(home)]) == 0
    monkeypatch.setattr("quintet.cli.backup.stamp", lambda: "20300101T000000Z")
    for _ in range(3):
        assert main(["backup", "--home", str(home)]) == 0, capsys.readouterr()
    names = {path.name.removeprefix("quintet-20300101T000000Z") for path in (home / "backups").iterdir()}
    assert names == {".tar", "-2.tar", "-3.tar"}


def test_a_home_unpacked_as_the_backup_says_is_open_to_nobody_else(home: Path, tmp_path: Path) -> None:
    done = quintet("backup", "-o", str(tmp_path / "all.tar"), home=home)
    said = next(line for line in done.out.splitlines() if line.startswith("To use it: "))
    line, _, _ = said.removeprefix("To use it: ").rpartition(" && ")
    subprocess.run(["sh", "-c", f"umask 022; {line}"], cwd=tmp_path, check=True, timeout=30)
    made = list((tmp_path / "NEW").rglob("*"))
    assert any(path.name == "blobs" for path in made)
    assert [path for path in made if stat.S_IMODE(path.stat().st_mode) & 0o077] == []


def test_a_backup_goes_where_it_is_told_and_overwrites_nothing(home: Path, tmp_path: Path) -> None:
    target = tmp_path / "mine.tar"
    assert quintet("backup", "-o", str(target), home=home).code == 0
    before = target.read_bytes()
    assert "exists already" in one_line(quintet("backup", "-o", str(target), home=home), 2)
    assert target.read_bytes() == before
    assert quintet("backup", "-o", str(target), "--force", home=home).code == 0


def test_a_backup_made_while_others_write_is_whole(home: Path, tmp_path: Path) -> None:
    with python_running("tests.faults.driver", str(home), "backup", "0") as process:
        process.until(lambda line: line.startswith("ready"))
        for n in range(3):
            (said,) = quintet("backup", "-o", str(tmp_path / f"{n}.tar"), "--json", home=home).lines
            assert said["whole"] is True
        assert process.popen.poll() is None, process.words()
        process.kill()
    again = restored(str(tmp_path / "2.tar"), tmp_path / "again")
    assert quintet("audit", "verify", home=again).code == 0


def test_damage_is_told_and_the_backup_kept_all_the_same(home: Path) -> None:
    raw = apsw.Connection(str(home / "quintet.db"))
    raw.execute("UPDATE items SET body = x'7b7d'")
    raw.close()
    done = quintet("backup", home=home)
    no_traceback(done)
    assert done.code == 6
    assert "DAMAGED" in done.out
    assert len(list((home / "backups").iterdir())) == 1


def test_without_a_journal_one_line_says_so(tmp_path: Path) -> None:
    assert "no journal" in one_line(quintet("backup", home=tmp_path / "nothing"), 6)
    assert not (tmp_path / "nothing").exists()


def test_who_deletes_a_thread_is_told_of_the_backups_that_still_hold_it(home: Path) -> None:
    (said,) = quintet("backup", "--json", home=home).lines
    thread = quintet("threads", "list", "--json", home=home).lines[0]["id"]
    deleted = quintet("threads", "delete", thread, home=home)
    assert (deleted.code, said["path"] in deleted.err) == (0, True), deleted
