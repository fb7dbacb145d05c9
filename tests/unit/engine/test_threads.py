"""Threads: titles, forks, reverts, hidden items, deletion, and finding them again."""

from __future__ import annotations

import pytest

from quintet.domain.errors import Busy, Invalid, NotFound
from quintet.domain.event import Draft, ThreadUpdated, ViewChanged
from quintet.domain.grant import Scope
from quintet.domain.interaction import Verdict
from quintet.domain.item import AssistantMessage, Summary, UserMessage, user_text
from quintet.domain.thread import ThreadQuery
from quintet.domain.tool import Effect
from quintet.domain.turn import Mode, TurnState
from quintet.domain.view import ViewReason
from quintet.engine.interactions import Answer
from tests.fakes.engine import ME, Process
from tests.fakes.providers import Gate, GatedProvider, call, text
from tests.fakes.tools import FakeTool, SlowTool
from tests.fakes.waiting import soon


async def title(process: Process, thread: str) -> str:
    return (await process.journal.thread(thread)).title


async def words(process: Process, thread: str) -> list[str]:
    """What the model is sent when asked now, without the new input."""
    provider = GatedProvider(text("ok"))
    copy = await process.threads.fork(thread)
    await process.run(copy.id, provider, say="?")
    return [
        i.body.parts[0].text if isinstance(i.body, UserMessage) else i.body.text  # type: ignore[union-attr]
        for i in provider.requests[0].items[:-1]
    ]


async def talk(process: Process, *inputs: str) -> str:
    """A thread in which each input was answered with its own words and an exclamation mark."""
    thread = await process.thread()
    for said in inputs:
        await process.run(thread, GatedProvider(text(f"{said}!")), say=said)
    return thread


@pytest.mark.req("mechanisms:M7.title")
async def test_the_title_is_the_first_line_of_the_first_input_cut_at_eighty(one: Process) -> None:
    thread = await one.thread()
    await one.run(thread, say="\n  \n  fix   the door \nand more")
    assert await title(one, thread) == "fix the door"
    await one.run(thread, say="something else")
    assert await title(one, thread) == "fix the door"
    long = await one.thread()
    await one.run(long, say="x" * 200)
    assert len(await title(one, long)) == 80


@pytest.mark.req("mechanisms:M7.title")
async def test_a_rename_is_final(one: Process) -> None:
    thread = await one.thread()
    await one.threads.rename(thread, "  my \n name ")
    await one.run(thread, say="automatic")
    assert await title(one, thread) == "my name"
    assert (await one.journal.thread(thread)).title_final
    for bad in ("", " \n "):
        with pytest.raises(Invalid):
            await one.threads.rename(thread, bad)
    with pytest.raises(NotFound):
        await one.threads.rename("thr_00000000000000000000000000", "x")
    await one.threads.configure(thread, ThreadUpdated(model="a/b"))
    assert (await one.journal.thread(thread)).settings.model == "a/b"


@pytest.mark.req("mechanisms:M5.fork")
async def test_a_fork_copies_what_is_visible_with_ordinals_and_origin_and_nothing_else(one: Process) -> None:
    thread, tool = await talk(one, "a", "b"), FakeTool("put", effect=Effect.WRITE)
    await one.threads.revert(thread, 2)
    started = await one.start(thread, GatedProvider(call("put"), call("put", call_id="c2")), [tool], mode=Mode.ASK)
    await soon(one.interactions.answer(await one.asked(thread), Answer(Verdict.ALLOW, remember=Scope.THREAD), ME))
    await one.ended(started.turn.id)
    second = await one.start(
        thread, GatedProvider(call("other", call_id="c3")), [FakeTool("other", effect=Effect.WRITE)], mode=Mode.ASK
    )
    await one.asked(thread)
    # The last one is a call that nothing has come of yet.
    source = [i for i in await one.threads.items(thread) if not 3 <= i.ordinal <= 4][:-1]
    fork = await one.threads.fork(thread)
    copies = await one.threads.items(fork.id)
    assert [(i.ordinal, i.origin, i.body) for i in copies] == [(i.ordinal, i.id, i.body) for i in source]
    assert {i.thread for i in copies} == {fork.id}
    assert not {i.id for i in copies} & {i.id for i in source}
    assert (fork.forked_from, fork.forked_at) == (thread, source[-1].ordinal + 1)
    assert await one.interactions.pending(fork.id) == []
    assert await one.journal.grants(root=fork.id) == []
    assert (await one.journal.thread(fork.id)).owner == ""
    await soon(one.turns.cancel(second.turn.id, ME))


@pytest.mark.req("mechanisms:M5.fork")
async def test_a_fork_up_to_an_item_ends_there_and_goes_on_alone(one: Process) -> None:
    thread = await talk(one, "a", "b")
    fork = await one.threads.fork(thread, through=2, title="other way")
    assert fork.title == "other way"
    assert await words(one, fork.id) == ["a", "a!"]
    await one.run(fork.id, GatedProvider(text("c!")), say="c")
    assert [i.ordinal for i in await one.threads.items(fork.id)] == [1, 2, 3, 4]
    assert await words(one, thread) == ["a", "a!", "b", "b!"]
    for outside in (-1, 5):
        with pytest.raises(Invalid):
            await one.threads.fork(thread, through=outside)
    assert await one.threads.items((await one.threads.fork(thread, through=0)).id) == []


@pytest.mark.req("mechanisms:M5.fork", "mechanisms:M5.compaction")
async def test_a_fork_inside_a_compacted_stretch_takes_the_originals(one: Process) -> None:
    made = await one.put("", *[user_text(w) for w in "abcd"], Summary("short"), user_text("e"))
    change = ViewChanged(ViewReason.COMPACTION, first_kept=4, summary_item=5)
    await one.feed.append([Draft(change, made.id)])
    assert await words(one, made.id) == ["short", "d", "e"]
    assert await words(one, (await one.threads.fork(made.id, through=3)).id) == ["a", "b", "c"]
    assert len(await one.threads.items(made.id)) == 6


@pytest.mark.req("mechanisms:M5.revert", "mechanisms:M5.hidden")
async def test_revert_hides_until_unrevert_and_hidden_items_stay_listable(one: Process) -> None:
    thread = await talk(one, "apple", "banana")
    reverted = (await one.threads.revert(thread, 2)).thread
    assert [reverted.view.is_hidden(n) for n in (1, 2, 3, 4)] == [False, False, True, True]
    assert len(await one.threads.items(thread)) == 4
    assert await words(one, thread) == ["apple", "apple!"]
    assert [h for h in await one.threads.search("banana") if h.thread == thread] == []
    hits = [h for h in await one.threads.search("banana", hidden=True) if h.thread == thread]
    assert sorted((h.ordinal, h.hidden) for h in hits) == [(3, True), (4, True)]
    await one.threads.unrevert(thread)
    assert await words(one, thread) == ["apple", "apple!", "banana", "banana!"]
    with pytest.raises(Invalid):
        await one.threads.unrevert(thread)
    with pytest.raises(Invalid):
        await one.threads.revert(thread, 9)


@pytest.mark.req("mechanisms:M5.revert", "mechanisms:M5.hidden")
async def test_the_next_turn_makes_a_revert_final(one: Process) -> None:
    thread = await talk(one, "a", "b")
    await one.threads.revert(thread, 2)
    provider = GatedProvider(text("c!"))
    await one.run(thread, provider, say="c")
    sent = [i.ordinal for i in provider.requests[0].items]
    assert sent == [1, 2, 5]
    with pytest.raises(Invalid):
        await one.threads.unrevert(thread)
    assert len(await one.threads.items(thread)) == 6


@pytest.mark.req("mechanisms:M5.clear")
async def test_clear_empties_the_models_view_and_people_still_see_everything(one: Process) -> None:
    thread = await talk(one, "a", "b")
    cleared = await one.threads.clear(thread)
    assert not any(cleared.view.is_hidden(n) for n in range(1, 5))
    provider = GatedProvider(text("x"))
    await one.run(thread, provider, say="afresh")
    assert [i.body for i in provider.requests[0].items] == [user_text("afresh")]
    assert [h.thread for h in await one.threads.search("b")] == [thread] * 2


@pytest.mark.req("mechanisms:M5.replace")
async def test_replace_hides_everything_and_puts_the_given_items_in_its_place(one: Process) -> None:
    thread = await talk(one, "a", "b")
    replaced = await one.threads.replace(thread, [user_text("new"), AssistantMessage("sure")])
    assert [replaced.view.is_hidden(n) for n in range(1, 7)] == [True] * 4 + [False] * 2
    assert await words(one, thread) == ["new", "sure"]
    assert [i.ordinal for i in await one.threads.items(thread)] == [1, 2, 3, 4, 5, 6]


async def test_the_view_of_a_running_thread_is_left_alone(one: Process) -> None:
    thread, gate = await talk(one, "a"), Gate()
    started = await one.start(thread, GatedProvider([gate]))
    await gate.stopped()
    for change in (one.threads.clear(thread), one.threads.revert(thread, 1)):
        with pytest.raises(Busy):
            await change
    gate.open()
    await one.ended(started.turn.id)


@pytest.mark.req("mechanisms:M5.delete")
async def test_deleting_a_thread_in_which_turns_run_and_wait_cancels_them_first(one: Process) -> None:
    thread, tool, never = await one.thread(), SlowTool(), GatedProvider(text("never"))
    await one.start(thread, GatedProvider(call("slow")), [tool], say="remember the word xylophone")
    await tool.started()
    await one.start(thread, never)
    ended: list[str] = []
    one.feed.handle(lambda e: ended.append(e.payload.state) if e.kind == "turn.finished" else None)  # type: ignore[union-attr]
    await soon(one.threads.delete(thread, ME))
    assert ended == [TurnState.CANCELLED, TurnState.CANCELLED]
    assert never.requests == []
    assert tool.cancelled == 1
    with pytest.raises(NotFound):
        await one.threads.get(thread)
    with pytest.raises(NotFound):
        await one.threads.items(thread)
    assert await one.threads.page(ThreadQuery()) == []
    assert await one.threads.search("xylophone") == []
    assert [e.kind for e in await one.events(thread)] == ["thread.deleted"]
    assert one.defects == []


async def test_a_thread_is_found_by_its_id_or_enough_of_its_end(one: Process) -> None:
    threads = [await one.thread() for _ in range(3)]
    for thread in threads:
        assert await one.threads.find(thread) == thread
        assert await one.threads.find(thread[-12:]) == thread
    for unclear, error in (("abc", Invalid), (threads[0][4:10], NotFound), ("zzzzzzzz", NotFound)):
        with pytest.raises(error):
            await one.threads.find(unclear)
    with pytest.raises(NotFound):
        await one.threads.find("thr_00000000000000000000000000")


async def test_a_search_needs_words(one: Process) -> None:
    with pytest.raises(Invalid):
        await one.threads.search("  ")
