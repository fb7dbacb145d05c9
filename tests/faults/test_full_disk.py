"""A full disk: new turns refused, a running one ended with its terminal facts, reads served, recovery by itself."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import apsw
import pytest

from quintet.app import open_app
from quintet.domain.errors import StorageFull
from quintet.domain.event import TurnFinished
from quintet.domain.item import ResultStatus, TextPart, ToolResult
from quintet.domain.principal import local
from quintet.domain.thread import ThreadQuery, ThreadSettings
from quintet.domain.turn import Mode, TurnState
from tests.faults import tiers
from tests.faults.disks import fill, small_disk
from tests.faults.ledger import all_events
from tests.faults.processes import living_with, one_line, quintet, write_home

pytestmark = pytest.mark.fault
ME = local("full")
ROUNDS = {"test": 1, "pr": 10, "long": 50}[tiers.TIER]
SCRIPT = 'scope: turn\ntext: "begin "\nuntil: {go}\nrepeat: 40000 text: "many words in many pieces "\n'


@pytest.mark.req("reliability:R9")
@pytest.mark.parametrize("number", range(ROUNDS))
@pytest.mark.timeout(tiers.limit_s(60))
async def test_a_running_turn_ends_as_storage_full_and_work_goes_on_when_there_is_room(
    tmp_path: Path, number: int
) -> None:
    dice = tiers.seeded(f"full{number}")
    with small_disk(tmp_path / "disk") as disk:
        home = write_home(disk / "home", SCRIPT.format(go=tmp_path / "go"))
        async with open_app(str(home), "full") as app:
            thread = (await app.threads.create(ThreadSettings(str(tmp_path)))).id
            starter = app.starter(ME, mode=Mode.ASK)
            first = await app.turns.start(thread, (TextPart("first"),), starter)
            with app.feed.follow(0, root=thread) as events:
                async for entry in events:
                    if getattr(entry, "kind", "") == "text.delta":
                        break
            filler = fill(disk, dice.choice([0, 0, dice.randrange(4096, 400_000)]))
            (tmp_path / "go").touch()
            ended = await app.turns.wait(first.turn.id, 30)
            assert ended.state is TurnState.FAILED, ended
            assert ended.error is not None
            assert ended.error.code == "storage_full", ended
            log = await all_events(app.journal)
            assert sum(isinstance(e.payload, TurnFinished) for e in log) == 1
            with pytest.raises(StorageFull):
                await app.turns.start(thread, (TextPart("second"),), starter)
            assert (await app.threads.page(ThreadQuery()))[0].id == thread
            assert await app.threads.items(thread)
            filler.unlink()
            third = await app.turns.start(thread, (TextPart("third"),), app.starter(ME, mode=Mode.ASK, model="offline"))
            assert (await app.turns.wait(third.turn.id, 20)).state is TurnState.DONE
            assert (home / "reserve").stat().st_size == 2 * 1024 * 1024
        connection = apsw.Connection(str(home / "quintet.db"))
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        connection.close()


@pytest.mark.req("reliability:R9")
@pytest.mark.parametrize("wall", ["walled", "loose"])
async def test_a_disk_that_fills_during_a_command_ends_the_turn_and_the_command(tmp_path: Path, wall: str) -> None:
    word = f"83999.{os.getpid()}{len(wall)}"
    command = f"sleep {word} & echo begun; until [ -e go ]; do sleep 0.01; done; seq 100000"
    script = f"scope: turn\ntool_call: shell {json.dumps({'command': command})}\n---\ntext: end\n"
    config = "" if wall == "walled" else '[sandbox]\nmode = "off"\nrequired = false\n'
    work = tmp_path / "work"
    work.mkdir()
    with small_disk(tmp_path / "disk") as disk:
        home = write_home(disk / "home", script, config)
        async with open_app(str(home), "full") as app:
            thread = (await app.threads.create(ThreadSettings(str(work)))).id
            first = await app.turns.start(thread, (TextPart("go"),), app.starter(ME, mode=Mode.ALLOW))
            with app.feed.follow(0, root=thread) as events:
                async for entry in events:
                    if getattr(entry, "kind", "") == "tool.output_delta":
                        break
            filler = fill(disk)
            (work / "go").touch()
            ended = await app.turns.wait(first.turn.id, 30)
            assert ended.state is TurnState.FAILED, ended
            assert ended.error is not None
            assert ended.error.code == "storage_full", ended
            assert living_with(word) == []
            filler.unlink()
            again = await app.turns.start(
                thread, (TextPart("run echo again"),), app.starter(ME, mode=Mode.ALLOW, model="offline")
            )
            assert (await app.turns.wait(again.turn.id, 20)).state is TurnState.DONE


@pytest.mark.req("reliability:R9")
async def test_a_full_disk_in_the_workspace_is_the_commands_failure_and_not_the_turns(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        fill(disk)
        async with open_app(str(write_home(tmp_path / "home")), "full") as app:
            thread = (await app.threads.create(ThreadSettings(str(disk)))).id
            starter = app.starter(ME, mode=Mode.ALLOW)
            started = await app.turns.start(thread, (TextPart("run echo " + "x" * 9_000 + " > made"),), starter)
            assert (await app.turns.wait(started.turn.id, 20)).state is TurnState.DONE
            results = [i.body for i in await app.threads.items(thread) if isinstance(i.body, ToolResult)]
            assert [r.status for r in results] == [ResultStatus.ERROR]
            assert "No space left on device" in results[0].text


@pytest.mark.req("reliability:R9", "reliability:R10")
@pytest.mark.parametrize("leave", [0, 20_000], ids=["nothing-free", "a-little-free"])
async def test_the_command_line_on_a_full_disk_refuses_in_one_line_and_still_reads(tmp_path: Path, leave: int) -> None:
    with small_disk(tmp_path / "disk") as disk:
        home = write_home(disk / "home")
        assert quintet("run", "echo before", home=home).code == 0
        filler = fill(disk, leave)
        refused = await asyncio.to_thread(quintet, "run", "echo " + "x" * 90_000, home=home)
        line = one_line(refused, 6)
        assert "full" in line
        assert "quintet gc" in line
        for words in (("threads", "list"), ("events",), ("threads", "search", "before"), ("approvals", "list")):
            assert quintet(*words, "--json", home=home).code == 0, words
        filler.unlink()
        assert quintet("run", "echo after", home=home).out == "after\n"


@pytest.mark.req("reliability:R9", "reliability:R10")
def test_a_new_home_on_a_full_disk_is_refused_in_one_line(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        fill(disk)
        assert "full" in one_line(quintet("run", "help", home=disk / "home"), 6)
