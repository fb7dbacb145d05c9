"""Threads, handles, projects, search, deleting and pruning on both stores."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quintet.domain import event as ev
from quintet.domain.errors import Busy, Conflict, NotFound
from quintet.domain.event import Draft
from quintet.domain.ids import new_id
from quintet.domain.item import AssistantMessage, Item, ToolCall, user_text
from quintet.domain.thread import Handle, ThreadQuery
from quintet.domain.turn import ClientKey
from quintet.domain.view import ViewReason
from quintet.journal import StoredJournal, pruning
from quintet.journal.searching import words_of
from quintet.journal.transaction import Transaction
from tests.unit.journal.conftest import Processes
from tests.unit.journal.nouns import (
    DONE,
    Clock,
    a_grant,
    a_request,
    a_steer,
    a_thread,
    a_turn,
    an_item,
    asked,
    everything,
    kinds,
    said,
    started,
    text_delta,
)

GRACE_MS = 900_000


async def test_a_fork_keeps_the_ordinals_it_was_given(journal: StoredJournal) -> None:
    copies = [Item(new_id("itm"), "", "", n, 5, AssistantMessage(f"{n}"), origin=f"itm_{n}") for n in (1, 2, 5)]
    thread = await journal.create_thread(a_thread(), items=copies)
    assert thread.last_ordinal == 5
    found = await journal.items(thread.id)
    assert [(i.ordinal, i.origin, i.at_ms) for i in found] == [(1, "itm_1", 5), (2, "itm_2", 5), (5, "itm_5", 5)]
    _, lease = await started(journal, thread)
    (added,) = await journal.append([said("next")], lease=lease)
    assert isinstance(added.payload, ev.ItemAdded)
    assert added.payload.item.ordinal == 7
    assert kinds(await everything(journal, thread.id))[:4] == ["thread.created", *["item.added"] * 3]


@pytest.mark.req("mechanisms:M7.handles")
async def test_a_handle_names_one_living_thread(journal: StoredJournal) -> None:
    handle = Handle("kward", "scope", "session-1")
    first = await journal.create_thread(a_thread(), handle=handle)
    with pytest.raises(Conflict):
        await journal.create_thread(a_thread(), handle=handle)
    assert len(await journal.threads(ThreadQuery())) == 1
    found = await journal.find_handle("kward", "scope", "session-1")
    assert found == Handle("kward", "scope", "session-1", first.id)
    assert await journal.find_handle("kward", "other", "session-1") is None
    await journal.delete_thread(first.id)
    gone = await journal.find_handle("kward", "scope", "session-1")
    assert gone is not None
    assert gone.deleted_ms > 0
    again = await journal.create_thread(a_thread(), handle=handle)
    live = await journal.find_handle("kward", "scope", "session-1")
    assert live is not None
    assert (live.thread, live.deleted_ms) == (again.id, 0)
    assert await journal.add_handle(Handle("wire", "", "x", again.id)) == Handle("wire", "", "x", again.id)


async def test_threads_come_by_activity_in_pages(journal: StoredJournal, clock: Clock) -> None:
    made = []
    for n in range(7):
        clock.now += 1000
        made.append(await journal.create_thread(a_thread(project=f"prj_{n % 2}")))
    clock.now += 1000
    await started(journal, made[2])
    order = [made[n].id for n in (2, 6, 5, 4, 3, 1, 0)]
    first = await journal.threads(ThreadQuery(limit=3))
    assert [t.id for t in first] == order[:3]
    after = (first[-1].updated_ms, first[-1].id)
    assert [t.id for t in await journal.threads(ThreadQuery(before=after))] == order[3:]
    assert [t.id for t in await journal.threads(ThreadQuery(project="prj_1"))] == [made[n].id for n in (5, 3, 1)]
    child = await journal.create_thread(a_thread(parent=made[0]))
    assert child.id not in {t.id for t in await journal.threads(ThreadQuery())}
    assert child.id in {t.id for t in await journal.threads(ThreadQuery(children=True))}


async def test_only_what_changed_is_changed(journal: StoredJournal) -> None:
    thread = await journal.create_thread(a_thread())
    await journal.append([Draft(ev.ThreadUpdated(title="New", title_final=True, model="a/b"), thread.id)])
    now = await journal.thread(thread.id)
    assert (now.title, now.title_final, now.settings.model, now.settings.cwd) == ("New", True, "a/b", "/work")


async def test_a_project_is_registered_once_per_root_under_a_free_name(processes: Processes) -> None:
    here, there = await processes.another(), await processes.another()
    asks = [(here, there)[n % 2].project("/src/My App", "My App") for n in range(6)]
    found = await asyncio.gather(*asks)
    assert len({p.id for p in found}) == 1
    assert found[0].name == "my-app"
    assert (await there.project("/other/my-app", "My App")).name == "my-app-2"
    assert (await here.project("/third/my app", "my app")).name == "my-app-3"
    assert len(await here.projects()) == 3


@pytest.mark.req("mechanisms:M5.replace")
async def test_replacing_hides_everything_and_needs_an_idle_thread(journal: StoredJournal) -> None:
    thread, lease = await started(journal)
    with pytest.raises(Busy):
        await journal.replace_items(thread.id, [])
    await journal.finish(lease, DONE)
    events = await journal.replace_items(thread.id, [Item(new_id("itm"), "", "", 9, 0, user_text("anew"))])
    assert kinds(events) == ["thread.view_changed", "item.added"]
    view = (await journal.thread(thread.id)).view
    assert [n for n in (1, 2) if not view.is_hidden(n)] == [2]


# --- searching --------------------------------------------------------------------------------------------------------
async def test_search_finds_words_and_their_beginnings_in_items(journal: StoredJournal) -> None:
    thread, lease = await started(journal, text="Where is the parser?")
    await journal.append(
        [said("The Parser lives in src/parse_tree.py"), an_item(ToolCall("c", "grep", '{"x":"tokeniser"}'))],
        lease=lease,
    )
    assert [h.ordinal for h in await journal.search("parser")] == [2, 1]
    assert [h.ordinal for h in await journal.search("pars lives")] == [2]
    assert [h.ordinal for h in await journal.search("parse_tree.py")] == [2]
    assert [h.ordinal for h in await journal.search("tokeni")] == [3]
    assert await journal.search("absent") == []
    (hit,) = await journal.search("lives")
    assert (hit.thread, hit.title) == (thread.id, "Where is the parser?")
    assert "Parser lives" in hit.snippet
    assert len(await journal.search("parser", limit=1)) == 1
    assert await journal.search("parser", project="prj_other") == []


@pytest.mark.req("mechanisms:M5.hidden")
async def test_hidden_items_are_searched_only_when_asked(journal: StoredJournal) -> None:
    thread, lease = await started(journal)
    await journal.append([said("walrus")], lease=lease)
    await journal.finish(lease, DONE)
    await journal.append([Draft(ev.ViewChanged(ViewReason.REVERT, keep_through=1), thread.id)])
    assert await journal.search("walrus") == []
    (hit,) = await journal.search("walrus", hidden=True)
    assert hit.hidden
    await journal.append([Draft(ev.ViewChanged(ViewReason.UNREVERT), thread.id)])
    assert len(await journal.search("walrus")) == 1


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=40))
async def test_nothing_a_person_types_is_search_syntax(journal: StoredJournal, text: str) -> None:
    for words in (text, f'"{text}', f"{text}*", f"NEAR({text}", f"body:{text} AND OR NOT ("):
        await journal.search(words)


def test_words_are_runs_of_letters_and_digits() -> None:
    assert words_of('Foo_bar "b-z" 42 ÄÖ!') == ["foo", "bar", "b", "z", "42", "äö"]


# --- deleting ---------------------------------------------------------------------------------------------------------
@pytest.mark.req("mechanisms:M5.delete")
async def test_a_deleted_thread_leaves_only_a_tombstone_and_its_last_event(journal: StoredJournal) -> None:
    thread, lease = await started(journal, text="secretword")
    request = a_request(holds=False)
    await journal.append([asked(request), said("secretword again")], lease=lease)
    journal.push([text_delta("itm_1", 0, "secretword")], lease)
    steer = await journal.post(a_steer(thread.id, lease.turn))
    await journal.append([Draft(ev.GrantMade(a_grant(thread.id)), thread.id)])
    await journal.finish(lease, DONE)
    key = ClientKey("me", "k", "d")
    await journal.enqueue(a_turn(thread.id), key=key)
    await journal.drop_queued((await journal.turns(thread.id, live=True))[0].id, DONE)
    other, _ = await started(journal, text="another secretword")
    await journal.delete_thread(thread.id)
    with pytest.raises(NotFound):
        await journal.thread(thread.id)
    with pytest.raises(NotFound):
        await journal.items(thread.id)
    with pytest.raises(NotFound):
        await journal.append([Draft(ev.ThreadUpdated(title="x"), thread.id)])
    assert kinds(await everything(journal, thread.id)) == ["thread.deleted"]
    assert [h.thread for h in await journal.search("secretword", hidden=True)] == [other.id]
    assert await journal.turns(thread.id) == []
    assert await journal.grants() == []
    with pytest.raises(NotFound):
        await journal.interaction(request.id)
    with pytest.raises(NotFound):
        await journal.command(steer.id)
    (tombstone,) = await journal.threads(ThreadQuery(deleted=True))
    assert (tombstone.id, tombstone.title, tombstone.settings.cwd) == (thread.id, "", "")
    assert tombstone.deleted_ms > 0
    assert [t.id for t in await journal.threads(ThreadQuery())] == [other.id]
    assert not (await journal.enqueue(a_turn(other.id), key=key)).folded


async def test_a_thread_with_a_turn_is_not_deleted(journal: StoredJournal) -> None:
    thread, lease = await started(journal)
    with pytest.raises(Busy):
        await journal.delete_thread(thread.id)
    await journal.finish(lease, DONE)
    await journal.delete_thread(thread.id)


async def test_deleting_a_root_deletes_its_children(journal: StoredJournal) -> None:
    root = await journal.create_thread(a_thread())
    child = await journal.create_thread(a_thread(parent=root))
    grandchild = await journal.create_thread(a_thread(parent=child))
    sibling = await journal.create_thread(a_thread(parent=root))
    await journal.delete_thread(child.id)
    for gone in (child, grandchild):
        with pytest.raises(NotFound):
            await journal.thread(gone.id)
    await journal.thread(sibling.id)
    await journal.delete_thread(root.id)
    with pytest.raises(NotFound):
        await journal.thread(sibling.id)


@pytest.mark.req("mechanisms:M5.delete")
async def test_an_interrupted_erasure_is_finished_later(processes: Processes) -> None:
    here = await processes.another()
    thread, lease = await started(here)
    await here.append([said(f"{n}") for n in range(20)], lease=lease)
    await here.finish(lease, DONE)

    async def stops(name: str, work: object, *, settling: bool = False) -> object:
        assert name != "erase", "the process dies here"
        return await write(name, work, settling=settling)  # type: ignore[arg-type]

    write = here.store.write
    here.store.write = stops  # type: ignore[method-assign, assignment]
    with pytest.raises(AssertionError):
        await here.delete_thread(thread.id)
    there = await processes.another()
    await there.finish_erasures()
    assert kinds(await everything(there, thread.id)) == ["thread.deleted"]


# --- pruning ----------------------------------------------------------------------------------------------------------
async def streamed(journal: StoredJournal, count: int = 3) -> str:
    thread, lease = await started(journal)
    journal.push([text_delta(new_id("itm"), n, f"{n}") for n in range(count)], lease)
    await journal.append([said("whole")], lease=lease)
    await journal.finish(lease, DONE)
    return thread.id


@pytest.mark.req("mechanisms:M1.deltas")
async def test_deltas_go_after_the_grace_and_facts_stay(journal: StoredJournal, clock: Clock) -> None:
    await streamed(journal)
    facts = [e for e in await everything(journal) if e.kind != "text.delta"]
    clock.now += GRACE_MS
    early = await journal.prune(now_ms=clock.now)
    assert (early.deltas, len(await everything(journal))) == (0, len(facts) + 3)
    clock.now += 1
    report = await journal.prune(now_ms=clock.now)
    assert report.deltas == 3
    assert report.bytes_freed > 0
    marks = await journal.marks()
    assert marks.pruned_through == report.pruned_through == marks.last
    assert await everything(journal) == facts
    assert (await journal.prune(now_ms=clock.now)).deltas == 0


class Ping(ev.Payload, frozen=True):
    n: int


@pytest.mark.req("mechanisms:M1.signals")
async def test_signals_go_by_age_and_by_number(
    journal: StoredJournal, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = ev.Kind("test.ping", Ping, ev.Durability.SIGNAL, leased=False)
    monkeypatch.setitem(ev.KIND_BY_NAME, kind.name, kind)
    monkeypatch.setitem(ev.KIND_OF, Ping, kind)
    monkeypatch.setattr(pruning, "SIGNALS_KEPT", 5)
    await journal.append([Draft(Ping(n)) for n in range(8)])
    assert (await journal.prune(now_ms=clock.now)).signals == 3
    assert (await journal.marks()).signals_through == 3
    assert [e.payload for e in await everything(journal)] == [Ping(n) for n in range(3, 8)]
    clock.now += pruning.SIGNAL_LIFE_MS + 1
    await journal.append([Draft(Ping(9))])
    assert (await journal.prune(now_ms=clock.now)).signals == 5
    assert [e.payload for e in await everything(journal)] == [Ping(9)]


@pytest.mark.req("mechanisms:M1.deltas")
async def test_pruning_stops_at_the_first_turn_that_still_runs(journal: StoredJournal, clock: Clock) -> None:
    await streamed(journal)
    _, running = await started(journal)
    journal.push([text_delta("itm_1", 0, "open")], running)
    await journal.append([], lease=running)
    await streamed(journal)
    clock.now += 2 * GRACE_MS
    assert (await journal.prune(now_ms=clock.now)).deltas == 3
    kept = [e for e in await everything(journal) if e.kind == "text.delta"]
    assert len(kept) == 4
    assert (await journal.marks()).pruned_through < kept[0].seq
    await journal.finish(running, DONE)
    clock.now += GRACE_MS + 1
    assert (await journal.prune(now_ms=clock.now)).deltas == 4


@pytest.mark.req("mechanisms:M1.deltas")
async def test_pruning_looks_at_bounded_stretches_and_at_each_once(
    journal: StoredJournal, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "SPAN", 2)
    monkeypatch.setattr(pruning, "SPANS", 3)
    for _ in range(20):
        await journal.create_thread(a_thread())
    looked: list[tuple[int, list[int]]] = []
    real = journal.store.write

    def counting(name: str, work: Callable[[Transaction], Any], *, settling: bool = False) -> Awaitable[Any]:
        def counted(tx: Transaction) -> Any:
            drop, seen = tx.rows.drop_deltas, []

            def drop_deltas(after: int, through: int) -> tuple[int, int]:
                seen.append(through)
                return drop(after, through)

            tx.rows.drop_deltas = drop_deltas  # type: ignore[method-assign]
            try:
                return work(tx)
            finally:
                tx.rows.drop_deltas = drop  # type: ignore[method-assign]
                looked.append((tx.next, seen))

        return real(name, counted, settling=settling)

    monkeypatch.setattr(journal.store, "write", counting)
    assert (await journal.prune(now_ms=clock.now)).deltas == 0
    assert (await journal.marks()).pruned_through == 0
    assert max(len(seen) for _, seen in looked) == 3
    assert sum(len(seen) for _, seen in looked) == 10
    looked.clear()
    await journal.prune(now_ms=clock.now)
    assert not any(seen for _, seen in looked)
    _, lease = await started(journal)
    journal.push([text_delta("itm_1", n, "x") for n in range(5)], lease)
    await journal.finish(lease, DONE)
    clock.now += 3_600_000
    assert (await journal.prune(now_ms=clock.now)).deltas == 5
    assert (await journal.marks()).pruned_through >= 28
