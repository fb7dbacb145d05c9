"""Stopping turns: queued, running, waiting for somebody, failed, ended."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from quintet.domain.errors import ProviderFailed
from tests.fakes.kward_peer import kinds, payloads
from tests.fakes.kward_turns import QUESTION
from tests.fakes.providers import Gate, GatedProvider, call, text
from tests.fakes.tools import SlowTool
from tests.unit.protocols.kward.conftest import Connect


@pytest.mark.req("kward:82")
async def test_a_queued_turn_that_is_cancelled_never_starts(connect: Connect) -> None:
    gate = Gate()
    peer = connect(GatedProvider([gate]))
    session = await peer.session()
    first = await peer.start(session["id"])
    await gate.stopped()
    second = await peer.start(session["id"], streamingBehavior="followUp")
    told = await peer.ok("turns/cancel", turnId=second["id"])
    assert (told["status"], told["cancelRequested"]) == ("canceled", True)
    assert kinds(await peer.finished(second["id"])) == ["turnQueued", "turnCancelRequested", "turnFinished"]
    gate.open()
    assert payloads(await peer.finished(first["id"]), "turnFinished")[0]["status"] == "completed"


@pytest.mark.req("kward:83")
async def test_a_running_turn_that_is_cancelled_says_nothing_more_but_its_end(connect: Connect) -> None:
    gate = Gate()
    peer = connect(GatedProvider([*text("one"), gate], text("next")))
    session = await peer.session()
    turn = await peer.start(session["id"])
    await peer.hears("assistantDelta")
    told = await peer.ok("turns/cancel", turnId=turn["id"])
    assert told["cancelRequested"] is True
    events = await peer.finished(turn["id"])
    assert kinds(events)[-2:] == ["turnCancelRequested", "turnFinished"]
    assert events[-1]["payload"] == {"status": "canceled", "error": None}
    assert "assistantMessage" not in kinds(events)
    assert payloads(await peer.turn(session["id"]), "answer") == [{"content": "next"}]


@pytest.mark.req("kward:83")
async def test_a_call_that_is_cut_off_is_in_the_file_and_not_told_after_the_cancel(connect: Connect) -> None:
    slow = SlowTool()
    peer = connect(GatedProvider(call("slow")), [slow])
    session = await peer.session()
    turn = await peer.start(session["id"])
    await slow.started()
    await peer.ok("turns/cancel", turnId=turn["id"])
    events = await peer.finished(turn["id"])
    assert kinds(events)[-3:] == ["toolCall", "turnCancelRequested", "turnFinished"]
    (cut,) = [r["message"] for r in peer.records(session) if r.get("message", {}).get("role") == "tool"]
    assert cut["content"].startswith("Cancelled. ")


@pytest.mark.req("kward:84")
async def test_a_cancel_while_a_question_is_open_lets_the_next_turn_run(connect: Connect) -> None:
    asking = call("ask_user_question", json.dumps({"questions": [QUESTION]}))
    peer = connect(GatedProvider(asking, text("next")))
    session = await peer.session()
    turn = await peer.start(session["id"])
    await peer.told("ui/question")
    await peer.ok("turns/cancel", turnId=turn["id"])
    assert payloads(await peer.finished(turn["id"]), "turnFinished")[0]["status"] == "canceled"
    assert payloads(await peer.turn(session["id"]), "answer") == [{"content": "next"}]


@pytest.mark.req("kward:85")
async def test_a_cancel_of_a_finished_turn_changes_nothing(connect: Connect) -> None:
    peer = connect()
    session = await peer.session()
    events = await peer.turn(session["id"])
    turn = events[0]["turnId"]
    before = await peer.ok("turns/status", turnId=turn)
    assert await peer.ok("turns/cancel", turnId=turn) == before
    assert (await peer.ok("turns/events", turnId=turn))["events"] == events


@pytest.mark.req("kward:85")
async def test_closing_a_session_says_nothing_more_of_a_turn_that_is_being_cancelled(connect: Connect) -> None:
    held = asyncio.Event()

    async def hold(*args: Any, **more: Any) -> Any:
        await held.wait()

    peer = connect(house={"call_plugin": hold})
    (peer.where / "plugins").mkdir()
    (peer.where / "plugins" / "hi.py").write_text('COMMANDS = {"hi": "Greets"}\ndef run(*given): pass\n')
    session = await peer.session()
    turn = (await peer.start(session["id"], "/hi"))["id"]
    await peer.hears("turnStarted", turn)
    await asyncio.gather(peer.begin("turns/cancel", turnId=turn), peer.begin("sessions/close", sessionId=session["id"]))
    events = kinds(await peer.finished(turn))
    assert events == ["turnQueued", "turnStarted", "turnCancelRequested", "turnFinished"]


@pytest.mark.req("kward:86")
async def test_a_failing_model_is_told_twice_alike_and_the_session_goes_on(connect: Connect) -> None:
    peer = connect(GatedProvider([ProviderFailed("The key is refused.", next_step="Set another.")], text("fine")))
    session = await peer.session()
    events = await peer.turn(session["id"])
    assert kinds(events)[-2:] == ["error", "turnFinished"]
    error, end = (event["payload"] for event in events[-2:])
    assert error == {"message": "The key is refused. Set another.", "code": "provider_failed", "fatal": False}
    assert end == {"status": "failed", "error": error}
    assert (await peer.ok("turns/status", turnId=events[0]["turnId"]))["error"] == error
    assert payloads(await peer.turn(session["id"]), "answer") == [{"content": "fine"}]
