"""Compaction: what the client is told, what stays in the file, and what the model reads afterwards."""

from __future__ import annotations

import json
from typing import Any

import pytest

from quintet.domain.model import TextChunk
from tests.fakes.kward_peer import Message, Peer, payloads
from tests.fakes.providers import Gate, GatedProvider, call, text
from tests.unit.protocols.kward.conftest import Connect

LONG = "word " * 400  # about five hundred tokens


def told(peer: Peer) -> list[tuple[str, Any]]:
    events = [m["params"] for m in peer.seen if m.get("method") == "session/event"]
    return [(event["type"], event["payload"]) for event in events]


async def filled(peer: Peer, turns: int = 3) -> Message:
    session = await peer.session()
    for number in range(turns):
        await peer.turn(session["id"], f"{number} {LONG}")
    return session


def talking(*last: Any, turns: int = 3) -> GatedProvider:
    return GatedProvider(*(text(f"answer {n} {LONG}") for n in range(turns)), *last)


@pytest.mark.req("kward:56", "kward:59", "kward:60", "kward:65", "kward:66")
async def test_a_compaction_is_told_around_its_reply_and_keeps_the_records(connect: Connect) -> None:
    provider = talking(text("what was said"), text("next"))
    peer = connect(provider, keep_recent=1200)
    session = await filled(peer)
    before = peer.records(session)
    id = await peer.begin("sessions/compact", sessionId=session["id"])
    heard = await peer.until(lambda m: m.get("id") == id)
    result = heard[-1]["result"]
    assert result["summary"].startswith("what was said")
    assert result["firstKeptEntryId"] == "message:4"
    assert isinstance(result["tokensBefore"], int)
    assert result["tokensBefore"] > 1200
    assert result["details"] == {"read_files": [], "modified_files": []}
    assert [kind for kind, _ in told(peer)] == ["compactionStart", "compactionEnd"]
    assert told(peer)[0][1] == {}
    assert told(peer)[1][1] == {"result": result, "aborted": False, "willRetry": False, "errorMessage": None}
    assert {m["params"]["sessionId"] for m in peer.seen if m.get("method") == "session/event"} == {session["id"]}
    records = peer.records(session)
    assert records[: len(before)] == before
    (added,) = records[len(before) :]
    assert added["type"] == "compaction"
    kept = added["message"]["first_kept_entry_id"]
    assert next(r for r in records if r.get("id") == kept)["message"]["content"].startswith("2 word")
    await peer.turn(session["id"], "and now")
    seen = provider.requests[-1].items
    assert [type(item.body).__name__ for item in seen] == [
        "Summary",
        "UserMessage",
        "AssistantMessage",
        "UserMessage",
    ]
    again = await connect().ok("sessions/resume", path=session["path"])
    messages = (await peer.ok("sessions/transcript", sessionId=session["id"]))["messages"]
    assert [m["role"] for m in messages] == ["compactionSummary", "user", "assistant", "user", "assistant"]
    assert again["persistentId"] == session["persistentId"]
    forks = (await peer.ok("sessions/forkMessages", sessionId=session["id"]))["messages"]
    assert [m["entryId"] for m in forks] == ["message:0", "message:2", "message:4", "message:6"]
    early = await peer.ok("sessions/fork", sessionId=session["id"], entryId="message:2")
    whole = (await peer.ok("sessions/transcript", sessionId=early["session"]["id"]))["messages"]
    assert [m["role"] for m in whole] == ["user", "assistant"]


@pytest.mark.req("kward:57")
async def test_a_short_conversation_has_nothing_to_compact(connect: Connect) -> None:
    peer = connect(keep_recent=20_000)
    session = await peer.session()
    for _ in range(2):
        assert await peer.fails("sessions/compact", sessionId=session["id"]) == (-32603, "Nothing to compact")
        assert told(peer)[-1] == (
            "compactionEnd",
            {"result": None, "aborted": True, "willRetry": False, "errorMessage": "Nothing to compact"},
        )
        await peer.turn(session["id"])


@pytest.mark.req("kward:58")
async def test_a_second_compaction_right_after_is_refused(connect: Connect) -> None:
    peer = connect(talking(text("short")), keep_recent=100)
    session = await filled(peer)
    await peer.ok("sessions/compact", sessionId=session["id"])
    assert await peer.fails("sessions/compact", sessionId=session["id"]) == (-32603, "Already compacted")


@pytest.mark.req("kward:61", "kward:63")
async def test_after_a_compaction_a_file_must_be_read_again(connect: Connect) -> None:
    edit = call("edit_file", '{"path": "a.txt", "edits": [{"old_text": "o", "new_text": "0"}]}', "c2")
    edit2 = call("edit_file", '{"path": "a.txt", "edits": [{"old_text": "o", "new_text": "0"}]}', "c4")
    read2 = call("read_file", '{"path": "./b.txt"}', "c3")
    provider = GatedProvider(
        [*call("read_file", '{"path": "b.txt"}'), *call("read_file", '{"path": "a.txt"}', "c0")],
        read2,
        edit,
        text(LONG),
        text("short"),
        edit2,
        text("over"),
    )
    peer = connect(provider, keep_recent=0)
    (peer.work / "a.txt").write_text("one two")
    (peer.work / "b.txt").write_text("b")
    session = await peer.session()
    events = await peer.turn(session["id"], LONG)
    assert [p["result"]["isError"] for p in payloads(events, "toolResult")] == [False] * 3 + [True]
    result = await peer.ok("sessions/compact", sessionId=session["id"])
    assert result["details"] == {"read_files": ["a.txt", "b.txt"], "modified_files": []}
    (again,) = payloads(await peer.turn(session["id"]), "toolResult")
    assert again["result"]["isError"] is True
    assert "must be read before editing" in again["content"]


@pytest.mark.req("kward:62")
async def test_wishes_reach_whoever_summarises(connect: Connect) -> None:
    provider = talking(text("short"))
    peer = connect(provider, keep_recent=100)
    session = await filled(peer)
    await peer.ok("sessions/compact", sessionId=session["id"], customInstructions="keep the names of files")
    assert "keep the names of files" in provider.requests[-1].instructions


@pytest.mark.req("kward:64")
async def test_an_empty_summary_changes_nothing(connect: Connect) -> None:
    provider = talking([TextChunk("  ")], text("next"))
    peer = connect(provider, keep_recent=100)
    session = await filled(peer)
    before = peer.records(session)
    words = "Compaction produced an empty summary; context was not changed."
    assert await peer.fails("sessions/compact", sessionId=session["id"]) == (-32603, words)
    assert told(peer)[-1][1]["errorMessage"] == words
    assert peer.records(session) == before
    await peer.turn(session["id"], "and now")
    assert len(provider.requests[-1].items) == 7


async def test_while_a_conversation_is_compacted_other_requests_are_answered(connect: Connect) -> None:
    gate = Gate()
    peer = connect(talking([gate, *text("short")], text("next")), keep_recent=100)
    session = await filled(peer)
    compacting = await peer.begin("sessions/compact", sessionId=session["id"])
    await gate.stopped()
    state = await peer.ok("runtime/state", sessionId=session["id"])
    assert (state["isCompacting"], state["isStreaming"]) == (True, False)
    turn = await peer.start(session["id"], "queued behind it")
    assert turn["status"] == "queued"
    gate.open()
    assert "result" in await peer.reply(compacting)
    assert payloads(await peer.finished(turn["id"]), "answer") == [{"content": "next"}]
    assert (await peer.ok("runtime/state", sessionId=session["id"]))["isCompacting"] is False


async def test_a_conversation_that_grows_too_long_is_compacted_by_itself_and_the_client_is_told(
    connect: Connect,
) -> None:
    provider = GatedProvider(text(LONG), text(LONG), text("what was said"), text("next"))
    peer = connect(provider, keep_recent=100, known={"context_window": 3200})
    session = await peer.session()
    for number in range(3):
        await peer.turn(session["id"], f"{number} {LONG}")
    kinds = [kind for kind, _ in told(peer)]
    assert kinds == ["compactionStart", "compactionEnd"]
    assert told(peer)[1][1]["result"]["summary"].startswith("what was said")
    assert json.dumps(peer.records(session)).count('"compaction"') == 1
