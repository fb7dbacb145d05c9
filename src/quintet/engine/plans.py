"""Plans: what a thread's model put forward last, read from the thread itself. There is no plan anywhere else."""

from __future__ import annotations

import msgspec

from quintet.domain.item import Item, TextPart, ToolCall, UserMessage, text_of, tool_of
from quintet.domain.thread import Thread
from quintet.engine.threads import Threads

TOOL = "exit_plan_mode"
PUT_ASIDE = "The plan of before is put aside. Go by it no longer; make another one when one is asked for."


async def last_plan(threads: Threads, thread: Thread) -> str:
    """Empty where there is none, or where it was put aside."""
    for item in reversed(await threads.items(thread.id)):
        if thread.view.is_hidden(item.ordinal):
            continue
        if isinstance(item.body, UserMessage) and text_of(item.body) == PUT_ASIDE:
            return ""
        if plan := _plan_in(item):
            return plan
    return ""


async def put_aside(threads: Threads, thread: Thread) -> bool:
    """Whether there was one. The model learns of it with the next turn."""
    if not await last_plan(threads, thread):
        return False
    await threads.extend(thread.id, [UserMessage((TextPart(PUT_ASIDE),))])
    return True


def _plan_in(item: Item) -> str:
    if not isinstance(item.body, ToolCall) or tool_of(item.body) != TOOL:
        return ""
    try:
        given = msgspec.json.decode(item.body.input, type=dict[str, object])
    except msgspec.DecodeError:
        return ""
    plan = given.get("plan")
    return plan if isinstance(plan, str) else ""
