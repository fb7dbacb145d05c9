"""The check-up as a whole: every room is asked, one that fails hides nothing, and nothing is opened or made."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from quintet.checkup import Checkup
from quintet.domain.checkup import Health, Row
from quintet.journal.clock import SystemClock
from tests.fakes.answers import Answers
from tests.fakes.waiting import soon
from tests.faults.disks import as_an_ordinary_user
from tests.faults.processes import QUINTET, environment, quintet
from tests.unit.providers.test_local_servers import OLLAMA, free_port


def checkup(home: Path, **given: object) -> Checkup:
    usual: dict[str, object] = {"ports": {"knp": free_port()}, "local": {"ollama": free_port()}}
    return Checkup(str(home), {"PATH": os.environ["PATH"]}, SystemClock(), lambda *_: None, **(usual | given))  # type: ignore[arg-type]


async def rows(of: Checkup, *, deep: bool = False) -> dict[str, Row]:
    found = await soon(of.rows(deep=deep))
    return {row.name: row for row in found}


@pytest.mark.req("first_minutes:F5")
async def test_on_an_empty_machine_every_row_is_there_and_none_fails(tmp_path: Path) -> None:
    found = await rows(checkup(tmp_path / "home"))
    assert {row.name for row in found.values() if row.health is Health.FAIL} == set()
    assert {"python", "home", "disk", "config", "journal", "sandbox", "model", "keys", "git", "clock"} <= set(found)
    assert not (tmp_path / "home").exists()


@pytest.mark.req("first_minutes:F5")
async def test_a_look_that_fails_unexpectedly_is_a_row_of_its_own_and_the_others_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> list[Row]:
        raise ZeroDivisionError("with a-secret-in-it")

    monkeypatch.setattr("quintet.workspace.home_check.look_at_home", broken)
    monkeypatch.setattr("quintet.providers.local_check.look_at_local", broken)
    defects: list[BaseException] = []
    found = await rows(checkup(tmp_path / "home", on_defect=defects.append))
    assert [found[name].health for name in ("home", "local models")] == [Health.FAIL, Health.FAIL]
    assert "ZeroDivisionError" in found["home"].detail
    assert "a-secret-in-it" not in str(found)
    assert found["clock"].health is Health.OK
    assert [type(defect) for defect in defects] == [ZeroDivisionError, ZeroDivisionError]


@pytest.mark.req("first_minutes:F5", "first_minutes:F6")
async def test_local_servers_and_ports_come_into_the_rows(tmp_path: Path) -> None:
    async with Answers(OLLAMA) as ollama:
        found = await rows(checkup(tmp_path / "home", ports={"knp": ollama.port}, local={"ollama": ollama.port}))
    assert found["Ollama"].health is Health.WARN
    assert found[f"port {ollama.port}"].health is Health.WARN


@pytest.mark.req("first_minutes:F6")
def test_keys_that_cannot_be_read_are_told_with_the_way_to_read_them(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert quintet("run", "echo hi", home=home).code == 0
    (home / "credentials").mkdir(mode=0o000)
    before = as_an_ordinary_user()
    try:
        for words in (("doctor", "--json"), ("--json",)):
            argv = [*before, QUINTET, *words, "--home", str(home)]
            done = subprocess.run(argv, capture_output=True, timeout=30, env=environment(), check=False)
            assert b"unexpectedly" not in done.stderr, done
            told = json.loads(done.stdout)
            if words[0] == "doctor":
                [row] = [row for row in told["rows"] if row["name"] == "keys"]
                assert (row["health"], done.returncode) == ("fail", 1)
                assert "chmod" in row["fix"]
            else:
                assert "stored keys cannot be read" in told["problem"]
    finally:
        (home / "credentials").chmod(0o700)


@pytest.mark.req("first_minutes:F6")
async def test_a_key_written_in_the_file_warns_and_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[providers.x]\nkind = "openai-chat"\napi_key = "canary-0123456789"\n')
    tmp_path.chmod(0o700)
    row = (await rows(checkup(tmp_path)))["config"]
    assert row.health is Health.WARN
    assert row.fix.startswith("Edit ")
    assert "canary" not in row.detail


@pytest.mark.req("first_minutes:F8")
def test_mending_what_is_well_does_nothing(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    assert checkup(tmp_path).mend() == []
    assert list(tmp_path.iterdir()) == []
