from __future__ import annotations

import asyncio

import pytest

from quintet.domain.errors import Invalid, ProviderFailed
from quintet.domain.item import (
    AssistantMessage,
    Body,
    Reasoning,
    ResultStatus,
    Summary,
    ToolCall,
    ToolResult,
    user_text,
)
from quintet.domain.model import (
    Chunk,
    Finish,
    FinishChunk,
    ReasoningChunk,
    TextChunk,
    ToolInput,
    ToolStart,
    Usage,
    UsageChunk,
)
from quintet.providers.script import parse_script
from quintet.providers.scripted import ScriptedProvider
from tests.fakes.requests import all_chunks, request_of, text_in

THREE = """
text: one
---
tool_call: read {"path": "a"}
---
text: three
"""
ASK = user_text("go")


def result(call_id: str = "call_2_1", status: ResultStatus = ResultStatus.OK) -> ToolResult:
    return ToolResult(call_id, "read", status, "…")


async def said(script: str, *turns: list[Body]) -> list[Chunk]:
    return await all_chunks(ScriptedProvider(script), request_of(*turns))


async def test_a_step_is_replayed_chunk_by_chunk():
    script = """
# a comment
think: hm
text: Hello
text:  world
text: "two\\nlines"
usage: in=10 out=5 cached=2 reasoning=1
"""
    assert await said(script, [ASK]) == [
        ReasoningChunk("hm"),
        TextChunk("Hello"),
        TextChunk(" world"),
        TextChunk("two\nlines"),
        UsageChunk(Usage(10, 5, 2, 1)),
        FinishChunk(Finish.STOP),
    ]


async def test_a_call_can_be_whole_or_in_parts_and_ends_the_step_with_tool_calls():
    script = 'tool_call: list {"path": "."}\ntool_call: read#mine\ntool_call_part: {"pa\ntool_call_part: "th\\": 1}"\n'
    assert await said(script, [ASK]) == [
        ToolStart("call_1_1", "list", fed=True),
        ToolInput("call_1_1", '{"path": "."}'),
        ToolStart("mine", "read"),
        ToolInput("mine", '{"pa'),
        ToolInput("mine", 'th": 1}'),
        FinishChunk(Finish.TOOL_CALLS),
    ]


@pytest.mark.parametrize("reason", ["length", "refusal", "other", "stop", "tool_calls"])
async def test_finish_is_what_the_script_says(reason: str):
    assert (await said(f"text: a\nfinish: {reason}", [ASK]))[-1] == FinishChunk(Finish(reason))


async def test_finish_none_ends_the_stream_without_a_reason():
    assert await said("text: a\nfinish: none", [ASK]) == [TextChunk("a")]


async def test_an_error_comes_after_what_was_said_before_it():
    stream = ScriptedProvider("text: half\nerror: 529 too busy\ntext: never").stream(request_of([ASK]))
    assert await anext(stream) == TextChunk("half")
    with pytest.raises(ProviderFailed, match=r"too busy \(529\)") as failure:
        await anext(stream)
    assert failure.value.data == {"code": "529", "reason": "529"}


async def test_repeat_says_the_same_piece_many_times():
    chunks = await said("repeat: 500 text: word \nrepeat: 2 every 0.001 think: hm", [ASK])
    assert text_in(chunks) == "word " * 500
    assert chunks.count(ReasoningChunk("hm")) == 2


async def test_until_waits_for_a_file(tmp_path):
    stream = ScriptedProvider("text: a\nuntil: go\ntext: b", directory=str(tmp_path)).stream(request_of([ASK]))
    assert await anext(stream) == TextChunk("a")
    following = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    assert not following.done()
    (tmp_path / "go").touch()
    assert await asyncio.wait_for(following, 5) == TextChunk("b")
    await stream.aclose()


async def test_a_delay_can_be_cancelled():
    task = asyncio.ensure_future(said("delay: 3600", [ASK]))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 5)


async def test_each_model_call_plays_the_next_step_whoever_asks():
    call, answer = ToolCall("call_2_1", "read", "{}"), AssistantMessage("one")
    assert text_in(await said(THREE, [ASK])) == "one"
    assert (await said(THREE, [ASK, answer], [ASK]))[0] == ToolStart("call_2_1", "read", fed=True)
    # A provider made anew, as in another process, goes on at the same place.
    assert text_in(await said(THREE, [ASK, answer], [ASK, call, result()])) == "three"


async def test_a_script_that_is_over_says_so_in_plain_text():
    history = [ASK, AssistantMessage("one")]
    chunks = await said("text: one", history, [ASK])
    assert text_in(chunks) == "The script is over: all 1 of its steps have been played."
    assert chunks[-1] == FinishChunk(Finish.STOP)


async def test_reasoning_words_and_calls_of_one_answer_are_one_step():
    group: list[Body] = [
        Reasoning("hm"),
        AssistantMessage("x"),
        ToolCall("a", "read", "{}"),
        ToolCall("b", "read", "{}"),
    ]
    script = "text: 1\n---\ntext: 2\n---\ntext: 3"
    assert text_in(await said(script, [ASK, *group, result("a"), result("b")])) == "2"


async def test_results_stored_between_the_calls_of_one_step_do_not_split_it():
    script = "tool_call: read {}\ntool_call: read {}\n---\ntext: after"
    calls = [ToolCall("call_1_1", "read", "{}"), ToolCall("call_1_2", "read", "{}")]
    assert text_in(await said(script, [ASK, calls[0], result("call_1_1"), calls[1], result("call_1_2")])) == "after"


async def test_a_steering_message_after_an_answer_gets_the_next_step():
    steer = user_text("no, this", steered=True)
    assert text_in(await said("text: 1\n---\ntext: 2", [ASK, AssistantMessage("1"), steer])) == "2"


async def test_a_step_that_only_fails_is_played_once():
    script = "error: 500 down\n---\ntext: up again"
    with pytest.raises(ProviderFailed):
        await said(script, [ASK])
    assert text_in(await said(script, [ASK], [ASK])) == "up again"


async def test_a_turn_that_ended_before_its_answer_began_does_not_skip_a_step():
    assert text_in(await said("text: 1\n---\ntext: 2", [ASK], [ASK])) == "1"


async def test_a_cancelled_tool_does_not_count_as_a_silent_step():
    script = "tool_call: read {}\n---\nerror: 500 down\n---\ntext: 3"
    cancelled = result("call_1_1", ResultStatus.CANCELLED)
    with pytest.raises(ProviderFailed):
        await said(script, [ASK, ToolCall("call_1_1", "read", "{}"), cancelled], [ASK])


async def test_a_partial_answer_counts_as_its_step():
    script = "text: half\nerror: 500 down\n---\ntext: whole"
    assert text_in(await said(script, [ASK, AssistantMessage("half", partial=True)], [ASK])) == "whole"


async def test_scope_turn_begins_anew_with_every_turn():
    script = "scope: turn\ntool_call: read {}\n---\ntext: done"
    turn: list[Body] = [ASK, ToolCall("call_1_1", "read", "{}"), result("call_1_1")]
    assert text_in(await said(script, turn)) == "done"
    assert (await said(script, [*turn, AssistantMessage("done")], [ASK]))[0] == ToolStart("call_1_1", "read", fed=True)


async def test_behind_a_summary_counting_starts_with_what_was_kept():
    assert text_in(await said("text: 1\n---\ntext: 2", [Summary("…"), ASK])) == "1"


async def test_a_long_burst_lets_the_event_loop_breathe():
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    ticker = asyncio.ensure_future(tick())
    await said("repeat: 6400 text: x", [ASK])
    ticker.cancel()
    assert ticks >= 90


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("shout: x", "begins with none of"),
        ("no colon", "begins with none of"),
        ("tool_call:", "needs the tool's name"),
        ("tool_call_part: x", "before any tool_call"),
        ("usage: in=many", "whole numbers"),
        ("delay: soon", "not a number of seconds"),
        ("delay: -1", "not a number of seconds"),
        ("finish: maybe", "finish wants"),
        ("repeat: x text: y", "repeat wants"),
        ("repeat: 3 usage: in=1", "repeat wants"),
        ("scope: world", "scope wants"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(line: str, words: str):
    with pytest.raises(Invalid, match=f"demo, line 2: .*{words}"):
        parse_script(f"\n{line}\n", "demo")
