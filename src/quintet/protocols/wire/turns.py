"""prompt, cancel, steer, set_plan_mode: rows and handlers. One turn at a time; there is no queue."""

from __future__ import annotations

from msgspec import Struct

from quintet.domain.errors import Invalid, TurnOver
from quintet.domain.event import ThreadUpdated
from quintet.domain.thread import Thread
from quintet.engine.commands import Deed
from quintet.protocols.wire import models as wire
from quintet.protocols.wire.client import Client
from quintet.protocols.wire.ends import is_expired_login
from quintet.protocols.wire.errors import NONE_IN_PROGRESS, Failed, LoginExpired, WrongState
from quintet.protocols.wire.house import ME
from quintet.protocols.wire.inputs import core_parts, plain_text
from quintet.protocols.wire.leaving import played
from quintet.protocols.wire.running import Running
from quintet.protocols.wire.slash import NO_QUESTION
from quintet.rpc.call import Call, Reply
from quintet.rpc.rows import Family, NoParams

TURNS = Family("turns")


@TURNS.method(
    "prompt",
    params=wire.PromptParams,
    result=wire.PromptResult,
    summary="Run a turn with this input; answered at its end, after all its events (1.0).",
)
async def prompt(call: Call[Client], params: wire.PromptParams) -> wire.PromptResult:
    client = call.state
    running = Running(client, call.connection, params.user_input)
    with client.busy(running):
        try:
            result = await played(running)
        except Exception as failure:
            client.house.trace(f"wire: the prompt has failed: {_why(failure)}")
            if client.house.by_login and is_expired_login(failure):
                raise LoginExpired from failure
            raise
        client.house.trace(f"wire: the prompt has ended: {result.status}")
        return result


def _why(failure: Exception) -> str:
    """More than the client hears, where that is one sentence for many reasons."""
    return f"{failure.info.message} {failure.info.next_step}".strip() if isinstance(failure, Failed) else str(failure)


@TURNS.method(
    "cancel", result=wire.Empty, urgent=True, summary="Stop the turn, or the replay, that is under way (1.0)."
)
async def cancel(call: Call[Client], params: NoParams) -> Reply[Struct]:
    running = call.state.now()
    if isinstance(running, Running):
        return Reply(wire.Empty(), then=running.cancel)
    await running.cancel()  # at once: a replay could be over before the reply has found its place
    return Reply(wire.Empty())


@TURNS.method(
    "steer",
    params=wire.PromptParams,
    result=wire.SteerResult,
    urgent=True,
    summary="Give the running turn more input, before its next step (1.4).",
)
async def steer(call: Call[Client], params: wire.PromptParams) -> wire.SteerResult:
    client = call.state
    running = client.now()
    if not isinstance(running, Running):
        raise WrongState(NONE_IN_PROGRESS)
    await running.begun.wait()
    client.gate.steers()
    thread = await client.house.thread()
    called = client.house.commands.meant(plain_text(params.user_input))
    if called is not None and called.command is not None and called.command.deed is Deed.ASIDE:
        return await _ask_beside(client, thread, called.words)
    client.refuse_unfit(params.user_input, thread)
    parts = await core_parts(params.user_input, client.house.fetch)
    try:
        await client.house.turns.steer(thread.id, parts, ME)
    except TurnOver:
        raise WrongState(NONE_IN_PROGRESS) from None
    return wire.SteerResult()


async def _ask_beside(client: Client, thread: Thread, question: str) -> wire.SteerResult:
    """A question is no steer: the turn goes on as it would have, and the answer comes as an event of it."""
    if not question:
        raise Invalid(NO_QUESTION)
    try:
        await client.house.turns.ask_beside(thread.id, question)
    except TurnOver:
        raise WrongState(NONE_IN_PROGRESS) from None
    return wire.SteerResult()


@TURNS.method(
    "set_plan_mode",
    params=wire.PlanModeParams,
    result=wire.PlanModeResult,
    urgent=True,
    summary="Plan without changing anything, or end that; also while a turn runs (1.4).",
)
async def set_plan_mode(call: Call[Client], params: wire.PlanModeParams) -> wire.PlanModeResult:
    client = call.state
    thread = await client.house.thread()
    counted = client.running is not None
    client.own_plan_changes += counted
    try:
        await client.house.threads.configure(thread.id, ThreadUpdated(plan_mode=params.enabled))
    except BaseException:
        client.own_plan_changes = max(0, client.own_plan_changes - counted)  # nothing has changed, nothing will be told
        raise
    await call.notify("event", wire.Message("StatusUpdate", wire.PlanUpdate(plan_mode=params.enabled)))
    return wire.PlanModeResult(params.enabled)
