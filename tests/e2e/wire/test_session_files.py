"""The files of a session with the real executable: killed at the worst moment, two at once, gone on with."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.wire.test_stdio import HOLDS, SAYS, client
from tests.fakes.wire_client import WireClient, kinds, spoken
from tests.faults.processes import quintet, wait_until, write_home

TURN = ["TurnBegin", "StepBegin", "ContentPart", "ContentPart", "StatusUpdate", "TurnEnd"]


def directory(tmp_path: Path) -> Path:
    work = hashlib.md5(str(tmp_path / "work").encode(), usedforsecurity=False).hexdigest()
    return tmp_path / "home" / "share" / "sessions" / work


def lines(tmp_path: Path, name: str, session: str = "s1") -> list[Any]:
    return [json.loads(line) for line in (directory(tmp_path) / session / name).read_text().splitlines()]


def logged(tmp_path: Path, session: str = "s1") -> list[str]:
    return [row["message"]["type"] for row in lines(tmp_path, "wire.jsonl", session)[1:]]


@pytest.mark.req("wire:S93", "wire:S94", "wire:S95")
def test_a_session_is_on_disk_when_its_prompt_is_answered_and_goes_on_by_continue(tmp_path: Path) -> None:
    with client(tmp_path) as wire:
        wire.prompt("first")
        (session,) = [p.name for p in directory(tmp_path).iterdir()]
        assert logged(tmp_path, session) == TURN
        wire.hang_up()
        assert wire.ended(5) == (0, "")
    before = len(lines(tmp_path, "context.jsonl", session))
    with client(tmp_path, SAYS, "--continue") as wire:
        assert spoken(wire.call("replay")) == "one two"
        wire.prompt("second")
    assert [p.name for p in directory(tmp_path).iterdir()] == [session]
    assert logged(tmp_path, session) == TURN * 2
    assert len(lines(tmp_path, "context.jsonl", session)) == before * 2 - 1


@pytest.mark.req("wire:S94")
def test_a_directory_behind_a_link_is_called_as_the_client_calls_it_and_a_link_turned_round_means_other_work(
    tmp_path: Path,
) -> None:
    home, link = write_home(tmp_path / "home", SAYS), tmp_path / "link"
    for real in ("one", "two"):
        (tmp_path / real).mkdir()
    link.symlink_to("one")
    flags = ("--session", "s1")
    with WireClient(home, *flags, work=link) as wire:
        wire.prompt("first")
    there = hashlib.md5(str(link).encode(), usedforsecurity=False).hexdigest()
    assert [p.name for p in (home / "share" / "sessions").iterdir()] == [there]
    used = json.loads((home / "share" / "kimi.json").read_text())["work_dirs"]
    assert [(row["path"], row["last_session_id"]) for row in used] == [(str(link), "s1")]
    with WireClient(home, "--continue", work=link) as wire:
        assert spoken(wire.call("replay")) == "one two"
    link.unlink()
    link.symlink_to("two")
    with WireClient(home, *flags, work=link) as wire:
        wire.prompt("second")
        assert spoken(wire.call("replay")) == "one two" * 2
    threads = quintet("threads", "list", "--json", home=home).lines
    assert {row["settings"]["cwd"] for row in threads} == {str(tmp_path / "one"), str(tmp_path / "two")}


@pytest.mark.req("mechanisms:M6.resumable")
@pytest.mark.parametrize("point", ["finish.after_commit", "mirror.before_commit:1", "mirror.before_commit:2"])
def test_a_process_killed_around_the_end_of_a_turn_is_caught_up_with(tmp_path: Path, point: str) -> None:
    with client(tmp_path, SAYS, "--session", "s1", QUINTET_FAILPOINT=point) as wire:
        wire.send(id="p", method="prompt", params={"user_input": "first"})
        assert "reply" not in kinds(wire.rest())
        assert wire.popen.wait(10) == -9
    with client(tmp_path, SAYS, "--session", "s1") as wire:
        wire.call("replay")
        assert logged(tmp_path) == TURN
        wire.prompt("second")
    assert logged(tmp_path) == TURN * 2
    said = [row["content"] for row in lines(tmp_path, "context.jsonl") if row["role"] == "user"]
    assert said == ["first", "second"]


@pytest.mark.req("wire:S93", "mechanisms:M6.resumable")
def test_a_session_killed_in_its_first_turn_is_what_continue_goes_on_with(tmp_path: Path) -> None:
    with client(tmp_path, HOLDS) as wire:
        wire.send(id="p", method="prompt", params={"user_input": "first"})
        wire.until(lambda m: "ContentPart" in str(m))
        wait_until((tmp_path / "home" / "share" / "kimi.json").exists, 20)
        wire.popen.kill()
        wire.popen.wait(10)
    with client(tmp_path, SAYS, "--continue") as wire:
        heard = wire.call("replay")
        assert kinds(heard) == ["TurnBegin", "StepBegin", "ContentPart", "TurnEnd", "reply"]
        assert spoken(heard) == "begin "
        assert wire.prompt("second")[-1]["result"] == {"status": "finished"}
        (session,) = [p.name for p in directory(tmp_path).iterdir()]
    assert logged(tmp_path, session) == ["TurnBegin", "StepBegin", "ContentPart", "TurnEnd", *TURN]
    said = [row["content"] for row in lines(tmp_path, "context.jsonl", session) if row["role"] == "user"]
    assert said == ["first", "second"]


@pytest.mark.req("mechanisms:M6.all")
def test_with_all_mirrored_a_thread_of_another_protocol_is_found_by_kimis_clients(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home", SAYS, '[mirrors]\nkimi = "all"\n')
    (tmp_path / "work").mkdir()
    share = {"KIMI_SHARE_DIR": str(home / "share")}
    done = quintet("run", "first", home=home, cwd=tmp_path / "work", **share)
    assert done.code == 0, done
    (session,) = [p.name for p in directory(tmp_path).iterdir()]
    assert logged(tmp_path, session) == TURN
    with WireClient(home, "--continue", work=tmp_path / "work") as wire:
        assert spoken(wire.call("replay")) == "one two"


@pytest.mark.req("mechanisms:M6.owner")
def test_a_turn_of_another_process_and_protocol_is_in_the_files_too(tmp_path: Path) -> None:
    with client(tmp_path, SAYS, "--session", "s1") as wire:
        wire.prompt("first")
        (thread,) = quintet("threads", "list", "--json", home=tmp_path / "home").lines
        done = quintet("run", "--thread", thread["id"], "second", home=tmp_path / "home", cwd=tmp_path / "work")
        assert done.code == 0, done
        assert logged(tmp_path) == TURN * 2
        wire.prompt("third")
    assert logged(tmp_path) == TURN * 3
    said = [row["content"] for row in lines(tmp_path, "context.jsonl") if row["role"] == "user"]
    assert said == ["first", "second", "third"]


@pytest.mark.req("wire:S113")
def test_whoever_only_looks_leaves_no_directory_and_a_cancelled_turn_is_written(tmp_path: Path) -> None:
    with client(tmp_path, HOLDS, "--session", "s1") as wire:
        wire.initialize()
        (directory(tmp_path) / "s1").mkdir(parents=True)
        wire.hang_up()
        assert wire.ended(5) == (0, "")
    assert not (directory(tmp_path) / "s1").exists()
    with client(tmp_path, HOLDS, "--session", "s1") as wire:
        wire.send(id="p", method="prompt", params={"user_input": "go"})
        wire.until(lambda m: "ContentPart" in str(m))
        wire.hang_up()
        assert wire.ended(5) == (0, "")
    assert logged(tmp_path) == ["TurnBegin", "StepBegin", "ContentPart", "TurnEnd"]


@pytest.mark.req("first_minutes:F5")
def test_the_doctor_tells_of_the_files_and_of_those_that_others_changed(tmp_path: Path) -> None:
    with client(tmp_path, SAYS, "--session", "s1") as wire:
        wire.prompt("first")
        wire.hang_up()
        assert wire.ended(5) == (0, "")
    with (directory(tmp_path) / "s1" / "wire.jsonl").open("a") as file:
        file.write("{}\n")
    (told,) = quintet("doctor", "--json", home=tmp_path / "home").lines
    (row,) = [row for row in told["rows"] if row["name"] == "mirrors"]
    assert row["health"] == "ok"
    assert "1 written by others since" in row["detail"]
