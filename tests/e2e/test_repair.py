"""The real `quintet repair`: from the line that names it to a home that works again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.faults.processes import QUINTET, Process, no_traceback, one_line, quintet, write_home

PAGE = 4096


def damaged(home: Path) -> bytes:
    """A home with three threads whose first page, with header and schema, is gone."""
    for word in ("alpha", "beta", "gamma"):
        assert quintet("run", f"echo {word}", home=home).code == 0
    path = home / "quintet.db"
    data = bytearray(path.read_bytes())
    data[:PAGE] = bytes(PAGE)
    path.write_bytes(data)
    return bytes(data)


@pytest.mark.req("reliability:R3")
def test_a_refused_journal_is_repaired_by_the_command_the_refusal_names(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home")
    old = damaged(home)
    assert "quintet repair" in one_line(quintet("threads", "list", home=home), 6)
    would = quintet("repair", "--dry-run", home=home)
    no_traceback(would)
    assert would.code == 0, would
    assert "nothing was changed" in would.out
    assert (home / "quintet.db").read_bytes() == old
    done = quintet("repair", "--json", home=home)
    assert done.code == 0, done
    (report,) = done.lines
    assert report["outcome"] == "repaired"
    assert report["kept"]["threads"] == 3
    assert report["lost"] == {}
    assert (Path(report["copied_to"]) / "quintet.db").read_bytes() == old
    listed = quintet("threads", "list", "--json", home=home)
    assert listed.code == 0, listed
    assert quintet("threads", "search", "beta", "--json", home=home).lines
    again = quintet("repair", home=home)
    assert (again.code, again.err) == (0, "")
    assert "healthy" in again.out
    assert quintet("run", "echo delta", home=home).code == 0


def test_repair_tells_in_words_what_was_kept_and_where_the_old_files_are(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home")
    damaged(home)
    done = quintet("repair", home=home)
    no_traceback(done)
    assert done.code == 0, done
    assert "repaired" in done.out
    assert str(home / "backups" / "damaged-") in done.out
    assert any(line.split()[:2] == ["threads", "3"] for line in done.out.splitlines()), done


def test_repair_is_refused_beside_a_server_and_names_it(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home")
    server = Process([QUINTET, "serve", "--knp-port", "0", "--home", str(home)])
    try:
        server.until(lambda line: "listens" in line)
        found = json.loads((home / "server.json").read_text())
        line = one_line(quintet("repair", home=home), 1)
        assert f"pid {server.pid}" in line
        assert json.loads((home / "server.json").read_text()) == found
    finally:
        server.close()
    assert quintet("repair", home=home).code == 0


def test_a_file_that_holds_nothing_is_kept_and_replaced_only_when_asked(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home")
    (home / "quintet.db").write_bytes(b"not a database at all")
    assert "--start-anew" in one_line(quintet("repair", home=home), 6)
    assert (home / "quintet.db").read_bytes() == b"not a database at all"
    done = quintet("repair", "--start-anew", home=home)
    assert done.code == 0, done
    (kept,) = (home / "backups").glob("damaged-*/quintet.db")
    assert kept.read_bytes() == b"not a database at all"
    assert quintet("run", "help", home=home).code == 0


def test_repairing_a_home_that_is_not_there_makes_nothing(tmp_path: Path) -> None:
    assert "--home" in one_line(quintet("repair", home=tmp_path / "none"), 6)
    assert not (tmp_path / "none").exists()
