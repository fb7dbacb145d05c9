"""Turns on both stores: queue, claim, lease, finish, keys."""

from __future__ import annotations

import asyncio

import pytest

from quintet.domain import event as ev
from quintet.domain.command import Outcome
from quintet.domain.errors import Busy, Conflict, Invalid, LeaseLost, NotFound, TurnOver
from quintet.domain.event import Draft
from quintet.domain.interaction import Verdict
from quintet.domain.item import TextPart, UserMessage, user_text
from quintet.domain.principal import ENGINE
from quintet.domain.turn import ClientKey, Lease, Mode, TurnState
from quintet.domain.view import ViewReason
from quintet.journal import StoredJournal
from tests.unit.journal.conftest import Processes
from tests.unit.journal.nouns import (
    DONE,
    Clock,
    a_request,
    a_steer,
    a_thread,
    a_turn,
    asked,
    everything,
    kinds,
    said,
    started,
    text_delta,
)

INTERRUPTED = ev.TurnFinished(TurnState.CANCELLED)


@pytest.mark.req("mechanisms:M2.claim", "mechanisms:M7.title")
async def test_a_claim_starts_the_turn_adds_its_input_and_names_the_thread(journal: StoredJournal) -> None:
    thread, lease = await started(journal, text="\n  Fix the   tests \nplease")
    assert kinds(await everything(journal)) == [
        "thread.created",
        "turn.queued",
        "turn.started",
        "item.added",
        "thread.updated",
    ]
    now = await journal.thread(thread.id)
    assert (now.owner, now.epoch, now.active_turn, now.title) == (journal.owner, 1, lease.turn, "Fix the tests")
    (first,) = await journal.items(thread.id)
    assert first.body == UserMessage((TextPart("\n  Fix the   tests \nplease"),))
    assert (first.ordinal, first.turn) == (1, lease.turn)
    turn = await journal.turn(lease.turn)
    assert turn.state is TurnState.RUNNING
    assert turn.parts == (TextPart("\n  Fix the   tests \nplease"),)


async def test_a_title_that_exists_or_is_final_is_not_touched(journal: StoredJournal) -> None:
    named = await journal.create_thread(a_thread(title="Mine"))
    await started(journal, named)
    cleared = await journal.create_thread(a_thread(title_final=True))
    await started(journal, cleared)
    assert (await journal.thread(named.id)).title == "Mine"
    assert (await journal.thread(cleared.id)).title == ""


@pytest.mark.req("mechanisms:M2.queue", "mechanisms:M2.claim")
async def test_turns_of_a_thread_run_first_in_first_out(journal: StoredJournal) -> None:
    thread = await journal.create_thread(a_thread())
    first = (await journal.enqueue(a_turn(thread.id))).turn
    second = (await journal.enqueue(a_turn(thread.id))).turn
    with pytest.raises(Busy) as refused:
        await journal.claim(second.id, mode="ask", model="")
    assert refused.value.data == {"owner": journal.owner, "turn": first.id}
    lease = await journal.claim(first.id, mode="ask", model="")
    with pytest.raises(Busy) as refused:
        await journal.claim(second.id, mode="ask", model="")
    assert refused.value.data["turn"] == first.id
    await journal.finish(lease, DONE)
    again = await journal.claim(second.id, mode="ask", model="")
    assert again.epoch == lease.epoch + 1
    assert [t.id for t in await journal.turns(thread.id, live=True)] == [second.id]
    assert [t.id for t in await journal.turns(thread.id)] == [first.id, second.id]


async def test_a_living_owner_in_another_process_keeps_the_thread(processes: Processes) -> None:
    here, there = await processes.another(), await processes.another()
    thread, lease = await started(here)
    queued = (await there.enqueue(a_turn(thread.id))).turn
    with pytest.raises(Busy) as refused:
        await there.claim(queued.id, mode="ask", model="")
    assert refused.value.data == {"owner": here.owner, "turn": lease.turn}


@pytest.mark.req("mechanisms:M2.queue")
async def test_only_the_process_that_accepted_a_turn_runs_it(processes: Processes) -> None:
    here, there = await processes.another(), await processes.another()
    thread = await here.create_thread(a_thread())
    queued = (await here.enqueue(a_turn(thread.id))).turn
    with pytest.raises(Busy) as refused:
        await there.claim(queued.id, mode="ask", model="")
    assert refused.value.data["owner"] == here.owner


async def test_an_ended_turn_cannot_be_claimed_and_an_unknown_one_does_not_exist(journal: StoredJournal) -> None:
    _, lease = await started(journal)
    await journal.finish(lease, DONE)
    with pytest.raises(TurnOver):
        await journal.claim(lease.turn, mode="ask", model="")
    with pytest.raises(NotFound):
        await journal.claim("trn_none", mode="ask", model="")


@pytest.mark.req("mechanisms:M2.tree_lease")
async def test_a_child_is_not_claimed_while_another_process_runs_its_root(processes: Processes) -> None:
    here, there = await processes.another(), await processes.another()
    root, _ = await started(here)
    child = await here.create_thread(a_thread(parent=root))
    queued = (await there.enqueue(a_turn(child.id))).turn
    with pytest.raises(Busy):
        await there.claim(queued.id, mode="ask", model="")
    own = (await here.enqueue(a_turn((await here.create_thread(a_thread(parent=root))).id))).turn
    await here.claim(own.id, mode="ask", model="")


@pytest.mark.req("mechanisms:M2.tree_lease")
async def test_a_root_is_not_claimed_while_another_process_runs_one_below_it(processes: Processes) -> None:
    here, there = await processes.another(), await processes.another()
    root = await here.create_thread(a_thread())
    child = await here.create_thread(a_thread(parent=root))
    _, below = await started(here, child)
    queued = (await there.enqueue(a_turn(root.id))).turn
    with pytest.raises(Busy):
        await there.claim(queued.id, mode="ask", model="")
    await here.finish(below, DONE)
    assert (await there.claim(queued.id, mode="ask", model="")).thread == root.id


@pytest.mark.req("mechanisms:M5.revert")
async def test_a_new_turn_makes_a_revert_final(journal: StoredJournal) -> None:
    thread, lease = await started(journal)
    await journal.append([said("one"), said("two")], lease=lease)
    await journal.finish(lease, DONE)
    await journal.append([Draft(ev.ViewChanged(ViewReason.REVERT, keep_through=1), thread.id)])
    assert (await journal.thread(thread.id)).view.reverted == (2, 3)
    await started(journal, thread)
    view = (await journal.thread(thread.id)).view
    assert view.reverted is None
    assert view.hidden == ((2, 3),)


@pytest.mark.req("mechanisms:M2.writers")
async def test_leased_kinds_are_refused_without_the_current_lease(journal: StoredJournal) -> None:
    thread, lease = await started(journal)
    before = await journal.marks()
    stale = Lease(lease.thread, lease.turn, lease.owner, lease.epoch - 1)
    stranger = Lease(lease.thread, lease.turn, "own_other", lease.epoch)
    for bad in (None, stale, stranger):
        with pytest.raises(LeaseLost):
            await journal.append([Draft(said("x").payload, thread.id)], lease=bad)
    other = await journal.create_thread(a_thread())
    with pytest.raises(LeaseLost):
        await journal.append([Draft(said("x").payload, other.id)], lease=lease)
    assert (await journal.marks()).last == before.last + 1
    assert len(await journal.items(thread.id)) == 1


async def test_a_refused_append_leaves_nothing_behind(journal: StoredJournal) -> None:
    thread, lease = await started(journal)
    before = await everything(journal)
    with pytest.raises(NotFound):
        await journal.append([said("kept?"), Draft(ev.ThreadUpdated(title="x"), "thr_none")], lease=lease)
    assert await everything(journal) == before
    assert [i.ordinal for i in await journal.items(thread.id)] == [1]
    (added,) = await journal.append([said("next")], lease=lease)
    assert added.seq == before[-1].seq + 1
    assert [i.ordinal for i in await journal.items(thread.id)] == [1, 2]


async def test_a_job_refused_half_way_harms_no_other_of_its_commit(journal: StoredJournal) -> None:
    thread, lease = await started(journal)
    heard: list[ev.Event] = []
    journal.listen(heard.extend)
    half = [said("undone"), Draft(ev.ThreadUpdated(title="x"), "thr_none")]
    asks = [journal.append([said(f"{n}")] if n % 2 else half, lease=lease) for n in range(40)]
    answers = await asyncio.wait_for(asyncio.gather(*asks, return_exceptions=True), 10)
    assert [isinstance(a, NotFound) for a in answers] == [True, False] * 20
    told = [a[0] for a in answers if isinstance(a, list)]
    assert told == heard == (await everything(journal))[-20:]
    assert [i.ordinal for i in await journal.items(thread.id)] == list(range(1, 22))


async def test_what_has_its_own_request_is_no_plain_append(journal: StoredJournal) -> None:
    thread, lease = await started(journal)
    for payload in (DONE, ev.ThreadDeleted(), ev.ThreadCreated(thread)):
        with pytest.raises(Invalid):
            await journal.append([Draft(payload, thread.id)], lease=lease)


async def test_a_view_changes_only_while_idle_or_with_the_lease(journal: StoredJournal) -> None:
    thread, lease = await started(journal)
    clear = Draft(ev.ViewChanged(ViewReason.CLEAR), thread.id)
    with pytest.raises(Busy):
        await journal.append([clear])
    await journal.append([clear], lease=lease)
    await journal.finish(lease, DONE)
    await journal.append([clear])
    assert len((await journal.thread(thread.id)).view.marks) == 2


@pytest.mark.req("mechanisms:M4.holds", "mechanisms:M2.claim")
async def test_finishing_settles_everything_the_turn_left_open(journal: StoredJournal) -> None:
    thread, lease = await started(journal)
    holding, deferred = a_request("cal_1"), a_request("cal_2", holds=False)
    await journal.append([asked(holding), asked(deferred)], lease=lease)
    steer = await journal.post(a_steer(thread.id, lease.turn))
    events = await journal.finish(lease, INTERRUPTED, [said("bye")])
    assert kinds(events) == ["item.added", "interaction.resolved", "command.settled", "turn.finished"]
    decision = (await journal.interaction(holding.id)).decision
    assert decision is not None
    assert (decision.verdict, decision.by, decision.reason) == (Verdict.DENY, ENGINE, "cancelled")
    assert (await journal.interaction(deferred.id)).decision is None
    assert [i.id for i in await journal.interactions(root=thread.id)] == [deferred.id]
    assert (await journal.command(steer.id)).outcome is Outcome.TURN_OVER
    now = await journal.thread(thread.id)
    assert (now.owner, now.active_turn, now.epoch) == ("", "", 1)
    assert (await journal.turn(lease.turn)).state is TurnState.CANCELLED


@pytest.mark.req("mechanisms:M2.claim")
async def test_a_turn_ends_exactly_once(journal: StoredJournal) -> None:
    _, lease = await started(journal)
    await journal.finish(lease, DONE)
    with pytest.raises(LeaseLost):
        await journal.finish(lease, INTERRUPTED)
    with pytest.raises(LeaseLost):
        await journal.append([said("late")], lease=lease)
    assert kinds(await everything(journal)).count("turn.finished") == 1


async def test_a_queued_turn_is_dropped_by_its_runner_or_once_that_is_dead(processes: Processes) -> None:
    here, there = await processes.another(), await processes.another()
    thread = await here.create_thread(a_thread())
    first, second = [(await here.enqueue(a_turn(thread.id))).turn for _ in range(2)]
    with pytest.raises(Busy):
        await there.drop_queued(first.id, INTERRUPTED)
    assert await here.drop_queued(first.id, INTERRUPTED)
    assert not await here.drop_queued(first.id, INTERRUPTED)
    processes.die(here)
    assert await there.drop_queued(second.id, INTERRUPTED)
    assert await there.turns(thread.id, live=True) == []


async def test_only_idle_refuses_while_a_turn_runs_or_waits(journal: StoredJournal) -> None:
    thread, lease = await started(journal)
    with pytest.raises(Busy):
        await journal.enqueue(a_turn(thread.id), only_idle=True)
    await journal.finish(lease, DONE)
    waiting = (await journal.enqueue(a_turn(thread.id), only_idle=True)).turn
    with pytest.raises(Busy):
        await journal.enqueue(a_turn(thread.id), only_idle=True)
    await journal.drop_queued(waiting.id, INTERRUPTED)
    await journal.enqueue(a_turn(thread.id), only_idle=True)


@pytest.mark.req("reliability:R15")
async def test_one_key_sent_twenty_times_at_once_makes_one_turn(processes: Processes) -> None:
    here, there = await processes.another(), await processes.another()
    thread = await here.create_thread(a_thread())
    key = ClientKey("me", "k1", "digest")
    asks = [(here, there)[n % 2].enqueue(a_turn(thread.id), key=key) for n in range(20)]
    answers = await asyncio.wait_for(asyncio.gather(*asks), 10)
    assert len({a.turn.id for a in answers}) == 1
    assert [a.folded for a in answers].count(False) == 1
    assert len(await here.turns(thread.id)) == 1
    with pytest.raises(Conflict):
        await there.enqueue(a_turn(thread.id), key=ClientKey("me", "k1", "another body"))
    assert not (await here.enqueue(a_turn(thread.id), key=ClientKey("you", "k1", "digest"))).folded


async def test_a_key_is_forgotten_after_a_day(journal: StoredJournal, clock: Clock) -> None:
    thread = await journal.create_thread(a_thread())
    key = ClientKey("me", "k1", "digest")
    first = await journal.enqueue(a_turn(thread.id), key=key)
    clock.now += 24 * 3600 * 1000 - 1
    assert (await journal.enqueue(a_turn(thread.id), key=key)).turn.id == first.turn.id
    clock.now += 1
    assert not (await journal.enqueue(a_turn(thread.id), key=key)).folded


async def test_pushed_deltas_keep_their_place_among_other_writes(journal: StoredJournal) -> None:
    thread, lease = await started(journal)
    journal.push([text_delta("itm_1", 0, "Hel"), text_delta("itm_1", 1, "lo")], lease)
    await journal.append([said("Hello")], lease=lease)
    journal.push([text_delta("itm_2", 0, "more")], lease)
    await journal.finish(lease, DONE)
    await journal.room()
    tail = (await everything(journal, thread.id))[-5:]
    assert kinds(tail) == ["text.delta", "text.delta", "item.added", "text.delta", "turn.finished"]
    assert tail[0].payload == ev.TextDelta("itm_1", 0, "Hel")
    assert {e.turn for e in tail} == {lease.turn}


async def test_deltas_of_two_turns_pushed_in_one_breath_keep_their_order(journal: StoredJournal) -> None:
    one, first = await started(journal)
    other, second = await started(journal)
    before = await everything(journal)
    for n in range(100):
        journal.push([text_delta("itm_1", n, "x")], first)
        if n % 3 == 0:
            journal.push([text_delta("itm_2", n, "y"), Draft(ev.ReasoningDelta("itm_3", n, "z"))], second)
    await journal.append([], lease=first)
    said_then = (await everything(journal))[len(before) :]
    wanted = []
    for n in range(100):
        wanted += [(one.id, first.turn, ev.TextDelta("itm_1", n, "x"))]
        if n % 3 == 0:
            wanted += [(other.id, second.turn, ev.TextDelta("itm_2", n, "y"))]
            wanted += [(other.id, second.turn, ev.ReasoningDelta("itm_3", n, "z"))]
    assert [(e.thread, e.turn, e.payload) for e in said_then] == wanted
    assert [e.seq for e in said_then] == sorted({e.seq for e in said_then})


async def test_a_push_with_a_lost_lease_shows_at_the_next_room_or_append(journal: StoredJournal) -> None:
    _, lease = await started(journal)
    _, other = await started(journal)
    await journal.finish(lease, DONE)
    before = await everything(journal)
    journal.push([text_delta("itm_1", 0, "late")], lease)
    journal.push([text_delta("itm_2", 0, "fine")], other)
    await journal.append([], lease=other)
    await journal.room(lease=other)
    with pytest.raises(LeaseLost):
        await journal.room()
    journal.push([text_delta("itm_1", 0, "late")], lease)
    await journal.append([], lease=other)
    with pytest.raises(LeaseLost):
        await journal.append([], lease=lease)
    assert kinds((await everything(journal))[len(before) :]) == ["text.delta"]


async def test_a_delta_that_cannot_be_stored_fails_alone(journal: StoredJournal) -> None:
    _, lease = await started(journal)
    journal.push([text_delta("itm_1", 0, "\ud800"), text_delta("itm_1", 1, "good")], lease)
    with pytest.raises(Invalid):
        await asyncio.wait_for(_push_failure(journal), 10)
    with pytest.raises(Invalid):
        await journal.append([said("\ud800")], lease=lease)
    await journal.append([Draft(ev.TurnSteered("cmd_1", "itm_9"))], lease=lease)
    assert (await everything(journal))[-2].payload == ev.TextDelta("itm_1", 1, "good")


async def _push_failure(journal: StoredJournal) -> None:
    while True:
        await journal.room()
        await journal.marks()


async def test_the_mode_in_force_is_on_the_turn_and_the_queued_one_on_its_event(journal: StoredJournal) -> None:
    thread = await journal.create_thread(a_thread())
    queued = (await journal.enqueue(a_turn(thread.id))).turn
    lease = await journal.claim(queued.id, mode="read-only", model="")
    await journal.append([Draft(ev.TurnCancelRequested("cmd_1"))], lease=lease)
    assert (await journal.turn(queued.id)).mode is Mode.READ_ONLY
    event = (await everything(journal))[1]
    assert event.payload == ev.TurnQueued(queued)
    assert not event.damaged


@pytest.mark.req("mechanisms:M5.ordinals")
async def test_items_are_numbered_from_one_without_gaps(journal: StoredJournal) -> None:
    thread, lease = await started(journal)
    for n in range(5):
        await journal.append([said(f"{n}"), an_input(f"{n}")], lease=lease)
    found = await journal.items(thread.id)
    assert [i.ordinal for i in found] == list(range(1, 12))
    assert {i.thread for i in found} == {thread.id}
    assert await journal.items(thread.id, after=3, limit=2) == found[3:5]
    assert await journal.items(thread.id, newest=True, limit=3) == found[-3:]


def an_input(text: str) -> Draft:
    from quintet.domain.item import Item

    return Draft(ev.ItemAdded(Item("itm_s", "", "", 0, 0, user_text(text, steered=True))))
