"""Inputs that are commands: prompt templates and plugins, beside turns of a model."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.fakes.kward_peer import Said, kinds, payloads
from tests.fakes.kward_turns import image, transcript
from tests.fakes.providers import Gate, GatedProvider, text
from tests.fakes.waiting import soon
from tests.unit.protocols.kward.conftest import Connect


@pytest.mark.req("kward:87")
async def test_a_prompt_command_is_expanded_and_an_unknown_one_stays_as_it_is(connect: Connect) -> None:
    provider = GatedProvider(text("a"), text("b"))
    peer = connect(provider)
    prompts = peer.config / "prompts"
    prompts.mkdir(parents=True)
    (prompts / "plan.md").write_text("---\ndescription: Plan it\n---\nPlan this: $ARGUMENTS. Again: $ARGUMENTS\n")
    session = await peer.session()
    await peer.turn(session["id"], "/plan fix bug")
    await peer.turn(session["id"], "/unknown x")
    said = [m["content"][0]["text"] for m in await transcript(peer, session) if m["role"] == "user"]
    assert said == ["Plan this: fix bug. Again: fix bug", "/unknown x"]


@pytest.mark.req("kward:88")
async def test_a_plugin_command_is_a_turn_without_a_model(connect: Connect) -> None:
    provider = GatedProvider(text("the model"))
    peer = connect(provider)
    plugins = peer.where / "plugins"
    plugins.mkdir()
    (plugins / "hi.py").write_text(
        "COMMANDS = {'hi': {'description': 'Greets', 'argument_hint': 'NAME'}}\n"
        "def run(command, arguments, context):\n    return [f'hello {arguments}', context['workspaceRoot']]\n"
    )
    session = await peer.session()
    events = await peer.turn(session["id"], "/hi Ada")
    assert kinds(events) == ["turnQueued", "turnStarted", "assistantDelta", "answer", "turnFinished"]
    assert payloads(events, "answer") == [{"content": f"hello Ada\n{session['cwd']}"}]
    assert provider.requests == []
    assert await transcript(peer, session) == []
    with_image = await peer.turn(session["id"], "/hi Ada", attachments=[image()])
    assert payloads(with_image, "answer") == [{"content": "the model"}]


SLOW = "COMMANDS = {'slow': 'Takes its time'}\ndef run(command, arguments, context):\n    return 'slow'\n"


async def test_turns_and_plugin_commands_of_a_session_wait_for_each_other(connect: Connect) -> None:
    gate, go = Gate(), asyncio.Event()

    async def call_plugin(*_: Any, **__: Any) -> Said:
        await go.wait()
        return Said("", "slow")

    peer = connect(GatedProvider(text("model"), [gate]), house={"call_plugin": call_plugin})
    (peer.where / "plugins").mkdir()
    (peer.where / "plugins" / "slow.py").write_text(SLOW)
    session = await peer.session()
    plugin = await peer.start(session["id"], "/slow")
    turn = await peer.start(session["id"], "behind it", streamingBehavior="followUp")
    doomed = await peer.start(session["id"], "never", streamingBehavior="followUp")
    assert (await peer.ok("turns/cancel", turnId=doomed["id"]))["status"] == "canceled"
    assert (await peer.ok("turns/status", turnId=turn["id"]))["status"] == "queued"
    go.set()
    await peer.finished(turn["id"])
    order = [(m["params"]["turnId"], m["params"]["type"]) for m in peer.seen if m.get("method") == "turn/event"]
    assert order.index((plugin["id"], "turnFinished")) < order.index((turn["id"], "turnStarted"))
    assert kinds(peer.events(doomed["id"])) == ["turnQueued", "turnCancelRequested", "turnFinished"]
    go.clear()
    running = await peer.start(session["id"])
    await gate.stopped()
    plugin = await peer.start(session["id"], "/slow")
    assert (await peer.ok("turns/cancel", turnId=plugin["id"]))["status"] == "canceled"
    gate.open()
    await peer.finished(running["id"])


async def test_a_turn_cancelled_as_soon_as_it_is_queued_never_speaks(connect: Connect) -> None:
    """Its id is in the first event, before its start is answered."""
    peer = connect("text: spoken")
    session = await peer.session()
    for _ in range(20):
        id = await peer.begin("turns/start", sessionId=session["id"], input="go")
        queued = (await peer.until(lambda m: m.get("method") == "turn/event"))[-1]["params"]["turnId"]
        await peer.ok("turns/cancel", turnId=queued)
        events = await peer.finished(queued)
        await peer.reply(id)
        assert kinds(events)[-1] == "turnFinished"
        assert kinds(events).count("turnFinished") == 1
        assert kinds(peer.events(queued)) == kinds(events)


@pytest.mark.req("kward:82")
async def test_a_turn_cancelled_while_the_engine_takes_it_is_told_no_start(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer = connect("text: spoken")
    session = await peer.session()
    begin, cancelled = peer.house.turns.start, asyncio.Event()

    async def slow(*given: Any, **more: Any) -> Any:
        await soon(cancelled.wait())
        return await begin(*given, **more)

    monkeypatch.setattr(peer.house.turns, "start", slow)
    starting = await peer.begin("turns/start", sessionId=session["id"], input="go")
    turn = (await peer.until(lambda m: m.get("method") == "turn/event"))[-1]["params"]["turnId"]
    cancelling = await peer.begin("turns/cancel", turnId=turn)
    await peer.hears("turnCancelRequested", turn)
    cancelled.set()
    assert kinds(await peer.finished(turn)) == ["turnQueued", "turnCancelRequested", "turnFinished"]
    for id in (starting, cancelling):
        assert (await peer.reply(id))["result"]["id"] == turn


async def test_a_turn_is_accepted_and_can_be_stopped_while_a_plugin_still_thinks_of_what_to_say(
    connect: Connect,
) -> None:
    asked, left = asyncio.Event(), asyncio.Event()

    async def think(*args: Any, **more: Any) -> Any:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            left.set()

    provider = GatedProvider(text("never"))
    peer = connect(provider, house={"call_plugin": think})
    (peer.where / "plugins").mkdir()
    (peer.where / "plugins" / "slow.py").write_text("def prompt_context(context): pass\n")
    session = await peer.session()
    turn = await peer.start(session["id"])  # is answered all the same, and what was said is kept
    await soon(asked.wait())
    assert [m["role"] for m in await transcript(peer, session)] == ["user"]
    assert (await peer.ok("turns/cancel", turnId=turn["id"]))["cancelRequested"] is True
    assert kinds(await peer.finished(turn["id"])) == [
        "turnQueued",
        "turnStarted",
        "turnCancelRequested",
        "turnFinished",
    ]
    assert left.is_set(), "nothing goes on thinking"
    assert provider.requests == []
