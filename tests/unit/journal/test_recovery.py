"""Recovery on both stores: what dead processes leave is ended once, said plainly, and the thread is usable again."""

from __future__ import annotations

import pytest

from quintet.domain import event as ev
from quintet.domain.command import Outcome
from quintet.domain.errors import LeaseLost, TurnOver
from quintet.domain.event import Draft
from quintet.domain.ids import new_id
from quintet.domain.interaction import Decision, Verdict
from quintet.domain.item import AssistantMessage, Item, Reasoning, ResultStatus, ToolResult, UserMessage
from quintet.domain.tool import Effect
from quintet.domain.turn import TurnState
from tests.unit.journal.conftest import Processes
from tests.unit.journal.nouns import (
    DONE,
    ME,
    a_call,
    a_request,
    a_steer,
    a_thread,
    a_turn,
    an_external_call,
    an_intent,
    an_item,
    asked,
    everything,
    kinds,
    said,
    started,
    text_delta,
)


async def test_a_dead_turn_is_ended_interrupted_and_the_thread_is_usable(processes: Processes) -> None:
    here, there = await processes.another(), await processes.another()
    thread, lease = await started(here)
    processes.die(here)
    found = await there.recover(thread.id)
    assert found.turns == (lease.turn,)
    turn = await there.turn(lease.turn)
    assert turn.state is TurnState.INTERRUPTED
    assert turn.error is not None
    assert turn.error.code == "interrupted"
    now = await there.thread(thread.id)
    assert (now.owner, now.active_turn) == ("", "")
    assert now.epoch > lease.epoch
    _, fresh = await started(there, thread)
    await there.finish(fresh, DONE)


async def test_a_living_turn_is_left_alone(processes: Processes) -> None:
    here, there = await processes.another(), await processes.another()
    thread, lease = await started(here)
    await here.enqueue(a_turn(thread.id))
    before = await everything(there)
    assert (await there.recover()).turns == ()
    assert (await there.recover(thread.id)).turns == ()
    assert await everything(there) == before
    await here.append([said("still here")], lease=lease)


async def test_recovering_twice_changes_nothing_more(processes: Processes) -> None:
    here, there = await processes.another(), await processes.another()
    await started(here)
    processes.die(here)
    await there.recover()
    before = await everything(there)
    assert (await there.recover()).turns == ()
    assert await everything(there) == before


@pytest.mark.req("mechanisms:M2.writers")
async def test_a_dead_owner_that_wakes_up_writes_nothing_more(processes: Processes) -> None:
    here, there = await processes.another(), await processes.another()
    thread, lease = await started(here)
    processes.die(here)
    await started(there, thread)
    with pytest.raises(LeaseLost):
        await here.append([said("ghost")], lease=lease)
    with pytest.raises(LeaseLost):
        await here.finish(lease, DONE)
    assert kinds(await everything(there)).count("turn.finished") == 1


@pytest.mark.req("mechanisms:M2.recovery")
async def test_claiming_from_a_dead_owner_ends_its_turn_in_the_same_commit(processes: Processes) -> None:
    here, there = await processes.another(), await processes.another()
    thread, dead = await started(here)
    waiting = (await there.enqueue(a_turn(thread.id))).turn
    processes.die(here)
    heard: list[list[str]] = []
    there.listen(lambda events: heard.append([e.kind for e in events]))
    lease = await there.claim(waiting.id, mode="ask", model="")
    together = [e.kind for e in (await everything(there)) if e.turn in (dead.turn, lease.turn)][-4:]
    assert together == ["turn.queued", "turn.finished", "turn.started", "item.added"]
    assert ["turn.finished", "turn.started", "item.added"] in heard


async def test_enqueueing_for_an_idle_thread_does_not_count_the_dead(processes: Processes) -> None:
    here, there = await processes.another(), await processes.another()
    thread, lease = await started(here)
    queued = (await here.enqueue(a_turn(thread.id))).turn
    processes.die(here)
    await there.enqueue(a_turn(thread.id), only_idle=True)
    for dead in (lease.turn, queued.id):
        assert (await there.turn(dead)).state is TurnState.INTERRUPTED


@pytest.mark.req("mechanisms:M2.queue_death")
async def test_queued_turns_of_a_dead_runner_are_ended(processes: Processes) -> None:
    here, there = await processes.another(), await processes.another()
    thread = await here.create_thread(a_thread())
    lost = (await here.enqueue(a_turn(thread.id))).turn
    mine = (await there.enqueue(a_turn(thread.id))).turn
    processes.die(here)
    await there.claim(mine.id, mode="ask", model="")
    assert (await there.turn(lost.id)).state is TurnState.INTERRUPTED
    with pytest.raises(TurnOver):
        await there.claim(lost.id, mode="ask", model="")


@pytest.mark.req("mechanisms:M2.recovery", "mechanisms:M4.holds")
async def test_holding_requests_are_denied_and_deferred_ones_stay_open(processes: Processes) -> None:
    here, there = await processes.another(), await processes.another()
    thread, lease = await started(here)
    holding, deferred = a_request("cal_1"), a_request("cal_2", holds=False)
    await here.append([asked(holding), asked(deferred)], lease=lease)
    steer = await here.post(a_steer(thread.id, lease.turn))
    processes.die(here)
    await there.recover(thread.id)
    decision = (await there.interaction(holding.id)).decision
    assert decision is not None
    assert (decision.verdict, decision.reason) == (Verdict.DENY, "interrupted")
    assert (await there.interaction(deferred.id)).decision is None
    assert (await there.command(steer.id)).outcome is Outcome.OWNER_GONE


@pytest.mark.req("mechanisms:M2.recovery")
async def test_an_effect_without_result_is_unknown_and_never_more_than_that(processes: Processes) -> None:
    here, there = await processes.another(), await processes.another()
    thread, lease = await started(here)
    await here.append([a_call(c) for c in ("ran", "looked", "never", "ended", "answered")], lease=lease)
    await here.append([an_intent("ran", title="run rm -r build"), an_intent("looked", Effect.NONE)], lease=lease)
    await here.append([an_intent("ended"), Draft(ev.ToolFinished("ended", "shell", ResultStatus.ERROR))], lease=lease)
    await here.append([an_intent("answered")], lease=lease)
    answer = ToolResult("answered", "shell", ResultStatus.OK, "fine")
    await here.append([Draft(ev.ToolFinished("answered", "shell", ResultStatus.OK)), an_item(answer)], lease=lease)
    processes.die(here)
    found = await there.recover(thread.id)
    assert found.unknown == ("run rm -r build",)
    (unknown,) = await there.unknown_effects(thread.id)
    assert unknown.payload == ev.EffectUnknown("ran", "shell", "run rm -r build")
    assert await there.unknown_effects() == [unknown]
    assert await there.unknown_effects("thr_other") == []
    results = {i.body.call_id: i.body for i in await there.items(thread.id) if isinstance(i.body, ToolResult)}
    assert {c: r.status for c, r in results.items()} == {
        "ran": ResultStatus.UNKNOWN,
        "looked": ResultStatus.CANCELLED,
        "never": ResultStatus.CANCELLED,
        "ended": ResultStatus.ERROR,
        "answered": ResultStatus.OK,
    }
    assert "unknown" in results["ran"].text
    assert "never ran" in results["never"].text
    assert "safely" in results["looked"].text
    assert results["answered"].text == "fine"


@pytest.mark.req("mechanisms:M2.recovery")
async def test_a_call_the_client_runs_keeps_its_answer_or_is_unknown(processes: Processes) -> None:
    here, there = await processes.another(), await processes.another()
    thread, lease = await started(here)
    calls = {c: an_external_call(c) for c in ("answered", "failed", "refused", "asked", "twice")}
    await here.append([a_call(c, "deploy") for c in (*calls, "never")], lease=lease)
    await here.append([asked(call) for call in calls.values()], lease=lease)
    await there.resolve(calls["answered"].id, Decision(Verdict.ANSWER, ME, 1, result={"text": "deployed!"}))
    said_no = {"text": "no such host", "is_error": True}
    await there.resolve(calls["failed"].id, Decision(Verdict.ANSWER, ME, 1, result=said_no))
    await there.resolve(calls["refused"].id, Decision(Verdict.DENY, ME, 1, "not today"))
    await there.resolve(calls["twice"].id, Decision(Verdict.ANSWER, ME, 1, result={"text": "from the client"}))
    await here.append([an_item(ToolResult("twice", "deploy", ResultStatus.OK, "kept before"))], lease=lease)
    processes.die(here)
    found = await there.recover(thread.id)
    assert found.unknown == ("deploy",)
    (unknown,) = await there.unknown_effects(thread.id)
    assert unknown.payload == ev.EffectUnknown("asked", "deploy", "deploy")
    results = {i.body.call_id: i.body for i in await there.items(thread.id) if isinstance(i.body, ToolResult)}
    assert {c: r.status for c, r in results.items()} == {
        "answered": ResultStatus.OK,
        "failed": ResultStatus.ERROR,
        "refused": ResultStatus.ERROR,
        "asked": ResultStatus.UNKNOWN,
        "twice": ResultStatus.OK,
        "never": ResultStatus.CANCELLED,
    }
    assert results["answered"].text == "deployed!"
    assert results["failed"].text == "no such host"
    assert "not today" in results["refused"].text
    assert "unknown" in results["asked"].text
    assert results["twice"].text == "kept before"
    assert "never ran" in results["never"].text
    decision = (await there.interaction(calls["asked"].id)).decision
    assert decision is not None
    assert (decision.verdict, decision.reason) == (Verdict.DENY, "interrupted")


@pytest.mark.req("mechanisms:M2.recovery")
async def test_the_answer_of_a_client_is_kept_within_bounds(processes: Processes) -> None:
    here, there = await processes.another(), await processes.another()
    thread, lease = await started(here)
    call = an_external_call("long")
    await here.append([a_call("long", "deploy"), asked(call)], lease=lease)
    await there.resolve(call.id, Decision(Verdict.ANSWER, ME, 1, result={"text": "x" * 200_500}))
    processes.die(here)
    await there.recover(thread.id)
    (result,) = [i.body for i in await there.items(thread.id) if isinstance(i.body, ToolResult)]
    assert result.text == "x" * 200_000 + "\n[cut: the client returned 200500 characters]"


@pytest.mark.req("mechanisms:M2.recovery")
async def test_streamed_text_of_items_never_added_is_kept_as_partial(processes: Processes) -> None:
    here, there = await processes.another(), await processes.another()
    thread, lease = await started(here)
    whole, cut, thought = (new_id("itm") for _ in range(3))
    here.push([text_delta(whole, 0, "a"), text_delta(whole, 1, "b")], lease)
    added = Item(whole, thread.id, lease.turn, 0, 0, AssistantMessage("ab"))
    await here.append([Draft(ev.ItemAdded(added))], lease=lease)
    here.push([Draft(ev.ReasoningDelta(thought, 0, "hm"))], lease)
    here.push([text_delta(cut, n, t) for n, t in enumerate(("one ", "two ", "three"))], lease)
    await here.append([], lease=lease)
    processes.die(here)
    await there.recover(thread.id)
    items = await there.items(thread.id)
    assert [i.body for i in items if not isinstance(i.body, UserMessage)] == [
        AssistantMessage("ab"),
        Reasoning("hm", partial=True),
        AssistantMessage("one two three", partial=True),
    ]
    assert [i.id for i in items[1:]] == [whole, thought, cut]


async def test_children_of_a_dead_owner_are_ended_first(processes: Processes) -> None:
    here, there = await processes.another(), await processes.another()
    root, above = await started(here)
    child = await here.create_thread(a_thread(parent=root))
    _, below = await started(here, child)
    processes.die(here)
    found = await there.recover(root.id)
    assert found.turns == (below.turn, above.turn)
    assert (await there.thread(child.id)).owner == ""


async def test_an_accepted_steer_the_model_never_got_becomes_part_of_the_thread(processes: Processes) -> None:
    here, there = await processes.another(), await processes.another()
    thread, lease = await started(here)
    steer = await there.post(a_steer(thread.id, lease.turn, "use make"))
    await here.settle(steer.id, Outcome.ACCEPTED, [], lease)
    processes.die(here)
    await there.recover(thread.id)
    last = (await there.items(thread.id))[-1]
    assert last.body == UserMessage(steer.parts, steered=True)
    assert "turn.steered" in kinds(await everything(there))


@pytest.mark.req("mechanisms:M2.liveness")
async def test_an_owner_is_alive_to_itself_and_others_until_it_dies(processes: Processes) -> None:
    here, there = await processes.another(), await processes.another()
    assert here.owner != there.owner
    for asking in (here, there):
        assert await asking.alive(here.owner)
        assert await asking.alive(there.owner)
    processes.die(here)
    assert not await there.alive(here.owner)
    assert not await there.alive("own_never")
