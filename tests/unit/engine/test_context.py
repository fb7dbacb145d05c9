"""Context: what the model is sent. Complete for its wire, and the same for the same items."""

from __future__ import annotations

import msgspec
import pytest

from quintet.domain.item import (
    AssistantMessage,
    Damaged,
    Item,
    ResultStatus,
    Summary,
    ToolCall,
    ToolResult,
    user_text,
)
from quintet.domain.view import View, ViewReason, changed
from quintet.engine.context import Context
from tests.fakes.engine import Process
from tests.fakes.providers import GatedProvider, call, text
from tests.fakes.requests import items_of
from tests.fakes.tools import FakeTool

CALL, RESULT = ToolCall("c1", "read", "{}"), ToolResult("c1", "read", ResultStatus.OK, "text")


def sent(*bodies: object, view: View | None = None) -> list[object]:
    items = items_of(list(bodies))  # type: ignore[arg-type]
    return [item.body for item in Context(view or View(), items).for_model()]


def test_a_call_with_its_result_is_left_alone() -> None:
    assert sent(user_text("x"), CALL, RESULT) == [user_text("x"), CALL, RESULT]


def test_a_call_without_a_result_gets_an_unknown_one_right_behind_it() -> None:
    bodies = sent(user_text("x"), CALL, user_text("y"))
    assert bodies[1] == CALL
    assert isinstance(bodies[2], ToolResult)
    assert (bodies[2].call_id, bodies[2].status) == ("c1", ResultStatus.UNKNOWN)
    assert bodies[3] == user_text("y")


def test_a_call_that_was_cut_off_is_not_sent_and_neither_is_a_result_without_its_call() -> None:
    partial = ToolCall("c2", "read", '{"pa', partial=True)
    assert sent(user_text("x"), partial, RESULT) == [user_text("x")]


def test_a_damaged_item_is_not_sent() -> None:
    assert sent(user_text("x"), Damaged(), AssistantMessage("y")) == [user_text("x"), AssistantMessage("y")]


@pytest.mark.req("mechanisms:M5.compaction")
def test_after_a_compaction_the_summary_comes_first_then_what_was_kept() -> None:
    bodies = [user_text("old"), AssistantMessage("older"), user_text("kept"), Summary("in short"), user_text("new")]
    view = changed(View(), ViewReason.COMPACTION, last=4, first_kept=3, summary=4)
    assert sent(*bodies, view=view) == [Summary("in short"), user_text("kept"), user_text("new")]


def test_a_call_whose_result_is_hidden_still_gets_one() -> None:
    view = changed(View(), ViewReason.REVERT, last=3, keep_through=2)
    bodies = sent(user_text("x"), CALL, RESULT, view=view)
    assert [type(b) for b in bodies[1:]] == [ToolCall, ToolResult]
    assert bodies[2] != RESULT


async def test_the_same_items_give_the_same_request_byte_for_byte(one: Process) -> None:
    thread, tools = await one.thread(), [FakeTool("b"), FakeTool("a")]
    first = GatedProvider(call("a"), text("x"))
    await one.run(thread, first, tools)
    again = GatedProvider(text("y"))
    await one.run(thread, again, list(reversed(tools)))
    before, after = first.requests[1], again.requests[0]
    shared = msgspec.structs.replace(after, items=after.items[: len(before.items)])
    assert msgspec.json.encode(shared) == msgspec.json.encode(before)
    assert [i.ordinal for i in after.items] == list(range(1, len(after.items) + 1))


async def test_a_long_thread_is_loaded_whole(one: Process) -> None:
    made = await one.put("", *[user_text(f"{n}") for n in range(1_203)])
    loaded = await Context.load(one.journal, made.id, made.view)
    assert len(loaded.for_model()) == 1_203
    assert all(isinstance(i, Item) for i in loaded.for_model())
