"""Session files: what others wrote is read, gone on with and never overwritten; what we write others can read."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from quintet.domain import item as it
from quintet.domain.errors import ProviderFailed
from quintet.protocols.kward.messages import messages
from quintet.protocols.kward.session_import import read
from tests.fakes.kward_peer import Message, Peer, kinds
from tests.fakes.providers import GatedProvider, call, text
from tests.unit.protocols.kward.conftest import Connect

AT = "2026-01-02T03:04:05.678Z"


def head(cwd: Path | str, id: str = "11111111-2222-4333-8444-555555555555", version: int = 1, **more: Any) -> Message:
    return {"type": "session", "version": version, "id": id, "timestamp": AT, "cwd": os.path.realpath(cwd), **more}


def said(role: str, content: Any, **more: Any) -> Message:
    top = {k: more.pop(k) for k in ("id", "parentId") if k in more}
    return {"type": "message", **top, "timestamp": AT, "message": {"role": role, "content": content, **more}}


def write(peer: Peer, *records: Message | str, name: str = "theirs.jsonl") -> Path:
    directory = peer.config / "sessions" / ("--" + os.path.realpath(peer.work).lstrip("/").replace("/", "-") + "--")
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    path.write_text("\n".join(lines) + "\n")
    return path


async def transcript(peer: Peer, path: Path) -> list[Message]:
    opened = await peer.ok("sessions/resume", path=str(path))
    return (await peer.ok("sessions/transcript", sessionId=opened["id"]))["messages"]  # type: ignore[no-any-return]


def words(told: list[Message]) -> list[tuple[str, str]]:
    return [(m["role"], m.get("summary") or m["content"][0].get("text", "")) for m in told]


# --- reading ----------------------------------------------------------------------------------------------------------
@pytest.mark.req("kward:35")
async def test_lines_that_cannot_be_read_are_passed_over(connect: Connect) -> None:
    peer = connect()
    path = write(peer, head(peer.work), said("user", "one"), '{"type":"mess', "[]", said("assistant", "two"))
    assert words(await transcript(peer, path)) == [("user", "one"), ("assistant", "two")]


@pytest.mark.req("kward:35")
async def test_what_stands_before_a_line_that_cannot_be_read_is_kept_where_records_name_the_one_before(
    connect: Connect,
) -> None:
    peer = connect()
    path = write(
        peer,
        head(peer.work, version=2),
        said("user", "one", id="a1", parentId=None),
        '{"type":"message","id":"a2","parentId":"a1","mess',
        said("user", "three", id="a3", parentId="a2"),
        said("assistant", "four", id="a4", parentId="a3"),
    )
    assert [w for _, w in words(await transcript(peer, path))] == ["one", "three", "four"]


async def test_a_leaf_that_names_no_record_leaves_the_conversation_where_it_stood(connect: Connect) -> None:
    peer = connect()
    leaf = {"type": "leaf", "timestamp": AT, "targetId": "gone"}
    path = write(peer, head(peer.work, version=2), said("user", "one", id="a1", parentId=None), leaf)
    assert [w for _, w in words(await transcript(peer, path))] == ["one"]


@pytest.mark.req("mechanisms:M6.foreign")
async def test_what_a_kward_without_ids_put_behind_ours_becomes_part_of_the_thread(connect: Connect) -> None:
    peer = connect()
    made = await peer.session()
    await peer.turn(made["id"], "ours")
    path = Path(made["path"])
    path.write_text(path.read_text() + json.dumps(said("user", "theirs")) + "\n")
    later = connect(GatedProvider(text("hello")))
    again = await later.ok("sessions/resume", path=made["path"])
    await later.turn(again["id"], "more")
    whole = ["ours", "hello", "theirs", "more", "hello"]
    told = (await later.ok("sessions/transcript", sessionId=again["id"]))["messages"]
    assert [w for _, w in words(told)] == whole
    found = read(path.read_bytes())
    assert found is not None
    assert [m.text() for m in found.messages()] == whole
    assert len((await later.ok("sessions/list"))["sessions"]) == 1


@pytest.mark.req("kward:67", "kward:68", "kward:69", "kward:71")
async def test_each_form_of_a_message_comes_out_in_one(connect: Connect) -> None:
    peer = connect()
    picture = {"type": "image_url", "image_url": {"url": "data:image/jpg;base64,aGk="}}
    path = write(
        peer,
        head(peer.work),
        said("system", "be good"),
        said(
            "user",
            [{"type": "text", "text": "look"}, picture, {"type": "image", "mimeType": "image/tiff", "data": "aGk="}],
        ),
        said("assistant", "plain", reasoning_summary="because"),
        said(
            "assistant",
            [{"type": "text", "text": "after"}, {"type": "thinking", "thinking": "first"}],
            reasoning_summary="dropped",
        ),
    )
    user, plain, parts = await transcript(peer, path)
    assert user["content"] == [
        {"type": "text", "text": "look"},
        {"type": "image", "data": "aGk=", "mimeType": "image/jpeg"},
    ]
    assert plain["content"] == [{"type": "thinking", "thinking": "because"}, {"type": "text", "text": "plain"}]
    assert parts["content"] == [{"type": "thinking", "thinking": "first"}, {"type": "text", "text": "after"}]


@pytest.mark.req("kward:70")
async def test_results_without_a_flag_are_judged_by_their_first_word(connect: Connect) -> None:
    peer = connect()
    calls = [
        {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for id, name, arguments in (
            ("c1", "read_file", '{"path":"a"}'),
            ("c2", "read_file", '{"path":"b"}'),
            ("c3", "edit_file", '{"path":"c","old_text":"x","new_text":"y"}'),
            ("c4", "run_shell_command", '{"command":"ls","timeout_seconds":5}'),
        )
    ]
    ended = {"type": "tool_execution_end", "timestamp": AT, "toolCallId": "c2", "toolName": "read", "isError": False}
    diff = {
        "type": "tool_execution_end",
        "toolCallId": "c3",
        "isError": False,
        "result": {"diff": "--- a\n", "changedFiles": ["c"]},
    }
    path = write(
        peer,
        head(peer.work),
        said("assistant", None, tool_calls=calls),
        said("tool", "Error: there is none", tool_call_id="c1", name="read_file"),
        said("tool", "Error: stands in the file", tool_call_id="c2", name="read_file"),
        ended,
        said("tool", "done", tool_call_id="c3"),
        diff,
        said("tool", "out", tool_call_id="c4"),
    )
    asked, *results = await transcript(peer, path)
    assert [(c["name"], c["arguments"]) for c in asked["content"]] == [
        ("read", {"path": "a"}),
        ("read", {"path": "b"}),
        ("edit", {"path": "c", "edits": [{"oldText": "x", "newText": "y"}]}),
        ("bash", {"command": "ls", "timeoutSeconds": 5}),
    ]
    assert [(r["toolName"], r["isError"]) for r in results] == [
        ("read", True),
        ("read", False),
        ("edit", False),
        ("bash", False),
    ]
    assert results[2]["details"] == {"diff": "--- a\n", "changedFiles": ["c"]}


async def test_a_tree_is_read_along_the_branch_it_last_stood_on(connect: Connect) -> None:
    peer = connect()
    path = write(
        peer,
        head(peer.work, version=2),
        said("user", "root", id="a1", parentId=None),
        said("assistant", "left", id="b1", parentId="a1"),
        said("assistant", "right", id="b2", parentId="a1"),
        said("user", "more", id="c1", parentId="b2"),
        {"type": "leaf", "targetId": "b1"},
        {"type": "label", "id": "l", "targetId": "a1", "label": "x"},
    )
    assert words(await transcript(peer, path)) == [("user", "root"), ("assistant", "left")]


@pytest.mark.req("kward:65")
@pytest.mark.parametrize("kept", ["c1", "message:2"])
async def test_after_a_compaction_the_transcript_begins_with_its_summary(connect: Connect, kept: str) -> None:
    peer = connect()
    ids = [
        {"id": id, "parentId": above}
        for id, above in (("a1", None), ("b1", "a1"), ("c1", "b1"), ("s1", "c1"), ("d1", "s1"))
    ]
    summary = {"role": "compactionSummary", "summary": "what was", "first_kept_entry_id": kept, "tokens_before": 9}
    path = write(
        peer,
        head(peer.work, version=2),
        said("user", "old", **ids[0]),
        said("assistant", "older", **ids[1]),
        said("user", "kept", **ids[2]),
        {"type": "compaction", "timestamp": AT, **ids[3], "message": summary},
        said("assistant", "new", **ids[4]),
    )
    told = await transcript(peer, path)
    assert words(told) == [("compactionSummary", "what was"), ("user", "kept"), ("assistant", "new")]
    opened = await peer.ok("sessions/resume", path=str(path))
    forks = (await peer.ok("sessions/forkMessages", sessionId=opened["id"]))["messages"]
    assert forks == [{"entryId": "message:0", "text": "old"}, {"entryId": "message:2", "text": "kept"}]


@pytest.mark.parametrize("cwd", [None, "", "here", 5])
async def test_a_file_that_does_not_say_where_it_works_does_so_where_it_is_opened(connect: Connect, cwd: Any) -> None:
    peer = connect()
    path = write(peer, head(peer.work) | {"cwd": cwd}, said("user", "one"))
    assert (await peer.ok("sessions/resume", path=str(path)))["cwd"] == os.path.realpath(peer.work)


async def test_a_path_that_cannot_be_read_is_told(connect: Connect) -> None:
    peer = connect()
    directory = peer.where / "directory.jsonl"
    directory.mkdir()
    held = len(os.listdir("/proc/self/fd"))
    for path in (directory, "/dev/zero"):
        code, words = await peer.fails("sessions/resume", path=str(path))
        assert code == -32603
        assert words.startswith(f"Session file cannot be opened: {path}")
    assert len(os.listdir("/proc/self/fd")) == held


async def test_where_no_session_file_can_be_written_sessions_are_begun_used_and_opened_again(connect: Connect) -> None:
    peer = connect()
    peer.config.mkdir()
    (peer.config / "sessions").write_text("a file stands where the directory should be")
    made = await peer.session()
    assert kinds(await peer.turn(made["id"]))[-1] == "turnFinished"
    later = connect()
    (row,) = (await later.ok("sessions/list"))["sessions"]
    assert words(await transcript(later, row["path"])) == [("user", "go"), ("assistant", "hello")]
    assert any("Not a directory" in line for line in later.log)


def test_a_circle_and_a_mountain_of_nonsense_are_read_to_an_end() -> None:
    circle = [head("/x", version=2), said("user", "a", id="a", parentId="b"), said("user", "b", id="b", parentId="a")]
    found = read("\n".join(map(json.dumps, circle)).encode())
    assert found is not None
    assert len(found.said) == 2
    assert read(b"[" * 100_000) is None


# --- the list ---------------------------------------------------------------------------------------------------------
async def test_files_nobody_has_opened_are_listed_and_looked_at_once(connect: Connect, tmp_path: Path) -> None:
    peer = connect()
    path = write(
        peer, head(peer.work, parentId="p", parentPath="/p.jsonl"), said("user", "theirs"), said("assistant", "x")
    )
    write(peer, "nonsense", name="odd.jsonl")
    write(peer, head("/elsewhere", "e"), said("user", "not here"), name="other.jsonl")
    named = write(peer, head(peer.work, "n1"), {"type": "session_info", "name": "called"}, name="named.jsonl")
    os.utime(path, (1_900_000_000, 1_900_000_000))
    os.utime(named, (1_800_000_000, 1_800_000_000))
    rows = (await peer.ok("sessions/list"))["sessions"]
    assert [(r["firstMessage"], r["messageCount"], r["name"]) for r in rows] == [
        ("theirs", 2, None),
        (None, 0, "called"),
    ]
    assert rows[0]["parentId"] == "p"
    assert rows[0]["path"] == str(path)
    assert rows[0]["createdAt"] == AT
    kept = json.loads((tmp_path / "index.json").read_text())
    assert len(kept) == 4
    kept[str(path)]["row"]["firstMessage"] = "from the index"
    (tmp_path / "index.json").write_text(json.dumps(kept))
    again = (await peer.ok("sessions/list"))["sessions"]
    assert again[0]["firstMessage"] == "from the index"
    path.write_text(path.read_text() + json.dumps(said("user", "more")) + "\n")
    os.utime(path, (1_900_000_001, 1_900_000_001))
    assert (await peer.ok("sessions/list"))["sessions"][0]["messageCount"] == 3


async def test_an_opened_file_is_listed_once_with_its_ancestors(connect: Connect) -> None:
    peer = connect()
    path = write(peer, head(peer.work, parentId="p", parentPath="/p.jsonl"), said("user", "theirs"))
    opened = await peer.ok("sessions/resume", path=str(path))
    assert (opened["parentId"], opened["parentPath"]) == ("p", "/p.jsonl")
    assert opened["createdAt"] == AT
    (row,) = (await peer.ok("sessions/list"))["sessions"]
    assert (row["parentId"], row["path"], row["messageCount"]) == ("p", str(path), 1)


# --- going on ---------------------------------------------------------------------------------------------------------
async def test_a_file_of_kwards_goes_on_as_it_began(connect: Connect) -> None:
    """Without ids where it has none: a reader that follows ids would see nothing but the new part."""
    peer = connect(GatedProvider(text("hello")))
    path = write(peer, head(peer.work), said("user", "one"), said("assistant", "two"))
    before = path.read_bytes()
    opened = await peer.ok("sessions/resume", path=str(path))
    await peer.turn(opened["id"], "three")
    assert path.read_bytes().startswith(before)
    added = [json.loads(line) for line in path.read_bytes()[len(before) :].splitlines()]
    assert [r["message"]["content"] for r in added] == ["three", "hello"]
    assert not any("id" in record for record in added)
    assert words(await transcript(peer, path)) == [
        ("user", "one"),
        ("assistant", "two"),
        ("user", "three"),
        ("assistant", "hello"),
    ]


async def test_a_tree_of_kwards_goes_on_behind_its_last_record(connect: Connect) -> None:
    peer = connect()
    path = write(
        peer,
        head(peer.work, version=2),
        said("user", "one", id="a1", parentId=None),
        {"type": "leaf", "targetId": "a1"},
    )
    opened = await peer.ok("sessions/resume", path=str(path))
    await peer.turn(opened["id"], "two")
    added = [r for r in map(json.loads, path.read_text().splitlines()) if r["type"] == "message"][1:]
    assert added[0]["parentId"] == "a1"
    assert added[1]["parentId"] == added[0]["id"]


@pytest.mark.req("mechanisms:M6.foreign")
async def test_what_kward_put_behind_ours_becomes_part_of_the_thread(connect: Connect) -> None:
    peer = connect()
    made = await peer.session()
    await peer.turn(made["id"], "ours")
    last = peer.records(made)[-1]["id"]
    path = Path(made["path"])
    theirs = [
        said("user", "theirs", id="f1", parentId=last),
        said("assistant", "answered", id="f2", parentId="f1"),
        {"type": "session_info", "timestamp": AT, "name": "renamed"},
    ]
    path.write_text(path.read_text() + "".join(json.dumps(r) + "\n" for r in theirs))
    later = connect(GatedProvider(text("hello")))
    again = await later.ok("sessions/resume", path=made["path"])
    assert again["persistentId"] == made["persistentId"]
    assert again["name"] == "renamed"
    told = (await later.ok("sessions/transcript", sessionId=again["id"]))["messages"]
    assert [w for _, w in words(told)] == ["ours", "hello", "theirs", "answered"]
    await later.turn(again["id"], "more")
    records = later.records(made)
    assert [r["message"]["content"] for r in records if r["type"] == "message"][-2:] == ["more", "hello"]
    assert next(r for r in records if r.get("message", {}).get("content") == "more")["parentId"] == "f2"
    assert len((await later.ok("sessions/list"))["sessions"]) == 1


@pytest.mark.req("mechanisms:M6.foreign")
async def test_a_file_that_somebody_rewrote_becomes_another_thread_and_is_not_overwritten(connect: Connect) -> None:
    peer = connect()
    made = await peer.session()
    await peer.turn(made["id"], "ours")
    path = Path(made["path"])
    path.write_text(json.dumps(head(peer.work, made["persistentId"])) + "\n" + json.dumps(said("user", "other")) + "\n")
    changed = path.read_bytes()
    await peer.turn(made["id"], "again")
    assert path.read_bytes() == changed
    assert any("written by somebody else" in line for line in peer.log)
    later = connect()
    again = await later.ok("sessions/resume", path=made["path"])
    told = (await later.ok("sessions/transcript", sessionId=again["id"]))["messages"]
    assert [w for _, w in words(told)] == ["other"]


@pytest.mark.req("mechanisms:M6.missing")
async def test_a_missing_file_is_written_anew(connect: Connect) -> None:
    peer = connect()
    made = await peer.session()
    await peer.turn(made["id"], "one")
    before = Path(made["path"]).read_bytes()
    os.unlink(made["path"])
    await connect().ok("sessions/resume", path=made["path"])
    assert Path(made["path"]).read_bytes() == before
    os.unlink(made["path"])
    await peer.turn(made["id"], "two")
    assert Path(made["path"]).read_bytes().startswith(before)


async def test_what_we_write_reads_the_same_by_line_and_by_id(connect: Connect) -> None:
    written = call("write_file", '{"path": "a.txt", "content": "x\\n"}')
    peer = connect(GatedProvider([*text("so"), *written], text("done"), text("again")))
    made = await peer.session(name="n")
    await peer.turn(made["id"], "one")
    await peer.turn(made["id"], "two")
    records = peer.records(made)
    entries = [r for r in records if r["type"] == "message"]
    assert [r["parentId"] for r in entries] == [None, *(r["id"] for r in entries[:-1])]
    assert len({r["id"] for r in entries}) == len(entries)
    assert [r["message"]["role"] for r in entries] == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    (ended,) = [r for r in records if r["type"] == "tool_execution_end"]
    assert (ended["toolName"], ended["args"]["path"], ended["isError"]) == ("write", "a.txt", False)
    assert ended["result"]["changedFiles"] == ["a.txt"]
    assert entries[1]["message"]["tool_calls"][0]["function"]["name"] == "write_file"
    found = read(Path(made["path"]).read_bytes())
    assert found is not None
    thread = (await peer.process.threads.items(peer.connection.state.sessions[made["id"]].thread))[:]
    assert [m.raw() for m in messages(found.items())] == [m.raw() for m in messages(thread)]


async def test_a_turn_that_failed_and_one_that_was_stopped_are_in_the_file(connect: Connect) -> None:
    peer = connect(GatedProvider([*text("half"), ProviderFailed("gone")], text("fine")))
    made = await peer.session()
    assert kinds(await peer.turn(made["id"], "one"))[-1] == "turnFinished"
    assert [r["message"]["content"] for r in peer.records(made)[1:]] == ["one", "half"]
    (_, half) = (await peer.ok("sessions/transcript", sessionId=made["id"]))["messages"]
    assert half["errorMessage"]


async def test_a_revert_elsewhere_moves_the_leaf(connect: Connect) -> None:
    peer = connect("text: one\n---\ntext: two\n---\ntext: three")
    made = await peer.session()
    await peer.turn(made["id"], "first")
    await peer.turn(made["id"], "second")
    thread = peer.connection.state.sessions[made["id"]].thread
    await peer.process.threads.revert(thread, 2)
    *_, entry, leaf = peer.records(made)
    assert entry["type"] == "message"
    assert (leaf["type"], leaf["targetId"]) == ("leaf", peer.records(made)[2]["id"])
    await peer.turn(made["id"], "other")
    found = read(Path(made["path"]).read_bytes())
    assert found is not None
    assert [b.parts[0].text for _, b in found.said if isinstance(b, it.UserMessage)] == ["first", "other"]  # type: ignore[union-attr]
