"""Notices: kept whether or not a turn runs, given to the model once, at a step's beginning."""

from __future__ import annotations

from typing import Any

import pytest

from quintet.domain.errors import LeaseLost
from quintet.domain.event import Draft, HookTriggered, NoticeGiven, NoticePosted
from quintet.domain.hook import HookEvent
from quintet.domain.interaction import Verdict
from quintet.domain.item import Item, UserMessage, text_of
from quintet.domain.notice import End, Notice, Severity, of_background
from quintet.domain.turn import TurnState
from quintet.engine.interactions import Answer
from quintet.engine.notices import Notices
from tests.fakes.engine import ME, House, Process
from tests.fakes.hooks import subscription
from tests.fakes.providers import Gate, GatedProvider, call, text
from tests.fakes.tools import FakeTool, SlowTool
from tests.fakes.waiting import soon


def notice(number: int = 1, body: str = "End: exit code 0") -> Notice:
    return of_background(f"ntc_{number}", f"cal_{number}", End.COMPLETED, f"Command {number} is done", body, 5, {})


def told(items: tuple[Item, ...]) -> list[str]:
    """What a model reads of notices."""
    return [i.body.notice for i in items if isinstance(i.body, UserMessage) and i.body.notice]


async def post(process: Process, thread: str, *notices: Notice) -> None:
    for one in notices:
        await Notices(process.feed).post(thread, one)


@pytest.mark.req("mechanisms:M2.notices")
async def test_one_that_comes_while_nothing_runs_is_given_with_the_next_turns_first_step_and_never_again(
    one: Process,
) -> None:
    thread = await one.thread()
    await post(one, thread, notice(1), notice(2))
    model = GatedProvider(text("one"), text("two"))
    await one.run(thread, model, say="first")
    await one.run(thread, model, say="second")
    first, second = ([text_of(i.body) for i in request.items] for request in model.requests)
    assert first[0] == "first"
    assert [("Command 1 is done" in words, "Command 2 is done" in words) for words in first[1:]] == [
        (True, False),
        (False, True),
    ]
    assert [told(request.items) for request in model.requests] == [["ntc_1", "ntc_2"]] * 2  # as history
    assert second[-1] == "second"
    assert [p.notice.id for p in await one.payloads(thread, NoticeGiven)] == ["ntc_1", "ntc_2"]
    assert (await one.journal.thread(thread)).notices == ()


@pytest.mark.req("mechanisms:M2.notices")
async def test_one_that_comes_during_a_turn_is_given_with_its_next_step(one: Process) -> None:
    thread, slow = await one.thread(), SlowTool()
    model = GatedProvider(call("slow"), text("done"))
    started = await one.start(thread, model, [slow])
    await soon(slow.begun.wait())
    await post(one, thread, notice())
    slow.go.set()
    assert (await one.ended(started.turn.id)).state is TurnState.DONE
    assert [told(request.items) for request in model.requests] == [[], ["ntc_1"]]


async def test_a_turn_that_is_about_to_finish_neither_waits_nor_goes_on_for_one(one: Process) -> None:
    thread, gate = await one.thread(), Gate()
    model = GatedProvider([gate, *text("last words")], text("again"))
    started = await one.start(thread, model)
    await gate.stopped()
    await post(one, thread, notice())
    gate.open()
    await one.ended(started.turn.id)
    assert len(model.requests) == 1
    await one.run(thread, model)
    assert told(model.requests[1].items) == ["ntc_1"]


@pytest.mark.req("mechanisms:M2.notices")
async def test_what_was_posted_survives_its_process_and_what_was_given_is_not_given_again(house: House) -> None:
    first = await house.process()
    thread = await first.thread()
    await post(first, thread, notice(1))
    gate, model = Gate(), GatedProvider()
    await first.start(thread, GatedProvider([gate]))
    await gate.stopped()  # ntc_1 is given, the model has not answered
    await post(first, thread, notice(2))
    await first.die()
    second = await house.process()
    await second.run(thread, model, say="go on")
    assert told(model.requests[0].items) == ["ntc_1", "ntc_2"]
    assert [p.notice.id for p in await second.payloads(thread, NoticeGiven)] == ["ntc_1", "ntc_2"]


@pytest.mark.req("mechanisms:M2.writers", "mechanisms:M2.notices")
async def test_another_process_may_post_while_a_turn_runs_but_only_the_turns_owner_gives(house: House) -> None:
    owner, other = await house.process(), await house.process()
    thread, slow = await owner.thread(), SlowTool()
    model = GatedProvider(call("slow"), text("done"))
    started = await owner.start(thread, model, [slow])
    await soon(slow.begun.wait())
    await post(other, thread, notice())
    with pytest.raises(LeaseLost):
        await other.feed.append([Draft(NoticeGiven(notice(), "itm_1"), thread, started.turn.id)])
    slow.go.set()
    await owner.ended(started.turn.id)
    assert told(model.requests[1].items) == ["ntc_1"]


async def test_one_of_a_thread_that_is_gone_is_told_in_the_log(lone: Process) -> None:
    thread = await lone.thread()
    await lone.threads.delete(thread, ME)
    lines: list[str] = []
    await Notices(lone.feed, lines.append).post(thread, notice())
    assert "Command 1 is done" in lines[0]


async def test_known_secrets_are_masked_in_it(house: House) -> None:
    process = await house.process(secrets=("hunter2-hunter2",))
    thread = await process.thread()
    await post(process, thread, notice(body="Command: login hunter2-hunter2"))
    (posted,) = await process.payloads(thread, NoticePosted)
    assert "hunter2" not in repr(posted)
    assert "hunter2" not in repr((await process.journal.thread(thread)).notices)


@pytest.mark.parametrize("has", [True, False])
async def test_the_model_is_told_how_to_look_only_where_it_can(lone: Process, has: bool) -> None:
    thread = await lone.thread()
    await post(lone, thread, notice())
    model = GatedProvider(text("hm"))
    await lone.run(thread, model, [FakeTool("shell_output")] if has else [])
    assert ("shell_output" in text_of(model.requests[0].items[-1].body)) is has


@pytest.mark.req("models:H14")
async def test_the_hook_of_notifications_is_run_when_the_model_is_told(lone: Process) -> None:
    thread = await lone.thread()
    await post(lone, thread, notice())
    gate = Gate()
    started = await lone.start(
        thread, GatedProvider([gate, *text("done")]), hooks=[subscription(HookEvent.NOTIFIED, "^task")]
    )
    asked = (await lone.journal.interaction(await lone.asked(thread))).request
    given: dict[str, Any] = asked.input  # type: ignore[union-attr]
    assert {name: given[name] for name in ("sink", "notification_type", "title", "body", "severity")} == {
        "sink": "llm",
        "notification_type": "task.completed",
        "title": "Command 1 is done",
        "body": "End: exit code 0",
        "severity": Severity.SUCCESS,
    }
    await lone.interactions.answer(await lone.asked(thread), Answer(Verdict.ALLOW), ME)
    gate.open()
    await lone.ended(started.turn.id)
    (fired,) = await lone.payloads(thread, HookTriggered)
    assert (fired.event, fired.target) == (HookEvent.NOTIFIED, "task.completed")
