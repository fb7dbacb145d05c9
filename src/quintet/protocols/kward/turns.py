"""turns/*: start, cancel, status, events. Answered at once; a session's turns run one after the other."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from msgspec import UNSET

from quintet.domain.errors import TurnOver
from quintet.domain.item import Part, TextPart
from quintet.domain.turn import WhenBusy
from quintet.engine.turns import Started
from quintet.protocols.kward import models as wire
from quintet.protocols.kward.attachments import images
from quintet.protocols.kward.client import Client, Opened, thread_of
from quintet.protocols.kward.commands import meant, plugin_named
from quintet.protocols.kward.errors import BadArgument
from quintet.protocols.kward.house import ME, House
from quintet.protocols.kward.plugin_turn import PluginTurn
from quintet.protocols.kward.plugins import PluginCommand, prompt_context, tell_events
from quintet.protocols.kward.running import Running
from quintet.rpc.call import Call, Reply
from quintet.rpc.rows import Family

TURNS = Family("turns", form="either")
BEHAVIOURS = (None, "newTurn", "followUp", "steer")
BEGINS_WITHIN_S = 5.0  # a turn that waits for its place longer than this is not steered but followed


@TURNS.method(
    "turns/start",
    params=wire.StartParams,
    result=wire.Turn,
    summary="Give an input: it starts a turn, is queued behind the running one, or steers that.",
)
async def start(call: Call[Client], params: wire.StartParams) -> Reply[wire.Turn]:
    client = call.state
    async with client.in_order(params.session_id) as session:
        if params.streaming_behavior not in BEHAVIOURS:
            raise BadArgument(f"Unsupported streamingBehavior: {params.streaming_behavior}")
        house, pictures = client.house, images(params.attachments)
        if params.streaming_behavior == "steer" and not session.turns:
            raise BadArgument("No active turn to steer")
        thread = await thread_of(house, session)
        cwd = thread.settings.cwd
        if not pictures and (plugin := await _plugin(house, params.input)) is not None:
            told = PluginTurn(call.connection, session, *plugin)
            await told.queue()
            return Reply(told.told(), then=told.play)
        parts: tuple[Part, ...] = (await _said(house, cwd, params.input), *pictures)
        steered = await _steered(client, session, parts, params.streaming_behavior)
        if steered is not None:
            return Reply(steered.told())
        running = Running(call.connection, session)
        await running.queue()
        ahead = [turn for turn in session.turns if isinstance(turn, PluginTurn)]  # which the engine knows nothing of

        async def accepted() -> Started:
            starter = house.starter(lambda: prompt_context(house, session, cwd))
            return await house.turns.start(thread.id, parts, starter, when_busy=WhenBusy.QUEUE)

        async def begin() -> None:
            await running.begin(thread.root, accepted)

        async def then() -> None:
            for turn in ahead:
                await turn.over.wait()
            if ahead:
                await begin()
            await running.show()
            await tell_events(house, session, cwd, running.replay.after(0))

        if not ahead:
            await begin()
        return Reply(running.told(), then=then)


async def _said(house: House, cwd: str, text: str) -> TextPart:
    """What the model is told: a prompt template or a skill in full, anything else as it is."""
    called = await meant(house, cwd, text)
    if called is None or called.command is None:
        return TextPart(text)
    return TextPart(await called.command.input(called.words), typed=text)


async def _plugin(house: House, text: str) -> tuple[PluginCommand, str] | None:
    """The command that an input is, with the words behind it."""
    if not text.startswith("/"):
        return None
    name, _, words = text[1:].partition(" ")
    command = await plugin_named(house, name.strip())
    return None if command is None else (command, words.strip())


async def _steered(client: Client, session: Opened, parts: tuple[Part, ...], behaviour: Any) -> Running | None:
    """The running turn, which has taken the input; None where a new one is to begin."""
    if not session.turns or behaviour not in (None, "steer"):
        return None
    now = next((turn for turn in session.turns if turn.begun.is_set()), session.turns[0])
    try:
        async with asyncio.timeout(BEGINS_WITHIN_S):
            await now.begun.wait()
        await client.house.turns.steer(session.thread, parts, ME, mode=client.house.mode)
    except (TurnOver, TimeoutError):
        return None  # it ended before it could take it: so this is an input of its own
    return now


@TURNS.method(
    "turns/cancel",
    params=wire.TurnParams,
    result=wire.Turn,
    urgent=True,
    summary="Stop a turn: a queued one never runs, a running one ends as soon as it can.",
)
async def cancel(call: Call[Client], params: wire.TurnParams) -> Reply[wire.Turn]:
    running = call.state.turn(params.turn_id)
    if running.ended or running.cancel_requested:
        return Reply(running.told())
    queued = not running.begun.is_set()
    await running.cancel()
    if queued:
        await running.stop()
        with suppress(TimeoutError):
            async with asyncio.timeout(BEGINS_WITHIN_S):
                await running.over.wait()
        return Reply(running.told())
    return Reply(running.told(), then=running.stop)


@TURNS.method("turns/status", params=wire.TurnParams, result=wire.Turn, summary="How a turn stands.")
async def status(call: Call[Client], params: wire.TurnParams) -> wire.Turn:
    return call.state.turn(params.turn_id).told()


@TURNS.method(
    "turns/events",
    params=wire.EventsParams,
    result=wire.TurnEvents,
    summary="The newest events of a turn, again; those with a higher number than the one given. `missing`: so many of "
    "these are no longer kept.",
)
async def events(call: Call[Client], params: wire.EventsParams) -> wire.TurnEvents:
    running = call.state.turn(params.turn_id)
    after, replay = params.after_sequence or 0, running.replay
    return wire.TurnEvents(running.told(), replay.after(after), replay.missing(after) or UNSET)
