"""Turns: their events in order, queues, steers, cancels, tools, attachments and questions."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest

from quintet.domain.errors import ProviderFailed
from quintet.domain.item import MediaKind, MediaPart, TextPart
from quintet.domain.model import MediaChunk, RetryChunk, TextChunk
from quintet.domain.thread import ThreadQuery
from quintet.domain.turn import Mode
from quintet.tools.task import TaskTool
from quintet.tools.write import WriteTool
from quintet.workspace.paths import PathGuard
from quintet.workspace.seen import Seen
from tests.fakes.kward_peer import Message, Peer, Said, kinds, payloads
from tests.fakes.providers import Gate, GatedProvider, call, text
from tests.fakes.tools import FakeTool, SlowTool
from tests.fakes.waiting import soon
from tests.unit.protocols.kward.conftest import Connect

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"0" * 20).decode()


def image(**more: Any) -> Message:
    return {"type": "image", "data": PNG, "mimeType": "image/png", **more}


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


# --- stopping ---------------------------------------------------------------------------------------------------------
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


# --- slash commands ---------------------------------------------------------------------------------------------------
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


async def transcript(peer: Peer, session: Message) -> list[Message]:
    return (await peer.ok("sessions/transcript", sessionId=session["id"]))["messages"]  # type: ignore[no-any-return]


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


# --- tools ------------------------------------------------------------------------------------------------------------
async def result_of(connect: Connect, name: str, given: Message, **options: Any) -> tuple[Message, Message]:
    """The payloads of one call and of its result."""
    peer = connect(GatedProvider(call(name, json.dumps(given)), text("done")), **options)
    (peer.work / "a.txt").write_text("one\ntwo\n")
    events = await peer.turn((await peer.session())["id"])
    (called,), (result,) = payloads(events, "toolCall"), payloads(events, "toolResult")
    assert kinds(events).index("assistantMessage") < kinds(events).index("toolCall")
    return called, result


@pytest.mark.req("kward:92")
async def test_an_edit_is_told_with_old_and_new_text(connect: Connect) -> None:
    edits = [{"old_text": "one", "new_text": "1"}]
    called, _ = await result_of(connect, "edit_file", {"path": "a.txt", "edits": edits})
    assert called["toolName"] == "edit"
    assert called["args"] == {"path": "a.txt", "edits": [{"oldText": "one", "newText": "1"}]}
    assert called["tool"] == {
        "kind": "edit",
        "path": "a.txt",
        "edits": [{"oldText": "one", "newText": "1"}],
        "oldText": "one",
        "newText": "1",
    }
    assert called["rawToolCall"] == called["toolCall"]
    assert called["rawToolCall"]["function"]["name"] == "edit_file"
    assert called["toolCallId"] == called["rawToolCall"]["id"]


@pytest.mark.req("kward:93")
async def test_a_write_tells_what_it_changed_and_an_error_does_not(connect: Connect) -> None:
    called, result = await result_of(connect, "write_file", {"path": "b.txt", "content": "x\n"})
    assert called["tool"] == {"kind": "write", "path": "b.txt"}
    assert result["result"]["changedFiles"] == ["b.txt"]
    assert result["result"]["isError"] is False
    assert result["result"]["diff"].startswith("--- ")
    assert result["result"]["images"] == []
    assert result["content"] == result["result"]["content"]
    assert {k: result[k] for k in called} == called
    _, refused = await result_of(connect, "write_file", {"path": "../b.txt", "content": "x\n"})
    assert refused["result"]["isError"] is True
    assert not {"diff", "changedFiles"} & set(refused["result"])


@pytest.mark.req("kward:94")
async def test_a_command_always_carries_its_timeout(connect: Connect) -> None:
    shell = FakeTool("shell")
    called, _ = await result_of(connect, "run_shell_command", {"command": "ls"}, tools=[shell])
    assert called["toolName"] == "bash"
    assert called["args"] == {"command": "ls", "timeout": 30}
    assert called["tool"] == {"kind": "shell", "command": "ls"}
    assert shell.ran == [{"command": "ls", "timeout_s": 30}]
    called, _ = await result_of(
        connect, "run_shell_command", {"command": "ls", "timeout_seconds": 5}, tools=[FakeTool("shell")]
    )
    assert called["args"] == {"command": "ls", "timeout": 5}


@pytest.mark.req("kward:95")
async def test_a_file_that_was_not_read_cannot_be_edited(connect: Connect) -> None:
    _, result = await result_of(
        connect, "edit_file", {"path": "a.txt", "edits": [{"old_text": "one", "new_text": "1"}]}
    )
    assert result["result"]["isError"] is True
    assert result["content"].startswith("Error: ")
    assert "must be read before editing" in result["content"]


@pytest.mark.req("kward:96")
async def test_an_unknown_tool_is_a_result(connect: Connect) -> None:
    called, result = await result_of(connect, "fly_away", {"how_far": 1})
    assert (called["toolName"], called["args"]) == ("fly_away", {"howFar": 1})
    assert "tool" not in called
    assert result["result"]["isError"] is True


async def test_a_tool_called_by_its_own_name_is_told_by_kwards(connect: Connect) -> None:
    called, result = await result_of(connect, "read", {"path": "a.txt", "from_line": 2})
    assert called["toolName"] == "read"
    assert called["rawToolCall"]["function"]["name"] == "read_file"
    assert called["args"] == {"path": "a.txt", "offset": 2}
    assert result["content"].startswith("two")


# --- attachments ------------------------------------------------------------------------------------------------------
@pytest.mark.req("kward:97", "kward:98", "kward:99", "kward:100", "kward:101")
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "attachments must be an array"),
        ("x", "attachments must be an array"),
        (["x"], "attachment must be an object"),
        ([image(type="file")], "Unsupported attachment type: file"),
        ([image(mimeType="image/svg+xml")], "Unsupported image MIME type: image/svg+xml"),
        ([image(data=f"data:image/png;base64,{PNG}")], "Image attachment data must be raw base64"),
        ([image(data="")], "Image attachment data must be valid base64"),
        ([image(data="not base64!")], "Image attachment data must be valid base64"),
        ([image(data=None)], "Image attachment data must be valid base64"),
        ([image(sizeBytes=10485761)], "Image attachment is too large"),
    ],
)
async def test_an_attachment_that_is_none_is_refused(connect: Connect, given: Any, words: str) -> None:
    peer = connect()
    session = await peer.session()
    assert await peer.fails("turns/start", sessionId=session["id"], input="x", attachments=given) == (-32602, words)
    assert not [m for m in peer.seen if m.get("method") == "turn/event"]


@pytest.mark.req("kward:101")
async def test_an_image_of_exactly_ten_mebibytes_passes_and_one_byte_more_does_not(connect: Connect) -> None:
    peer = connect(known={"vision": True})
    session = await peer.session()
    data = base64.b64encode(b"0" * 10485761).decode()
    told = await peer.fails("turns/start", sessionId=session["id"], input="x", attachments=[image(data=data)])
    assert told == (-32602, "Image attachment is too large")
    exact = image(data=base64.b64encode(b"0" * 10485760).decode(), sizeBytes=10485760)
    assert kinds(await peer.turn(session["id"], attachments=[exact]))[-1] == "turnFinished"


@pytest.mark.req("kward:99", "kward:102", "kward:107")
async def test_an_image_is_in_the_transcript_under_its_name(connect: Connect) -> None:
    peer = connect(known={"vision": True, "context_window": 1000})
    session = await peer.session()
    await peer.turn(session["id"], attachments=[image(mimeType="IMAGE/PNG", name="a.png")])
    user = (await transcript(peer, session))[0]
    assert user["content"] == [
        {"type": "text", "text": "go"},
        {"type": "image", "data": PNG, "mimeType": "image/png", "alt": "a.png"},
    ]
    assert "contextUsage" not in await peer.ok("runtime/stats", sessionId=session["id"])


async def test_what_kward_has_no_form_for_is_named_live_and_in_the_transcript(connect: Connect) -> None:
    """Another protocol gave a video to this thread, and its model sent one."""
    clip = MediaPart(MediaKind.VIDEO, "data:video/mp4;base64,AAAA")
    peer = connect(GatedProvider([*text("so"), MediaChunk(clip)], text("x")), known={"context_window": 1000})
    session = await peer.session()
    words = {"type": "text", "text": "[a video, video/mp4, 3 bytes]"}
    events = await peer.turn(session["id"])
    assert payloads(events, "assistantDelta") == [{"delta": "so"}, {"delta": words["text"]}]
    assert (await transcript(peer, session))[1]["content"] == [{"type": "text", "text": "so" + words["text"]}]
    (thread,) = await peer.process.threads.page(ThreadQuery())
    starter = peer.process.starter(GatedProvider(text("y")))
    given = (TextPart("see"), clip)
    await peer.process.ended((await peer.process.turns.start(thread.id, given, starter)).turn.id)
    assert (await transcript(peer, session))[2]["content"] == [{"type": "text", "text": "see"}, words]
    assert "contextUsage" not in await peer.ok("runtime/stats", sessionId=session["id"])


# --- questions --------------------------------------------------------------------------------------------------------
OPTIONS = [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]
QUESTION: Message = {"question": "Which?", "header": "Colour", "options": OPTIONS}


@pytest.mark.req("kward:103")
@pytest.mark.parametrize(
    "questions",
    [
        [],
        [QUESTION] * 5,
        [QUESTION | {"options": OPTIONS[:1]}],
        [QUESTION | {"options": [{"label": str(n), "description": "d"} for n in range(5)]}],
        [QUESTION | {"multiSelect": True}],
        [QUESTION | {"multiSelect": False}],
        [QUESTION | {"options": [OPTIONS[0] | {"preview": "x"}, OPTIONS[1]]}],
        [QUESTION | {"options": [OPTIONS[0] | {"label": " "}, OPTIONS[1]]}],
        [QUESTION | {"options": [OPTIONS[0] | {"description": ""}, OPTIONS[1]]}],
    ],
)
async def test_a_question_the_client_could_not_show_is_refused(connect: Connect, questions: list[Message]) -> None:
    _, result = await result_of(connect, "ask_user_question", {"questions": questions})
    assert result["result"]["isError"] is True


@pytest.mark.req("kward:103", "kward:104")
async def test_a_question_is_put_trimmed_and_answered_with_a_line_each(connect: Connect) -> None:
    given = {"questions": [QUESTION | {"question": " Which? ", "odd": 1}, QUESTION | {"question": "And?"}]}
    peer = connect(GatedProvider(call("ask_user_question", json.dumps(given)), text("done")))
    session = await peer.session()
    turn = await peer.start(session["id"])
    asked = await peer.told("ui/question")
    assert asked["sessionId"] == session["id"]
    assert asked["questions"] == [QUESTION, QUESTION | {"question": "And?"}]
    answers = [{"question": "And?", "answer": "Blue"}, {"question": "Which?", "answer": "my own words"}]
    for _ in range(2):
        told = await peer.ok(
            "ui/answerQuestion", sessionId=session["id"], questionRequestId=asked["questionRequestId"], answers=answers
        )
        assert told == {"ok": True}
    (result,) = payloads(await peer.finished(turn["id"]), "toolResult")
    assert result["content"] == "Which?: my own words\nAnd?: Blue"
    assert result["result"]["isError"] is False
    unknown = await peer.ok("ui/answerQuestion", sessionId=session["id"], questionRequestId="no such", answers=[])
    assert unknown == {"ok": True}


@pytest.mark.req("kward:104")
@pytest.mark.parametrize("answers", [None, []])
async def test_no_answer_is_a_cancel(connect: Connect, answers: Any) -> None:
    peer = connect(GatedProvider(call("ask_user_question", json.dumps({"questions": [QUESTION]})), text("done")))
    session = await peer.session()
    turn = await peer.start(session["id"])
    asked = await peer.told("ui/question")
    await peer.ok(
        "ui/answerQuestion", sessionId=session["id"], questionRequestId=asked["questionRequestId"], answers=answers
    )
    (result,) = payloads(await peer.finished(turn["id"]), "toolResult")
    assert result["content"] == "Cancelled."
    assert result["result"]["isError"] is True


async def test_where_policy_asks_the_person_is_asked_with_everything_in_sight(connect: Connect) -> None:
    called = call("write_file", json.dumps({"path": "a.txt", "content": "new\n"}))
    peer = connect(GatedProvider(called, text("done"), called, text("done")), mode=Mode.ASK)
    session = await peer.session()
    for word, written in (("Deny", False), ("Allow", True)):
        peer.seen.clear()
        turn = await peer.start(session["id"])
        asked = await peer.told("ui/question")
        (question,) = asked["questions"]
        assert "a.txt" in question["question"]
        assert "+new" in question["question"]
        labels = [option["label"] for option in question["options"]]
        assert labels[0] == "Allow"
        assert labels[-1] == "Deny"
        answers = [{"question": question["question"], "answer": word}]
        given = {"sessionId": session["id"], "questionRequestId": asked["questionRequestId"], "answers": answers}
        await peer.ok("ui/answerQuestion", **given)
        (result,) = payloads(await peer.finished(turn["id"]), "toolResult")
        assert result["result"]["isError"] is not written
        assert Path(peer.work / "a.txt").exists() is written
    assert result["content"].startswith(("Wrote", "Created"))


async def test_what_a_subagent_wants_is_asked_and_the_rest_of_it_is_its_own(connect: Connect) -> None:
    given = json.dumps({"description": "write it", "prompt": "write a.txt"})
    wanted = call("write_file", json.dumps({"path": "a.txt", "content": "new\n"}), "c2")
    provider = GatedProvider(call("task", given), wanted, text("written"), text("done"))
    guard, seen = PathGuard(), Seen()
    peer = connect(provider, [TaskTool(), WriteTool(guard, seen)], mode=Mode.ASK)
    session = await peer.session()
    turn = await peer.start(session["id"])
    asked = await peer.told("ui/question")
    assert "a.txt" in asked["questions"][0]["question"]
    answers = [{"question": "", "answer": "Allow"}]
    given_back = {"sessionId": session["id"], "questionRequestId": asked["questionRequestId"], "answers": answers}
    await peer.ok("ui/answerQuestion", **given_back)
    events = await peer.finished(turn["id"])
    assert [p["toolName"] for p in payloads(events, "toolResult")] == ["task"]
    assert payloads(events, "answer") == [{"content": "done"}]
    assert (peer.work / "a.txt").exists()


async def test_a_declined_call_says_so(connect: Connect) -> None:
    called = call("write_file", json.dumps({"path": "a.txt", "content": "new\n"}))
    peer = connect(GatedProvider(called, text("done")), mode=Mode.READ_ONLY)
    session = await peer.session()
    (result,) = payloads(await peer.turn(session["id"]), "toolResult")
    assert result["content"].startswith("Declined: ")
    told = await peer.ok("initialize")
    assert told["capabilities"]["security"]["canWriteFiles"] is False
