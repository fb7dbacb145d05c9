"""What clients over a network need of the journal, on both stores: keys for threads, notes, named projects, agents."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from quintet.domain import event as ev
from quintet.domain.errors import Conflict
from quintet.domain.event import Draft
from quintet.domain.project import DEFAULT, root_of_name
from quintet.domain.thread import ThreadSettings
from quintet.domain.turn import ClientKey, TurnState
from quintet.journal import StoredJournal
from tests.unit.journal.nouns import DONE, Clock, a_thread, a_turn, everything, kinds, started

DAY_MS = 24 * 3600 * 1000


def key(body: str = "one") -> ClientKey:
    return ClientKey("knp:holder", "k1", body)


@pytest.mark.req("knp:K28")
async def test_a_key_makes_one_thread_for_a_day(journal: StoredJournal, clock: Clock) -> None:
    first = await journal.create_thread(a_thread(), key=key())
    assert (await journal.create_thread(a_thread(), key=key())).id == first.id
    with pytest.raises(Conflict):
        await journal.create_thread(a_thread(), key=key("another"))
    assert kinds(await everything(journal)) == ["thread.created"]
    clock.now += DAY_MS
    assert (await journal.create_thread(a_thread(), key=key("another"))).id != first.id


@pytest.mark.req("knp:K28")
async def test_a_key_whose_thread_was_deleted_makes_a_new_one(journal: StoredJournal) -> None:
    first = await journal.create_thread(a_thread(), key=key())
    await journal.delete_thread(first.id)
    assert (await journal.create_thread(a_thread(), key=key())).id != first.id


@pytest.mark.req("knp:K27")
async def test_notes_are_laid_over_each_other_and_told_with_the_thread_as_it_then_is(journal: StoredJournal) -> None:
    thread = await journal.create_thread(a_thread(metadata={"a": 1, "b": {"c": 2}}))
    for patch in ({"a": None, "d": [1]}, {"b": None}):
        await journal.append([Draft(ev.ThreadUpdated(title="t", metadata=patch), thread.id)])
    assert (await journal.thread(thread.id)).metadata == {"d": [1]}
    told = [e.payload for e in await everything(journal) if isinstance(e.payload, ev.ThreadUpdated)]
    assert [said.thread and said.thread.metadata for said in told] == [{"b": {"c": 2}, "d": [1]}, {"d": [1]}]
    assert [said.thread and said.thread.title for said in told] == ["t", "t"]


@pytest.mark.req("knp:K21")
async def test_a_name_alone_becomes_a_project_with_its_first_thread(journal: StoredJournal) -> None:
    first = await journal.create_thread(a_thread(project=root_of_name("fresh")))
    second = await journal.create_thread(a_thread(project=root_of_name("fresh")))
    (project,) = await journal.projects()
    assert (project.name, project.is_name, first.project, second.project) == ("fresh", True, project.id, project.id)
    events = await everything(journal)
    assert kinds(events) == ["project.added", "thread.created", "thread.created"]
    assert events[0].payload == ev.ProjectAdded(project)
    with pytest.raises(Conflict):
        await journal.create_thread(replace(a_thread(project=root_of_name("never")), id=first.id))
    assert [p.name for p in await journal.projects()] == ["fresh"]  # what fails leaves no name behind


@pytest.mark.req("knp:K21")
async def test_no_directory_is_called_default_or_takes_a_name_alone(journal: StoredJournal) -> None:
    await journal.create_thread(a_thread(project=root_of_name("app")))
    assert (await journal.project("/srv/default", DEFAULT)).name == "default-2"
    there = await journal.project("/srv/app", "app")
    assert (there.name, there.is_name) == ("app-2", False)
    assert await journal.project("/srv/app", "app") == there


async def test_a_threads_project_is_known_after_it_is_deleted(journal: StoredJournal) -> None:
    thread = await journal.create_thread(a_thread(project="prj_one"))
    await journal.delete_thread(thread.id)
    assert await journal.project_of(thread.id) == "prj_one"
    assert await journal.project_of("thr_never") == ""


@pytest.mark.req("knp:K2", "knp:K22")
@pytest.mark.parametrize("own", ["", "planner"])
async def test_a_turns_agent_is_told_with_its_beginning_and_its_end(journal: StoredJournal, own: str) -> None:
    thread = await journal.create_thread(replace(a_thread(), settings=ThreadSettings("/work", agent="reviewer")))
    turn = replace(a_turn(thread.id, runner=journal.owner), agent=own)
    await journal.enqueue(turn)
    lease = await journal.claim(turn.id, mode="ask", model="m/x")
    await journal.append([Draft(ev.ThreadUpdated(agent="another"), thread.id)])
    await journal.finish(lease, DONE)
    said = {e.kind: e.payload for e in await everything(journal)}
    begun, ended = said["turn.started"], said["turn.finished"]
    assert isinstance(begun, ev.TurnStarted)
    assert isinstance(ended, ev.TurnFinished)
    assert begun.agent == ended.agent == (own or "reviewer")
    assert (await journal.thread(thread.id)).ended_as is TurnState.DONE


@pytest.mark.req("knp:K24")
async def test_a_turn_knows_the_item_that_began_it_and_its_first_word_stays_whole(journal: StoredJournal) -> None:
    thread = await journal.create_thread(a_thread())
    _, first = await started(journal, thread)
    await journal.finish(first, DONE)
    _, second = await started(journal, thread)
    assert [(await journal.turn(lease.turn)).input for lease in (first, second)] == [1, 2]
    queued = [e for e in await everything(journal) if e.kind == "turn.queued"]
    assert [(e.damaged, e.payload.turn.input) for e in queued] == [(False, 0)] * 2  # type: ignore[union-attr]
    await journal.finish(second, DONE)
