"""The same client key many times at once, and many runs at once on one home."""

from __future__ import annotations

import asyncio
import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from quintet.app import open_app
from quintet.domain.errors import Conflict
from quintet.domain.item import TextPart
from quintet.domain.principal import local
from quintet.domain.thread import ThreadQuery, ThreadSettings
from quintet.domain.turn import ClientKey, Mode
from tests.faults import tiers
from tests.faults.processes import Done, no_traceback, one_line, quintet, write_home

pytestmark = pytest.mark.fault
AT_ONCE = 20
ME = local("cli")


def key(name: str, body: str) -> ClientKey:
    return ClientKey("cli:local", name, hashlib.sha256(body.encode()).hexdigest())


@pytest.mark.req("reliability:R15")
@pytest.mark.timeout(tiers.limit_s(60))
async def test_one_key_at_once_from_twenty_tasks_makes_one_turn(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home")
    async with open_app(str(home), "one") as one:
        starter = one.starter(ME, mode=Mode.ASK)
        for number in range(tiers.figure("R15")):
            thread = (await one.threads.create(ThreadSettings(str(tmp_path)))).id
            parts = (TextPart(f"echo answer {number}"),)
            name = f"key{number}"
            starts = [one.turns.start(thread, parts, starter, key=key(name, "a")) for _ in range(AT_ONCE)]
            started = await asyncio.gather(*starts)
            assert len({s.turn.id for s in started}) == 1
            assert sum(not s.folded for s in started) == 1
            ended = await asyncio.gather(*(one.turns.wait(s.turn.id, 10) for s in started))
            assert {t.state.value for t in ended} == {"done"}
            assert len(await one.journal.turns(thread)) == 1
            with pytest.raises(Conflict):
                await one.turns.start(thread, (TextPart("echo other"),), starter, key=key(name, "b"))
            assert len(await one.journal.turns(thread)) == 1


@pytest.mark.req("reliability:R15")
@pytest.mark.parametrize("number", range({"test": 1, "pr": 2, "long": 20}[tiers.TIER]))
@pytest.mark.timeout(tiers.limit_s(90))
def test_one_key_from_twenty_processes_at_once_makes_one_turn_with_one_answer(tmp_path: Path, number: int) -> None:
    home = write_home(tmp_path / "home")
    effects = tmp_path / "effects"
    words = ("run", "--json", "--mode", "allow", "--idempotency-key", "k", f"run echo once >> {effects}")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        done = list(pool.map(lambda _: quintet(*words, home=home, timeout_s=60, cwd=tmp_path), range(AT_ONCE)))
    for call in done:
        no_traceback(call)
        assert call.code == 0, call
    assert effects.read_text() == "once\n"
    ends = {json.dumps(call.lines[-1]) for call in done}
    assert len(ends) == 1, ends
    assert all(call.lines[-1]["kind"] == "turn.finished" for call in done)
    answers = {_answer(call) for call in done}
    assert len(answers) == 1, answers
    other = quintet("run", "--mode", "allow", "--idempotency-key", "k", "echo something else", home=home)
    assert "key" in one_line_at_end(other, 1)
    assert len(quintet("threads", "list", "--json", home=home).lines) == 1


def one_line_at_end(done: Done, code: int) -> str:
    return one_line(done, code)


def _answer(done: Done) -> str:
    items = [line["payload"]["item"] for line in done.lines if line["kind"] == "item.added"]
    return str([item["body"]["text"] for item in items if item["body"]["type"] == "assistant"])


@pytest.mark.req("reliability:R16")
@pytest.mark.parametrize("number", range(tiers.figure("R16")))
@pytest.mark.timeout(tiers.limit_s(60))
def test_eight_runs_at_once_on_one_home_each_give_their_whole_answer(tmp_path: Path, number: int) -> None:
    pieces = 200
    home = write_home(tmp_path / "home", "scope: turn\n" + f'repeat: {pieces} every 0.001 text: "piece "\n')
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda n: quintet("run", f"prompt {n}", home=home, timeout_s=50), range(8)))
    for call in done:
        no_traceback(call)
        assert call.code == 0, call
        assert "lock" not in call.err.lower(), call
        assert call.out.split() == ["piece"] * pieces
    listed = quintet("threads", "list", "--json", home=home).lines
    assert sorted(t["title"] for t in listed) == [f"prompt {n}" for n in range(8)]
    assert {t["state"] for t in listed} == {"idle"}
    for thread in listed:
        items = quintet("threads", "show", thread["id"], "--json", home=home).lines[0]["items"]
        assert [i["body"]["type"] for i in items] == ["user", "assistant"]
        assert items[1]["body"]["text"].split() == ["piece"] * pieces
    print(f"8 runs, slowest {max(c.seconds for c in done):.2f} s")


@pytest.mark.req("reliability:R16")
async def test_eight_runs_at_once_on_a_home_that_does_not_exist_yet(tmp_path: Path) -> None:
    home = tmp_path / "fresh" / "home"
    done = await asyncio.gather(*(asyncio.to_thread(quintet, "run", f"echo {n}", home=home) for n in range(8)))
    assert [(c.code, c.out.strip()) for c in done] == [(0, str(n)) for n in range(8)], done
    async with open_app(str(home), "look") as app:
        assert len(await app.threads.page(ThreadQuery())) == 8
