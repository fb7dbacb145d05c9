"""Turns: their events in order, several at once, steers, retries."""

from __future__ import annotations

import pytest

from quintet.domain.model import RetryChunk, TextChunk
from tests.fakes.kward_peer import Message, kinds, payloads
from tests.fakes.providers import Gate, GatedProvider, text
from tests.unit.protocols.kward.conftest import Connect


# --- the order of events ----------------------------------------------------------------------------------------------
@pytest.mark.req("kward:72", "kward:73")
async def test_a_turn_is_queued_started_and_finished_once_with_numbers_without_gaps(connect: Connect) -> None:
    peer = connect('think: "hm"\ntext: "one "\ntext: "two"')
    session = await peer.session()
    started = await peer.start(session["id"], "hello")
    assert started["status"] == "queued"
    assert started["cancelRequested"] is False
    assert set(started) == {"id", "sessionId", "status", "cancelRequested", "createdAt"}
    events = await peer.finished(started["id"])
    assert kinds(events) == [
        "turnQueued",
        "turnStarted",
        "reasoningDelta",
        "assistantDelta",
        "assistantDelta",
        "assistantMessage",
        "answer",
        "turnFinished",
    ]
    assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
    assert {event["sessionId"] for event in events} == {session["id"]}
    assert events[0]["payload"] == {"status": "queued"}
    assert events[1]["payload"] == {"status": "running"}
    assert payloads(events, "assistantDelta") == [{"delta": "one "}, {"delta": "two"}]
    (said,) = payloads(events, "assistantMessage")
    assert said == {"message": {"role": "assistant", "content": "one two", "reasoning_summary": "hm"}}
    assert events[-2]["payload"] == {"content": "one two"}
    assert events[-1]["payload"] == {"status": "completed", "error": None}
    now = await peer.ok("turns/status", turnId=started["id"])
    assert (now["status"], now["cancelRequested"]) == ("completed", False)
    assert {"startedAt", "finishedAt"} < set(now)


@pytest.mark.req("kward:72")
async def test_a_turn_is_queued_before_its_start_is_answered(connect: Connect) -> None:
    peer = connect()
    session = await peer.session()
    id = await peer.begin("turns/start", sessionId=session["id"], input="go")
    heard = await peer.until(lambda m: m.get("id") == id)
    assert [m["params"]["type"] for m in heard[:-1]] == ["turnQueued"]


@pytest.mark.req("kward:74")
async def test_the_newest_thousand_events_can_be_asked_for_again(connect: Connect) -> None:
    peer = connect(GatedProvider([TextChunk(f"{n} ") for n in range(1195)]))
    session = await peer.session()
    events = await peer.turn(session["id"])
    assert len(events) == 1200  # queued, started, 1195 deltas, message, answer, finished
    turn = events[0]["turnId"]
    told = await peer.ok("turns/events", turnId=turn)
    assert [event["sequence"] for event in told["events"]] == list(range(201, 1201))
    assert told["events"] == events[200:]
    assert told["turn"]["status"] == "completed"
    assert told["missing"] == 200, "and that is told"
    later = await peer.ok("turns/events", turnId=turn, afterSequence=1198)
    assert "missing" not in later
    assert [event["sequence"] for event in later["events"]] == [1199, 1200]


@pytest.mark.req("kward:75")
async def test_a_turn_of_an_earlier_process_is_unknown(connect: Connect) -> None:
    peer, later = connect(), connect()
    turn = (await peer.turn((await peer.session())["id"]))[0]["turnId"]
    for method in ("turns/events", "turns/status", "turns/cancel"):
        assert await later.fails(method, turnId=turn) == (-32603, f"Unknown turn: {turn}")


# --- several at once --------------------------------------------------------------------------------------------------
@pytest.mark.req("kward:76")
@pytest.mark.parametrize("behaviour", ["followUp", "newTurn"])
async def test_a_second_turn_of_a_session_waits_for_the_first(connect: Connect, behaviour: str) -> None:
    gate = Gate()
    peer = connect(GatedProvider([*text("one"), gate], text("two")))
    session = await peer.session()
    first = await peer.start(session["id"])
    await gate.stopped()
    second = await peer.start(session["id"], "next", streamingBehavior=behaviour)
    assert second["id"] != first["id"]
    assert (await peer.ok("turns/status", turnId=second["id"]))["status"] == "queued"
    state = await peer.ok("runtime/state", sessionId=session["id"])
    assert state["pendingMessageCount"] == 2
    gate.open()
    await peer.finished(second["id"])
    order = [(m["params"]["turnId"], m["params"]["type"]) for m in peer.seen if m.get("method") == "turn/event"]
    assert order.index((first["id"], "turnFinished")) < order.index((second["id"], "turnStarted"))


@pytest.mark.req("kward:76")
async def test_turns_of_two_sessions_run_at_the_same_time(connect: Connect) -> None:
    gates = [Gate(), Gate()]
    peer = connect(GatedProvider([gates[0]], [gates[1]]))
    one, two = await peer.session(name="1"), await peer.session(name="2")
    turns = [await peer.start(session["id"]) for session in (one, two)]
    for gate in gates:
        await gate.stopped()
    for turn in turns:
        assert (await peer.ok("turns/status", turnId=turn["id"]))["status"] == "running"
    for gate in gates:
        gate.open()
    for turn in turns:
        await peer.finished(turn["id"])


@pytest.mark.req("kward:77")
async def test_a_follow_up_while_idle_starts_at_once(connect: Connect) -> None:
    peer = connect()
    session = await peer.session()
    events = await peer.turn(session["id"], streamingBehavior="followUp")
    assert events[-1]["payload"]["status"] == "completed"


@pytest.mark.req("kward:78", "kward:21")
async def test_a_steer_while_idle_is_refused_and_no_turn_is_made(connect: Connect) -> None:
    peer = connect()
    session = await peer.session()
    code, _ = await peer.fails("turns/start", sessionId=session["id"], input="x", streamingBehavior="steer")
    assert code == -32602
    assert not [m for m in peer.seen if m.get("method") == "turn/event"]
    assert (await peer.ok("runtime/state", sessionId=session["id"]))["pendingMessageCount"] == 0


@pytest.mark.req("kward:79", "kward:80", "kward:21")
@pytest.mark.parametrize("behaviour", [{"streamingBehavior": "steer"}, {}])
async def test_an_input_while_a_turn_runs_steers_it(connect: Connect, behaviour: Message) -> None:
    gate = Gate()
    provider = GatedProvider([*text("one"), gate], text("steered"))
    peer = connect(provider)
    session = await peer.session()
    first = await peer.start(session["id"])
    await gate.stopped()
    steered = await peer.start(session["id"], "rather this", **behaviour)
    assert steered["id"] == first["id"]
    assert steered["status"] == "running"
    gate.open()
    events = await peer.finished(first["id"])
    assert kinds(events).count("turnQueued") == 1
    (told,) = payloads(events, "turnSteered")
    assert told["input"] == "rather this"
    assert told["createdAt"].endswith("Z")
    assert payloads(events, "answer") == [{"content": "steered"}]
    assert len({m["params"]["turnId"] for m in peer.seen if m.get("method") == "turn/event"}) == 1
    told = (await peer.ok("sessions/transcript", sessionId=session["id"]))["messages"]
    assert [m["role"] for m in told] == ["user", "assistant", "user", "assistant"]


@pytest.mark.req("kward:79")
async def test_a_steer_that_comes_too_late_becomes_a_turn_of_its_own(connect: Connect) -> None:
    gate = Gate()
    peer = connect(GatedProvider([*text("one"), gate], text("two")))
    session = await peer.session()
    first = await peer.start(session["id"])
    await gate.stopped()
    await peer.ok("turns/cancel", turnId=first["id"])
    later = await peer.start(session["id"], "rather this", streamingBehavior="steer")
    if later["id"] == first["id"]:
        pytest.fail("a turn that is being stopped was steered")
    assert payloads(await peer.finished(later["id"]), "answer") == [{"content": "two"}]


@pytest.mark.req("kward:81")
async def test_an_unknown_behaviour_is_refused(connect: Connect) -> None:
    peer = connect()
    session = await peer.session()
    told = await peer.fails("turns/start", sessionId=session["id"], input="x", streamingBehavior="later")
    assert told == (-32602, "Unsupported streamingBehavior: later")


@pytest.mark.req("kward:89")
async def test_a_retry_of_the_model_carries_its_six_fields(connect: Connect) -> None:
    retry = RetryChunk(2, 1.5, "The server is overloaded.", "overloaded", 4, 529)
    peer = connect(GatedProvider([retry, *text("fine")]))
    session = await peer.session()
    (told,) = payloads(await peer.turn(session["id"]), "modelRetry")
    assert told == {
        "provider": "fake",
        "model": "model",
        "attempt": 2,
        "maxAttempts": 4,
        "delaySeconds": 1.5,
        "error": "The server is overloaded.",
    }


@pytest.mark.req("kward:90")
async def test_a_running_turn_shows_in_the_state(connect: Connect) -> None:
    gate = Gate()
    peer = connect(GatedProvider([gate]))
    session = await peer.session()
    turn = await peer.start(session["id"])
    await gate.stopped()
    state = await peer.ok("runtime/state", sessionId=session["id"])
    assert state["isStreaming"] is True
    assert state["pendingMessageCount"] == 1
    gate.open()
    await peer.finished(turn["id"])
    state = await peer.ok("runtime/state", sessionId=session["id"])
    assert (state["isStreaming"], state["pendingMessageCount"]) == (False, 0)
