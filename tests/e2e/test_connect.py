"""`quintet connect`: what it says to set is what answers, said by the real programs and a real server."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from quintet.cli import connect, main
from quintet.serving.server import Wish
from tests.fakes.knp_server import knp_server
from tests.faults.processes import one_line, quintet, write_home

pytestmark = pytest.mark.timeout(90)


@pytest.mark.req("first_minutes:F17")
@pytest.mark.parametrize(("client", "program"), [("kimi", "quintet-kimi"), ("kward", "quintet-kward")])
def test_a_program_that_is_named_is_there_and_has_answered(tmp_path: Path, client: str, program: str) -> None:
    home, room = tmp_path / "home", tmp_path / "room"
    room.mkdir()
    done = quintet("connect", client, "--json", home=home, TMPDIR=str(room))
    assert (done.code, done.err) == (0, ""), done
    (said,) = done.lines
    assert said["answered"].startswith("protocol version 1")
    named = {word for what in said["settings"].values() for word in what.replace('"', " ").split() if program in word}
    assert [os.access(path, os.X_OK) for path in named] == [True]
    assert list(room.iterdir()) == []
    assert not home.exists(), "what was tried was tried elsewhere"


@pytest.mark.req("first_minutes:F17")
def test_a_server_is_asked_with_its_token_and_its_absence_is_exit_7(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home")
    assert "quintet serve" in one_line(quintet("connect", "knp", home=home), 7)
    with knp_server(home, Wish(knp_port=0, roots=(str(tmp_path),))) as running:
        facts = running.server.facts()
        (home / "server.json").write_text(json.dumps(facts))
        done = quintet("connect", "knp", home=home)
        assert done.code == 0, done
        assert facts["knp"]["url"] in done.out
        assert facts["token"] not in done.out
        (home / "server.json").write_text(json.dumps({**facts, "token": "another"}))
        assert quintet("connect", "knp", home=home).code != 0


@pytest.mark.req("first_minutes:F17")
@pytest.mark.parametrize("does", ["exit 3", "echo no", "printf 'Content-Length: 2\\r\\n\\r\\n{}'"])
def test_a_program_that_does_not_answer_as_it_should_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], does: str
) -> None:
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\n{does}\n")
    program.chmod(0o755)
    monkeypatch.setattr(connect, "_program", lambda _: str(program))
    assert main(["connect", "kward", "--home", str(tmp_path / "home")]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1


@pytest.mark.req("first_minutes:F17")
def test_what_is_not_served_yet_and_what_is_not_known_are_told_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["connect", "kaiak", "--home", str(tmp_path)]) == 2
    assert "does not serve Kaiak yet" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["connect", "kimy", "--home", str(tmp_path)])
    assert "Did you mean kimi?" in capsys.readouterr().err
