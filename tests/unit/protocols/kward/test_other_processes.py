"""Turns that another process runs in a session which is open here: watched, steered, answered and stopped, live."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from quintet.domain.event import AsideAnswered, Event
from quintet.domain.interaction import Verdict
from quintet.domain.turn import TurnState
from quintet.engine.interactions import Answer
from quintet.engine.subscription import Subscription
from quintet.tools.ask_user import AskUserTool
from tests.fakes.engine import ME, House, Process
from tests.fakes.kward_peer import Message, Peer, is_event, kinds, payloads
from tests.fakes.providers import Gate, GatedProvider, call, text
from tests.fakes.tools import FakeTool
from tests.fakes.waiting import soon
from tests.unit.protocols.kward.conftest import Connect

QUESTION: Message = {
    "question": "Which?",
    "header": "Colour",
    "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}],
}


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    made = House("file", tmp_path / "home")
    yield made
    await made.close()


@pytest.fixture
async def process(house: House) -> Process:
    """The client's own."""
    return await house.process()


@pytest.fixture
async def other(house: House) -> Process:
    return await house.process()


def thread(peer: Peer, session: Message) -> str:
    return peer.connection.state.sessions[session["id"]].thread


async def queued(peer: Peer) -> str:
    """The id of the turn that the client hears of next."""
    return (await peer.until(lambda m: is_event(m, "", "turnQueued")))[-1]["params"]["turnId"]  # type: ignore[no-any-return]


async def answered(events: Subscription) -> None:
    async for event in events:
        if isinstance(event, Event) and isinstance(event.payload, AsideAnswered):
            return


def turns(peer: Peer) -> set[str]:
    return {m["params"]["turnId"] for m in peer.seen if m.get("method") == "turn/event"}


@pytest.mark.req("kward:O1")
async def test_a_turn_of_another_process_is_told_as_it_happens(connect: Connect, other: Process) -> None:
    peer = connect()
    session = await peer.session(name="shared")
    gate = Gate()
    provider = GatedProvider([*text("one "), gate, *text("two")])
    started = await other.start(thread(peer, session), provider)
    turn = await queued(peer)
    assert await peer.hears("assistantDelta", turn) == {"delta": "one "}  # while it runs
    state = await peer.ok("runtime/state", sessionId=session["id"])
    assert (state["isStreaming"], state["pendingMessageCount"]) == (True, 1)
    assert (await peer.ok("turns/status", turnId=turn))["status"] == "running"
    gate.open()
    events = await peer.finished(turn)
    assert kinds(events) == [
        "turnQueued",
        "turnStarted",
        "assistantDelta",
        "assistantDelta",
        "assistantMessage",
        "answer",
        "turnFinished",
    ]
    assert [event["sequence"] for event in events] == list(range(1, 8))
    assert {event["sessionId"] for event in events} == {session["id"]}
    assert payloads(events, "answer") == [{"content": "one two"}]
    assert (await other.ended(started.turn.id)).state is TurnState.DONE
    assert (await peer.ok("turns/events", turnId=turn))["events"] == events


@pytest.mark.req("kward:O1")
async def test_a_turn_is_told_once_whoever_runs_it(connect: Connect, other: Process) -> None:
    peer = connect(GatedProvider(text("mine"), text("mine")))
    session = await peer.session(name="shared")
    mine = await peer.turn(session["id"])
    await other.start(thread(peer, session), GatedProvider(text("theirs")))
    theirs = await queued(peer)
    await peer.finished(theirs)
    again = await peer.turn(session["id"])
    assert turns(peer) == {mine[0]["turnId"], theirs, again[0]["turnId"]}
    answers = [payloads(events, "answer") for events in (mine, peer.events(theirs), again)]
    assert answers == [[{"content": "mine"}], [{"content": "theirs"}], [{"content": "mine"}]]


@pytest.mark.req("kward:O2")
async def test_what_another_process_asks_is_answered_here(connect: Connect, other: Process) -> None:
    peer = connect()
    session = await peer.session(name="shared")
    provider = GatedProvider(call("ask_user", json.dumps({"questions": [QUESTION]})), text("done"))
    await other.start(thread(peer, session), provider, [AskUserTool()])
    asked = await peer.told("ui/question")
    assert asked["sessionId"] == session["id"]
    assert asked["questions"] == [QUESTION]
    answers = [{"question": "Which?", "answer": "Blue"}]
    given = {"sessionId": session["id"], "questionRequestId": asked["questionRequestId"], "answers": answers}
    await peer.ok("ui/answerQuestion", **given)
    (turn,) = turns(peer)
    (result,) = payloads(await peer.finished(turn), "toolResult")
    assert "Blue" in result["content"]


@pytest.mark.req("kward:O2")
async def test_an_input_while_another_process_works_steers_that_and_a_stop_stops_it(
    connect: Connect, other: Process
) -> None:
    peer = connect()
    session = await peer.session(name="shared")
    gates = [Gate(), Gate()]
    started = await other.start(thread(peer, session), GatedProvider([*text("one"), gates[0]], [gates[1]]))
    turn = await queued(peer)
    await gates[0].stopped()
    await peer.hears("turnStarted", turn)
    steered = await peer.start(session["id"], "rather this", streamingBehavior="steer")
    assert (steered["id"], steered["status"]) == (turn, "running")
    gates[0].open()
    assert (await peer.hears("turnSteered", turn))["input"] == "rather this"
    await gates[1].stopped()
    await peer.ok("turns/cancel", turnId=turn)
    assert payloads(await peer.finished(turn), "turnFinished") == [{"status": "canceled", "error": None}]
    assert kinds(peer.events(turn)).count("turnCancelRequested") == 1
    assert (await other.ended(started.turn.id)).state is TurnState.CANCELLED


@pytest.mark.req("kward:O3")
async def test_a_session_opened_in_the_middle_is_told_what_its_transcript_lacks(
    connect: Connect, other: Process
) -> None:
    first = connect()
    session = await first.session(name="shared")
    shared = thread(first, session)
    await first.ok("sessions/close", sessionId=session["id"])
    gate = Gate()
    asking = call("ask_user", json.dumps({"questions": [QUESTION]}))
    provider = GatedProvider([*text("whole"), *call("note")], [*text("ha"), *text("lf "), gate, *text("done"), *asking])
    await other.start(shared, provider, [FakeTool("note"), AskUserTool()])
    await gate.stopped()
    peer = connect()
    opened = await peer.ok("sessions/resume", path=session["path"])
    turn = await queued(peer)
    assert await peer.hears("assistantDelta", turn) == {"delta": "half "}
    assert kinds(peer.events(turn)) == ["turnQueued", "turnStarted", "assistantDelta"]
    told = (await peer.ok("sessions/transcript", sessionId=opened["id"]))["messages"]
    assert [m["role"] for m in told] == ["user", "assistant", "toolResult"]
    gate.open()
    said = (await peer.until(lambda m: is_event(m, turn, "assistantMessage")))[-1]["params"]["payload"]["message"]
    assert said["content"] == "half done"
    asked = await peer.told("ui/question")
    late = connect()  # what waits for an answer is told to whoever comes later, too
    reopened = await late.ok("sessions/resume", path=session["path"])
    again = await late.told("ui/question")
    assert again == asked | {"sessionId": reopened["id"]}
    await other.interactions.answer(asked["questionRequestId"], Answer(Verdict.DENY), ME)
    for client in (peer, late):
        (own,) = turns(client)
        assert (await client.finished(own))[-1]["payload"]["status"] == "completed"


@pytest.mark.req("kward:O3")
async def test_words_of_a_step_are_told_also_where_a_question_beside_it_was_answered(
    connect: Connect, other: Process
) -> None:
    first = connect()
    session = await first.session(name="shared")
    shared = thread(first, session)
    await first.ok("sessions/close", sessionId=session["id"])
    gate = Gate()
    started = await other.start(shared, GatedProvider([*text("half "), gate, *text("done")], text("because")))
    await gate.stopped()
    with other.feed.follow(root=shared) as events:
        await other.turns.ask_beside(shared, "why?")
        await soon(answered(events))
    peer = connect()
    await peer.ok("sessions/resume", path=session["path"])
    turn = await queued(peer)
    assert await peer.hears("assistantDelta", turn) == {"delta": "half "}
    gate.open()
    await other.ended(started.turn.id)


@pytest.mark.req("kward:O1", "kward:O4")
async def test_closing_a_session_leaves_what_others_run_in_it_alone(
    connect: Connect, other: Process, process: Process
) -> None:
    peer = connect()
    session = await peer.session(name="shared")
    gate = Gate()
    started = await other.start(thread(peer, session), GatedProvider([gate, *text("done")]))
    await peer.hears("turnStarted", await queued(peer))
    await peer.ok("sessions/close", sessionId=session["id"])
    gate.open()
    assert (await other.ended(started.turn.id)).state is TurnState.DONE
    before = len(peer.seen)
    await peer.ok("initialize")
    assert len(peer.seen) == before + 1
    assert process.feed.tailing.interval_s() is None, "nothing is open, so nobody looks"


@pytest.mark.req("kward:O1")
async def test_a_turn_whose_process_died_is_told_to_have_ended(connect: Connect, other: Process) -> None:
    peer = connect()
    session = await peer.session(name="shared")
    gate = Gate()
    await other.start(thread(peer, session), GatedProvider([gate]))
    turn = await queued(peer)
    await peer.hears("turnStarted", turn)
    await other.die()
    assert payloads(await peer.finished(turn), "turnFinished") == [{"status": "canceled", "error": None}]
    assert payloads(await peer.turn(session["id"]), "answer") == [{"content": "hello"}]


@pytest.mark.req("kward:O1")
async def test_a_compaction_elsewhere_is_told_as_one_and_not_as_a_turn(connect: Connect, other: Process) -> None:
    peer = connect()
    session = await peer.session(name="shared")
    for _ in range(3):
        await peer.turn(session["id"], "x " * 500)
    before = turns(peer)
    starter = other.starter("text: in short", keep_recent=1)
    await soon(other.turns.compact(thread(peer, session), starter))

    def ended(message: Message) -> bool:
        return message.get("method") == "session/event" and message["params"]["type"] == "compactionEnd"

    told = (await peer.until(ended))[-1]["params"]
    assert told["sessionId"] == session["id"]
    assert told["payload"]["result"]["summary"]
    assert turns(peer) == before


@pytest.mark.req("kward:O1")
async def test_a_question_beside_the_thread_elsewhere_is_not_told(connect: Connect, other: Process) -> None:
    peer = connect()
    session = await peer.session(name="shared")
    await peer.turn(session["id"], "x")
    before = turns(peer)
    asked = await soon(other.turns.aside(thread(peer, session), other.starter("text: so"), "why?"))
    await other.ended(asked.turn.id)
    await other.start(thread(peer, session), GatedProvider(text("theirs")))
    theirs = await queued(peer)
    await peer.finished(theirs)
    assert turns(peer) == before | {theirs}
    assert not [m for m in peer.seen if m.get("method") == "session/event" and "compaction" in m["params"]["type"]]


@pytest.mark.req("kward:O4")
async def test_without_an_open_session_nobody_looks_for_others(connect: Connect, process: Process) -> None:
    peer = connect()
    await peer.ok("initialize")
    await peer.ok("sessions/list")
    assert process.feed.tailing.interval_s() is None
    session = await peer.session()

    async def looks() -> Any:
        while process.feed.tailing.interval_s() is None:
            await peer.ok("initialize")
        return process.feed.tailing.interval_s()

    assert await soon(looks()) == 0.250
    await peer.ok("sessions/delete", sessionId=session["id"])
    assert process.feed.tailing.interval_s() is None
