"""Answers, commands and grants on both stores."""

from __future__ import annotations

import asyncio

import pytest

from quintet.domain import event as ev
from quintet.domain.command import Outcome
from quintet.domain.errors import AlreadyResolved, LeaseLost, NotFound, TurnOver
from quintet.domain.event import Draft
from quintet.domain.grant import Scope
from quintet.domain.interaction import Interaction
from quintet.journal import StoredJournal
from tests.unit.journal.conftest import Processes
from tests.unit.journal.nouns import (
    DONE,
    Clock,
    a_grant,
    a_request,
    a_steer,
    a_thread,
    asked,
    everything,
    kinds,
    no,
    started,
    yes,
)


@pytest.mark.req("mechanisms:M2.answers")
async def test_the_first_answer_wins_whoever_gives_it(processes: Processes) -> None:
    here, there = await processes.another(), await processes.another()
    thread, lease = await started(here)
    request = a_request()
    await here.append([asked(request)], lease=lease)
    (pending,) = await there.interactions(root=thread.id)
    assert (pending.thread, pending.root, pending.turn) == (thread.id, thread.id, lease.turn)
    answers = [(here, there)[n % 2].resolve(request.id, yes() if n % 2 else no(f"{n}")) for n in range(8)]
    results = await asyncio.wait_for(asyncio.gather(*answers, return_exceptions=True), 10)
    won = [r for r in results if isinstance(r, Interaction)]
    lost = [r for r in results if isinstance(r, AlreadyResolved)]
    assert (len(won), len(lost)) == (1, 7)
    assert {str(r.data["decision"]) for r in lost} == {str(won[0].decision)}
    assert kinds(await everything(here)).count("interaction.resolved") == 1
    assert await there.interactions(root=thread.id) == []
    assert await there.interactions(root=thread.id, pending=False) == won


@pytest.mark.req("mechanisms:M2.answers")
async def test_an_answer_carries_its_grant_in_the_same_commit(journal: StoredJournal) -> None:
    thread, lease = await started(journal)
    request = a_request()
    await journal.append([asked(request)], lease=lease)
    grant = a_grant(thread.id)
    answered = await journal.resolve(request.id, yes(), grant=grant)
    assert answered.decision is not None
    assert answered.decision.grant == grant.id
    made, resolved = (await everything(journal))[-2:]
    assert made.payload == ev.GrantMade(grant)
    assert resolved.payload == ev.InteractionResolved(request.id, request.call_id, answered.decision)
    assert await journal.grants(root=thread.id) == [grant]


async def test_an_unknown_request_cannot_be_answered(journal: StoredJournal) -> None:
    with pytest.raises(NotFound):
        await journal.resolve("int_none", yes())
    with pytest.raises(NotFound):
        await journal.interaction("int_none")


async def test_a_request_reads_as_it_was_asked_even_after_its_answer(journal: StoredJournal) -> None:
    thread, lease = await started(journal)
    heard: list[ev.Event] = []
    journal.listen(heard.extend)
    request = a_request()
    await journal.append([asked(request)], lease=lease)
    await journal.resolve(request.id, yes())
    steer = await journal.post(a_steer(thread.id, lease.turn))
    await journal.settle(steer.id, Outcome.REFUSED, [], lease, detail="no")
    again = [e for e in await everything(journal) if e.seq >= heard[0].seq]
    assert again == heard
    assert not any(e.damaged for e in again)


@pytest.mark.req("mechanisms:M2.commands")
async def test_a_command_waits_for_its_outcome(processes: Processes) -> None:
    here, there = await processes.another(), await processes.another()
    thread, lease = await started(here)
    first, second = [await there.post(a_steer(thread.id, lease.turn, t)) for t in ("a", "b")]
    assert [c.id for c in await here.commands(thread.id)] == [first.id, second.id]
    steered = Draft(ev.TurnSteered(first.id, "itm_1"))
    events = await here.settle(first.id, Outcome.ACCEPTED, [steered], lease, detail="soon")
    assert kinds(events) == ["turn.steered", "command.settled"]
    settled = await there.command(first.id)
    assert (settled.outcome, settled.detail) == (Outcome.ACCEPTED, "soon")
    assert [c.id for c in await here.commands(thread.id)] == [second.id]
    with pytest.raises(AlreadyResolved):
        await here.settle(first.id, Outcome.REFUSED, [], lease)
    with pytest.raises(NotFound):
        await here.command("cmd_none")


@pytest.mark.req("mechanisms:M2.commands")
async def test_a_command_for_an_ended_turn_is_refused(journal: StoredJournal) -> None:
    thread, lease = await started(journal)
    waiting = await journal.post(a_steer(thread.id, lease.turn))
    await journal.finish(lease, DONE)
    with pytest.raises(TurnOver):
        await journal.post(a_steer(thread.id, lease.turn))
    with pytest.raises(LeaseLost):
        await journal.settle(waiting.id, Outcome.ACCEPTED, [], lease)
    with pytest.raises(NotFound):
        await journal.post(a_steer(thread.id, "trn_none"))


async def test_a_grant_serves_its_uses_and_no_more(processes: Processes) -> None:
    here, there = await processes.another(), await processes.another()
    thread = await here.create_thread(a_thread())
    grant = a_grant(thread.id, uses=3)
    await here.append([Draft(ev.GrantMade(grant), thread.id)])
    used = await asyncio.gather(*((here, there)[n % 2].use_grant(grant.id) for n in range(6)))
    assert sorted(used) == [False, False, False, True, True, True]
    assert await there.grants(root=thread.id) == []
    assert not await here.use_grant("grt_none")


async def test_a_revoked_or_expired_grant_serves_nothing(journal: StoredJournal, clock: Clock) -> None:
    thread = await journal.create_thread(a_thread())
    revoked, brief = a_grant(thread.id), a_grant(thread.id, expires_ms=clock.now + 10)
    await journal.append([Draft(ev.GrantMade(g), thread.id) for g in (revoked, brief)])
    assert await journal.use_grant(revoked.id)
    await journal.revoke_grant(revoked.id)
    await journal.revoke_grant(revoked.id)
    assert not await journal.use_grant(revoked.id)
    assert kinds(await everything(journal)).count("grant.revoked") == 1
    assert await journal.use_grant(brief.id)
    clock.now += 10
    assert not await journal.use_grant(brief.id)
    assert await journal.grants() == []


async def test_grants_are_found_where_they_could_serve(journal: StoredJournal) -> None:
    thread = await journal.create_thread(a_thread())
    own, always = a_grant(thread.id), a_grant(scope=Scope.ALWAYS)
    await journal.append([Draft(ev.GrantMade(own), thread.id), Draft(ev.GrantMade(always))])
    assert await journal.grants(root=thread.id) == [own, always]
    assert await journal.grants(root="thr_other", project="prj_one") == [always]
    assert await journal.grants() == [own, always]
