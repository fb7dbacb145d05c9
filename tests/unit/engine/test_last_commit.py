"""What happened is not forgotten because a commit failed: results, steers and the end come as soon as they can."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from quintet.domain.errors import Overloaded, StorageFull
from quintet.domain.event import ToolFinished, TurnFinished, TurnSteered
from quintet.domain.interaction import Verdict
from quintet.domain.item import ResultStatus, ToolResult, UserMessage
from quintet.domain.tool import Effect
from quintet.domain.turn import ClientKey, Mode, Turn, TurnState, WhenBusy
from quintet.engine import runs
from quintet.engine.feed import Feed
from quintet.engine.interactions import Answer
from tests.fakes.engine import ME, Process, parts
from tests.fakes.providers import Gate, GatedProvider, call, text
from tests.fakes.tools import FakeTool, SlowTool
from tests.fakes.waiting import LIMIT_S, soon


class Refusing:
    """Makes one of the journal's methods refuse, a number of times or until told otherwise."""

    def __init__(self, process: Process, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
        self._works = getattr(process.journal, method)
        self.times = 0
        monkeypatch.setattr(process.journal, method, self._call)

    async def _call(self, *given: Any, **named: Any) -> Any:
        if self.times:
            self.times -= 1
            raise StorageFull("no room")
        return await self._works(*given, **named)


async def ended(process: Process, turn: str) -> Turn:
    async def over() -> Turn | None:
        now = await process.journal.turn(turn)
        return now if now.state.ended else None

    return await process.feed.until(lambda e: isinstance(e.payload, TurnFinished), over, LIMIT_S)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "TRY_AGAIN_S", 0.01)


async def test_a_result_and_a_steer_survive_a_store_that_was_full_for_a_while(
    lone: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, finish = Refusing(lone, monkeypatch, "append"), Refusing(lone, monkeypatch, "finish")
    thread, tool = await lone.thread(), SlowTool(effect=Effect.WRITE)
    started = await lone.start(thread, GatedProvider(call("slow"), text("never")), [tool])
    await tool.started()
    await soon(lone.turns.steer(thread, parts("and this"), ME))
    append.times, finish.times = 1, 2
    tool.go.set()
    turn = await ended(lone, started.turn.id)
    assert turn.state is TurnState.FAILED
    (result,) = await lone.bodies(thread, ToolResult)
    assert (result.status, result.text) == (ResultStatus.OK, "slow but done")
    assert [p.status for p in await lone.payloads(thread, ToolFinished)] == [ResultStatus.OK]
    assert [b.parts[0].text for b in await lone.bodies(thread, UserMessage)] == ["please", "and this"]
    assert len(await lone.payloads(thread, TurnSteered)) == 1
    assert len(await lone.ends(started.turn.id, thread)) == 1
    assert (await lone.run(thread)).state is TurnState.DONE


async def test_a_turn_that_was_done_ends_as_done_when_its_last_commit_comes_late(
    lone: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = Refusing(lone, monkeypatch, "finish")
    finish.times = 2
    thread = await lone.thread()
    started = await lone.start(thread)
    assert (await ended(lone, started.turn.id)).state is TurnState.DONE


@pytest.mark.parametrize("method", ["thread", "commands"])
async def test_a_turn_that_failed_right_after_its_claim_frees_its_thread(
    lone: Process, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    thread = await lone.thread()
    refusing = Refusing(lone, monkeypatch, method)
    refusing.times = 1
    started = await lone.start(thread)
    assert (await ended(lone, started.turn.id)).state is TurnState.FAILED
    refusing.times = 0
    assert (await lone.run(thread)).state is TurnState.DONE


async def test_a_yes_does_not_reach_beyond_a_mode_that_was_tightened_meanwhile(lone: Process) -> None:
    thread, tool = await lone.thread(), FakeTool("write", effect=Effect.WRITE)
    started = await lone.start(thread, GatedProvider(call("write"), text("x")), [tool], mode=Mode.ASK)
    asked = await lone.asked(thread)
    await soon(lone.turns.set_mode(thread, Mode.READ_ONLY, ME))
    await soon(lone.interactions.answer(asked, Answer(Verdict.ALLOW), ME))
    await lone.ended(started.turn.id)
    (result,) = await lone.bodies(thread, ToolResult)
    assert result.status is ResultStatus.DENIED


async def test_with_a_key_a_busy_thread_gets_the_input_once_and_queues_it(lone: Process) -> None:
    thread, gate = await lone.thread(), Gate()
    first = await lone.start(thread, GatedProvider([gate, *text("1")]))
    await gate.stopped()
    key = ClientKey("me", "k", "digest")
    more = [await lone.start(thread, say="more", when_busy=WhenBusy.STEER, key=key) for _ in range(3)]
    assert len({s.turn.id for s in more}) == 1
    assert [s.folded for s in more] == [False, True, True]
    gate.open()
    await lone.ended(first.turn.id)
    await lone.ended(more[0].turn.id)
    assert [b.parts[0].text for b in await lone.bodies(thread, UserMessage)] == ["please", "more"]


async def test_a_failed_look_for_news_is_taken_again(lone: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    def look() -> bool:
        nonlocal looks
        looks += 1
        if looks == 1:
            raise Overloaded("busy once")
        return False

    tailed = asyncio.Event()

    async def tail() -> None:
        tailed.set()

    monkeypatch.setattr(lone.journal, "changed_elsewhere", look)
    monkeypatch.setattr(lone.journal, "tail", tail)
    with lone.feed.watching(lambda e: False):
        await soon(tailed.wait())
    assert looks == 2


async def test_an_answer_and_a_cancel_whose_events_were_missed_are_found_in_the_store(
    lone: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the events of others could not be read, the journal says so with an empty batch."""
    thread, tool = await lone.thread(), FakeTool("write", effect=Effect.WRITE)
    started = await lone.start(thread, GatedProvider(call("write"), text("x")), [tool], mode=Mode.ASK)
    asked = await lone.asked(thread)
    monkeypatch.setattr(lone.feed, "_deliver", lambda events: Feed._deliver(lone.feed, ()))
    lone.feed._stop_listening()
    lone.journal.listen(lone.feed._deliver)
    await soon(lone.interactions.answer(asked, Answer(Verdict.ALLOW), ME))
    assert (await lone.ended(started.turn.id)).state is TurnState.DONE
    slow = SlowTool()
    started = await lone.start(thread, GatedProvider(call("slow", call_id="c2")), [slow])
    await slow.started()
    assert (await soon(lone.turns.cancel(started.turn.id, ME))).state is TurnState.CANCELLED
