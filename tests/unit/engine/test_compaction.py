"""Compaction in turns: when it happens, what the model reads afterwards, and what happens when it does not help."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from quintet.domain.errors import ProviderFailed
from quintet.domain.event import CompactionFinished, CompactionStarted, StepFinished, ViewChanged
from quintet.domain.item import AssistantMessage, Summary, ToolCall, ToolResult, UserMessage, text_of, user_text
from quintet.domain.model import Finish, FinishChunk, TextChunk
from quintet.domain.turn import TurnState
from quintet.engine.prompt import INSTRUCTIONS
from tests.fakes.engine import ME, House, Process
from tests.fakes.providers import Gate, call, text
from tests.fakes.summaries import Windowed, calls
from tests.fakes.tools import FakeTool
from tests.fakes.waiting import soon

LINE = "word " * 80  # 100 rough tokens


def looking(size: int = 1, name: str = "look") -> FakeTool:
    """A tool whose results are `size` hundred tokens long."""

    async def run(prepared: Any, context: Any) -> Any:
        from quintet.domain.tool import ToolOutcome

        return ToolOutcome(LINE * size)

    return FakeTool(name, run)


async def compact(one: Process, thread: str, model: Windowed, instructions: str = "") -> Any:
    started = await soon(one.turns.compact(thread, one.starter(model), instructions))
    return await one.ended(started.turn.id)


def sizes(model: Windowed) -> list[int]:
    return [len(r.items) for r in model.requests]


@pytest.mark.req("models:C1")
async def test_a_thread_that_nearly_fills_a_known_window_is_compacted_before_the_next_request(one: Process) -> None:
    model, thread = Windowed(*calls(9)), await one.thread()
    turn = await one.run(thread, model, [looking()], say="find it")
    assert turn.state is TurnState.DONE
    assert len(model.asked_to_summarise) == 1
    assert [p.reason for p in await one.payloads(thread, CompactionStarted)] == ["threshold"]
    (finished,) = await one.payloads(thread, CompactionFinished)
    assert finished.error is None
    assert 800 <= finished.tokens_before < 1_000
    assert finished.tokens_after < 500
    (summary,) = await one.bodies(thread, Summary)
    assert summary.text == "in short"
    after = next(r for r in model.requests if isinstance(r.items[0].body, Summary))
    assert len(after.items) < len(model.requests[model.requests.index(after) - 1].items)


@pytest.mark.req("models:C1")
async def test_the_threshold_is_a_share_of_the_window_without_the_answer(lone: Process) -> None:
    model, thread = Windowed(*calls(4), window=1_000, max_output=500), await lone.thread()
    await lone.run(thread, model, [looking()])
    (finished,) = await lone.payloads(thread, CompactionFinished)
    assert 400 <= finished.tokens_before < 600
    late, other = Windowed(*calls(3), window=1_000, max_output=500), await lone.thread()
    await lone.run(other, late, [looking()], compact_at=1.0)
    assert await lone.payloads(other, CompactionFinished) == []


@pytest.mark.req("models:C1")
async def test_a_provider_that_counts_more_than_the_rough_count_is_believed(lone: Process) -> None:
    """Each of its tokens is a character, as with some languages: the rough count alone would come too late."""

    class Dense(Windowed):
        async def stream(self, request: Any) -> Any:
            async for chunk in super().stream(request):
                if hasattr(chunk, "usage"):
                    counted = msgspec.structs.replace(chunk.usage, input_tokens=chunk.usage.input_tokens * 4)
                    chunk = msgspec.structs.replace(chunk, usage=counted)
                yield chunk

    model, thread = Dense(*calls(2)), await lone.thread()
    await lone.run(thread, model, [looking()])
    (finished,) = await lone.payloads(thread, CompactionFinished)
    assert finished.tokens_before >= 800


@pytest.mark.req("models:C1")
async def test_with_an_unknown_window_nothing_is_compacted_until_the_model_refuses(one: Process) -> None:
    model, thread = Windowed(*calls(9), window=None, limit=600), await one.thread()
    turn = await one.run(thread, model, [looking()])
    assert turn.state is TurnState.DONE
    assert (await one.payloads(thread, CompactionStarted))[0].reason == "too_long"
    assert model.refused >= 1
    assert (await one.bodies(thread))[-1] == AssistantMessage("over")


@pytest.mark.req("models:C2")
async def test_what_was_asked_in_this_turn_and_the_newest_answer_stay_whole(lone: Process) -> None:
    model, thread = Windowed(*calls(20)), await lone.thread()
    await lone.run(thread, model, [looking()], say="do exactly this")
    summarised = [r for r in model.requests if isinstance(r.items[0].body, Summary)]
    assert len(await lone.payloads(thread, CompactionFinished)) >= 2
    for request in summarised:
        bodies = [i.body for i in request.items]
        assert bodies[1] == user_text("do exactly this")
        assert sum(isinstance(b, UserMessage) for b in bodies) == 1
        asked = {b.call_id for b in bodies if isinstance(b, ToolCall)}
        answered = {b.call_id for b in bodies if isinstance(b, ToolResult)}
        assert asked == answered
        assert LINE in [b.text for b in bodies if isinstance(b, ToolResult)]
    assert model.requests[-1].items[-1].body.text == LINE  # type: ignore[union-attr]


@pytest.mark.req("models:C3")
async def test_the_instructions_are_never_part_of_what_is_summarised(lone: Process) -> None:
    """People found their instructions forgotten behind a compaction."""
    model, thread = Windowed(*calls(9)), await lone.thread()
    await lone.run(thread, model, [looking()])
    assert {r.instructions for r in model.requests} == {INSTRUCTIONS}
    (asked,) = model.asked_to_summarise
    assert INSTRUCTIONS not in asked.instructions + text_of(asked.items[0].body)
    assert asked.tools == ()
    assert asked.model == model.requests[0].model


@pytest.mark.req("models:C4", "reliability:R1")
async def test_summary_and_view_are_one_commit_and_a_kill_before_it_leaves_the_thread_as_it_was(house: House) -> None:
    dying = await house.process()
    thread, gate = await dying.thread(), Gate()
    await dying.run(thread, Windowed(*calls(3), window=None), [looking()])
    before = await dying.bodies(thread)
    await dying.turns.compact(thread, dying.starter(Windowed(summaries=[[TextChunk("half"), gate]], window=None)))
    await gate.stopped()
    await dying.die()
    one = await house.process()
    opened = await one.threads.get(thread)
    assert len(opened.recovery.turns) == 1
    assert opened.thread.view.marks == ()
    assert await one.bodies(thread) == before
    model = Windowed()
    assert (await one.run(thread, model)).state is TurnState.DONE
    assert len(model.requests[0].items) == len(before) + 1
    assert (await compact(one, thread, Windowed())).state is TurnState.DONE
    events = await one.events(thread)
    (change,) = [e for e in events if isinstance(e.payload, ViewChanged)]
    (done,) = [e for e in events if isinstance(e.payload, CompactionFinished)]
    assert change.at_ms == done.at_ms
    assert done.seq - change.seq == 2


@pytest.mark.req("models:C4")
@pytest.mark.parametrize("requested", [True, False])
async def test_a_cancel_during_a_compaction_ends_both_and_changes_nothing(one: Process, requested: bool) -> None:
    thread, gate = await one.thread(), Gate()
    model = Windowed(*calls(9), summaries=[[TextChunk("half"), gate]])
    if requested:
        await one.run(thread, Windowed(*calls(2)), [looking()])
        started = await one.turns.compact(thread, one.starter(model))
    else:
        started = await one.start(thread, model, [looking()])
    await gate.stopped()
    ended = await soon(one.turns.cancel(started.turn.id, ME, "enough"))
    assert ended.state is TurnState.CANCELLED
    assert (await one.journal.thread(thread)).view.marks == ()
    assert await one.bodies(thread, Summary) == []
    (finished,) = await one.payloads(thread, CompactionFinished)
    assert finished.error is not None
    assert finished.error.code == "cancelled"
    assert (await one.journal.thread(thread)).compaction.failed == 0
    assert (await one.run(thread, Windowed(*calls(9)), [looking()])).state is TurnState.DONE
    assert await one.bodies(thread, Summary)


@pytest.mark.req("models:C5")
async def test_the_files_read_and_modified_are_carried_on_through_every_summary(lone: Process) -> None:
    async def change(prepared: Any, context: Any) -> Any:
        from quintet.domain.tool import ToolOutcome

        return ToolOutcome("done", changed_files=("/project/here/b.py", "/elsewhere/c.py"))

    tools = [looking(name="read"), FakeTool("edit", change)]
    steps = [call("read", '{"path": "a.py"}', "r1"), call("edit", "{}", "e1"), call("read", '{"path": "b.py"}', "r2")]
    thread = await lone.thread("/project/here")
    await lone.run(thread, Windowed(*steps, window=None), tools)
    for _ in range(2):
        assert (await compact(lone, thread, Windowed(window=None))).state is TurnState.DONE
        await lone.run(thread, Windowed(text("a longer answer " * 9), window=None))
    for summary in await lone.bodies(thread, Summary):
        assert summary.text == (
            "in short\n\nFiles read in this thread so far:\n- a.py\n\n"
            "Files modified in this thread so far:\n- b.py\n- /elsewhere/c.py"
        )


@pytest.mark.req("models:C6")
async def test_a_person_compacts_with_wishes_of_their_own(one: Process) -> None:
    thread, model = await one.thread(), Windowed(window=None)
    await one.run(thread, Windowed(*calls(3), window=None), [looking()], say="find it")
    turn = await compact(one, thread, model, "mind the parser")
    assert turn.state is TurnState.DONE
    (asked,) = model.asked_to_summarise
    assert asked.instructions.endswith("mind the parser")
    assert "find it" in text_of(asked.items[0].body)
    assert [p.reason for p in await one.payloads(thread, CompactionStarted)] == ["requested"]
    after = Windowed(window=None)
    await one.run(thread, after, say="go on")
    bodies = [i.body for i in after.requests[0].items]
    assert bodies[0] == Summary("in short")
    assert bodies[-1] == user_text("go on")
    assert len(bodies) < 5
    assert (await one.journal.thread(thread)).title == "find it"


@pytest.mark.req("models:C6")
async def test_a_request_to_compact_nothing_says_so_and_one_that_fails_says_why(lone: Process) -> None:
    thread = await lone.thread()
    turn = await compact(lone, thread, Windowed())
    assert turn.error is not None
    assert turn.error.message == "There is nothing to compact in this thread."
    await lone.run(thread, "text: hello")
    failing = Windowed(summaries=[[ProviderFailed("It is down.")]])
    turn = await compact(lone, thread, failing)
    assert turn.error is not None
    assert (turn.state, turn.error.message) == (TurnState.FAILED, "It is down.")


@pytest.mark.req("models:C6")
async def test_a_steer_into_a_requested_compaction_is_answered(one: Process) -> None:
    thread, gate = await one.thread(), Gate()
    await one.run(thread, Windowed(*calls(2)), [looking()])
    model = Windowed(text("steered"), summaries=[[gate, TextChunk("in short")]])
    started = await one.turns.compact(thread, one.starter(model))
    await gate.stopped()
    await soon(one.turns.steer(thread, user_text("and then?").parts, ME))
    gate.open()
    assert (await one.ended(started.turn.id)).state is TurnState.DONE
    bodies = await one.bodies(thread)
    assert bodies[-2:] == [user_text("and then?", steered=True), AssistantMessage("steered")]


@pytest.mark.req("models:C7")
async def test_a_failed_compaction_is_not_paid_for_again_at_every_turn(house: House) -> None:
    """In the wild one failed and was billed in 54 of 54 turns."""
    model = Windowed(summaries=[[ProviderFailed("It is down.")]] * 99, window=400)
    one = await house.process()
    thread = (await one.put("", user_text(LINE * 3), AssistantMessage("yes"))).id
    for number in range(54):
        if number == 27:
            one = await house.process()
        assert (await one.run(thread, model, say=f"turn {number}")).state is TurnState.DONE
    tries = len(model.asked_to_summarise)
    assert 2 <= tries <= 5
    told = await one.payloads(thread, CompactionFinished)
    assert [p.error.message for p in told if p.error] == ["It is down."] * tries
    assert (await one.journal.thread(thread)).compaction.failed == tries


@pytest.mark.req("models:C7")
async def test_a_turn_whose_compaction_failed_goes_on_and_a_later_one_that_works_starts_the_count_anew(
    lone: Process,
) -> None:
    model = Windowed(*calls(30), summaries=[[ProviderFailed("It is down.")], [FinishChunk(Finish.REFUSAL)]])
    thread = await lone.thread()
    assert (await lone.run(thread, model, [looking()])).state is TurnState.DONE
    finished = await lone.payloads(thread, CompactionFinished)
    with_model = [p for p in finished if p.error or p.summary_item]
    assert [bool(p.error) for p in with_model[:3]] == [True, True, False]
    assert (await lone.journal.thread(thread)).compaction.failed == 0


@pytest.mark.req("models:C8")
async def test_an_answer_as_long_as_what_it_stands_for_is_not_taken(lone: Process) -> None:
    thread, model = await lone.thread(), Windowed(*calls(9), summaries=[[TextChunk(LINE * 40)]])
    assert (await lone.run(thread, model, [looking()])).state is TurnState.DONE
    first = (await lone.payloads(thread, CompactionFinished))[0]
    assert first.error is not None
    assert first.error.message == "The summary was not shorter than what it stood for."
    assert [s for s in await lone.bodies(thread, Summary) if LINE in s.text] == []


@pytest.mark.req("models:C6")
async def test_a_thread_too_short_to_be_summarised_says_so_to_whoever_asked(one: Process) -> None:
    thread = await one.thread()
    await one.run(thread, Windowed(text("hello")), say="hi")
    turn = await compact(one, thread, Windowed(summaries=[[TextChunk("a greeting was exchanged " * 9)]]))
    assert turn.error is not None
    assert turn.error.code == "invalid"
    assert turn.error.message.startswith("There is nothing to compact yet: the older part of this thread is about ")
    assert await one.bodies(thread, Summary) == []


@pytest.mark.req("models:C6")
async def test_a_few_words_are_left_as_they_are_where_the_starter_says_so_and_a_long_answer_is_not(
    lone: Process,
) -> None:
    thread, model = await lone.thread(), Windowed(text("hello"), text(LINE * 3))

    async def asked() -> Any:
        started = await soon(lone.turns.compact(thread, lone.starter(model, keep_least=250)))
        return await lone.ended(started.turn.id)

    await lone.run(thread, model, say="hi")
    few = await asked()
    assert few.error is not None
    assert (few.error.code, few.error.data) == ("invalid", {"text_tokens": 1})
    assert model.asked_to_summarise == []
    await lone.run(thread, model, say="more")
    assert (await asked()).error is None
    assert len(model.asked_to_summarise) == 1
    only_a_summary = await asked()
    assert only_a_summary.error is not None
    assert only_a_summary.error.data == {}


@pytest.mark.req("models:C6")
async def test_what_is_no_language_model_is_never_asked_for_a_summary(one: Process) -> None:
    class Mechanical(Windowed):
        def info(self, reference: str) -> Any:
            return msgspec.structs.replace(super().info(reference), summarises=False)

    thread, model = await one.thread(), Mechanical(*calls(12))
    assert (await one.run(thread, model, [looking()])).state is TurnState.DONE  # old results are left out instead
    turn = await compact(one, thread, model)
    assert turn.error is not None
    assert "is no language model and cannot summarise" in turn.error.message
    assert model.asked_to_summarise == []


@pytest.mark.req("models:C8")
async def test_two_ineffective_compactions_and_a_model_that_refuses_end_the_turn_with_what_to_do(one: Process) -> None:
    """Others went round 217 times. Here everything is the person's own words, which stay: nothing can help."""
    thread, model = await one.thread(), Windowed(window=None, limit=900)
    wordy = [[TextChunk(LINE * 7)]] * 9
    for _ in range(2):
        await one.run(thread, Windowed(text(LINE * 4), window=None), say="tell")
        turn = await compact(one, thread, Windowed(summaries=wordy, window=None))
    assert (await one.journal.thread(thread)).compaction.ineffective == 2
    turn = await one.run(thread, model, say=LINE * 5)
    assert turn.state is TurnState.FAILED
    assert turn.error is not None
    assert (turn.error.code, turn.error.data["reason"]) == ("provider_failed", "too_long")
    assert "2 compactions hardly helped" in turn.error.message
    assert "larger context" in turn.error.next_step
    assert model.asked_to_summarise == []
    assert model.refused == 1


@pytest.mark.req("models:C8")
async def test_a_thread_that_cannot_become_small_is_not_compacted_for_ever(lone: Process) -> None:
    """Each result fills the window again at once: compaction after compaction would only make the model plan anew."""
    model = Windowed(endless=lambda n: call("look", "{}", f"c{n}") if n < 80 else text("over"))
    thread = await lone.thread()
    turn = await lone.run(thread, model, [looking(7)])
    assert turn.state is TurnState.DONE
    assert len(model.requests) == 80
    assert len(model.asked_to_summarise) < 12


@pytest.mark.req("models:C9")
async def test_old_results_give_way_to_notes_when_no_model_can_summarise(one: Process) -> None:
    down = [[ProviderFailed("It is down.")]] * 99
    model, thread = Windowed(*calls(20), summaries=down, window=1_000, limit=1_000), await one.thread()
    turn = await one.run(thread, model, [looking()], say="find it")
    assert (turn.state, model.refused) == (TurnState.DONE, 0)
    results = [i.body for i in model.requests[-1].items if isinstance(i.body, ToolResult)]
    assert len(results) == 20
    assert results[0].text == "[result of 400 characters left out to save room]"
    assert results[-1].text == LINE
    assert {r.text for r in await one.bodies(thread, ToolResult)} == {LINE}
    trimmed = [p for p in await one.payloads(thread, CompactionFinished) if not p.error]
    assert trimmed
    assert all(p.tokens_after < p.tokens_before and not p.summary_item for p in trimmed)


@pytest.mark.req("models:C9")
async def test_one_result_larger_than_the_window_does_not_end_the_turn(lone: Process) -> None:
    model, thread = Windowed(call("look"), window=None, limit=500), await lone.thread()
    turn = await lone.run(thread, model, [looking(90)])
    assert turn.state is TurnState.DONE
    (result,) = [i.body for i in model.requests[-1].items if isinstance(i.body, ToolResult)]
    assert result.text == "[result of 36,000 characters left out to save room]"


@pytest.mark.req("models:C10")
async def test_each_request_begins_with_the_bytes_of_the_one_before_until_a_compaction(lone: Process) -> None:
    model, thread = Windowed(*calls(14)), await lone.thread()
    await lone.run(thread, model, [looking()])
    await lone.run(thread, model, [looking()], say="more")
    breaks = 0
    for before, after in zip(model.requests, model.requests[1:], strict=False):
        shared = msgspec.structs.replace(after, items=after.items[: len(before.items)])
        breaks += msgspec.json.encode(shared) != msgspec.json.encode(before)
    done = await lone.payloads(thread, CompactionFinished)
    assert len(done) >= 1
    assert breaks == len(done)


@pytest.mark.req("models:C11", "mechanisms:M5.compaction")
async def test_revert_fork_and_clear_see_through_a_compaction(one: Process) -> None:
    thread = await one.thread()
    await one.run(thread, Windowed(*calls(3), window=None), [looking()], say="first")
    last = (await one.journal.thread(thread)).last_ordinal
    await compact(one, thread, Windowed(window=None))
    await one.run(thread, "text: later", say="second")
    fork, early = await one.threads.fork(thread), await one.threads.fork(thread, through=last)

    async def sees(where: str) -> list[Any]:
        model = Windowed(window=None)
        await one.run(where, model, say=LINE)
        return [i.body for i in model.requests[0].items]

    assert (await sees(fork.id))[0] == Summary("in short")
    assert (await sees(early.id))[0] == user_text("first")
    await one.threads.revert(thread, last)
    assert (await sees(thread))[0] == user_text("first")
    await one.threads.clear(thread)
    assert await sees(thread) == [user_text(LINE)]
    again = await compact(one, thread, Windowed(window=None))
    assert again.state is TurnState.DONE
    assert (await sees(thread))[0] == Summary("in short")


@pytest.mark.req("models:C12")
async def test_a_secret_in_a_summary_is_masked_in_the_journal_and_for_the_model(house: House) -> None:
    one = await house.process(secrets=["hunter2hunter2"])
    thread = await one.thread()
    await one.run(thread, "text: hello", say="a question that is long enough to be summarised")
    told = [[TextChunk("hunter2"), TextChunk("hunter2")]]
    assert (await compact(one, thread, Windowed(summaries=told, window=None), "hunter2hunter2")).state is TurnState.DONE
    model = Windowed(*calls(9), summaries=told)
    await one.run(thread, model, [looking()])
    assert len(await one.bodies(thread, Summary)) == 2
    assert "hunter2hunter2" not in repr(model.requests)
    assert "hunter2hunter2" not in repr(await one.events(thread))


@pytest.mark.req("models:C13")
async def test_what_a_compaction_used_is_in_a_step_of_its_own(lone: Process) -> None:
    thread = await lone.thread()
    await lone.run(thread, "text: hello", say="a question that is long enough to be summarised")
    await compact(lone, thread, Windowed(window=None))
    own = [p for p in await lone.payloads(thread, StepFinished) if p.number == 0]
    (step,) = own
    assert step.usage.input_tokens > 0
    assert step.model == "fake/model"


async def test_a_summary_that_does_not_end_is_cut_off_and_fails(lone: Process) -> None:
    thread = await lone.thread()
    await lone.run(thread, "text: hello")
    turn = await compact(lone, thread, Windowed(summaries=[[TextChunk("again " * 9_000)] * 99], window=None))
    assert turn.error is not None
    assert turn.error.data["reason"] == "runaway"
