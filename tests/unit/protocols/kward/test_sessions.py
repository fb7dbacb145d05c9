"""Sessions: begun, named, listed, copied, closed, erased; and the files they have."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from quintet.domain.thread import ThreadSettings
from quintet.protocols.kward.models import Listed
from quintet.protocols.kward.session_list import tree
from tests.fakes.kward_peer import Peer, exists, payloads
from tests.fakes.providers import Gate, GatedProvider, call, text
from tests.unit.protocols.kward.conftest import Connect

TWO = 'text: "one"\n---\ntext: "two"\n---\ntext: "three"'


# --- workspaces -------------------------------------------------------------------------------------------------------
@pytest.mark.req("kward:23", "kward:24")
async def test_a_workspace_is_told_where_it_really_is(connect: Connect) -> None:
    peer = connect()
    (peer.where / "link").symlink_to(peer.work)
    real = os.path.realpath(peer.work)
    assert await peer.ok("workspace/validate", workspaceRoot=str(peer.where / "link")) == {"root": real}
    assert await peer.ok("workspace/validate") == {"root": real}


@pytest.mark.req("kward:25")
async def test_what_is_no_directory_is_named_as_it_was_expanded(connect: Connect) -> None:
    peer = connect()
    (peer.work / "file").write_text("x")
    for given in ("file", "missing"):
        told = await peer.fails("workspace/validate", workspaceRoot=given)
        assert told == (-32603, f"Workspace root is not an existing directory: {peer.work / given}")


@pytest.mark.req("kward:26")
async def test_a_read_only_directory_is_told_as_such(connect: Connect) -> None:
    peer = connect()
    assert (await peer.ok("workspace/info"))["writable"] is True
    closed = peer.where / "closed"
    closed.mkdir(mode=0o555)
    told = await peer.ok("workspace/info", workspaceRoot=str(closed))
    assert told == {"root": os.path.realpath(closed), "basename": "closed", "writable": False}


# --- beginning --------------------------------------------------------------------------------------------------------
@pytest.mark.req("kward:27")
async def test_a_session_begins_with_a_file_that_names_it(connect: Connect) -> None:
    peer = connect()
    made = await peer.session()
    assert made["id"] != made["persistentId"]
    (head,) = peer.records(made)
    assert (head["type"], head["id"], head["cwd"]) == ("session", made["persistentId"], made["cwd"])
    path = Path(made["path"])
    assert path.parent.parent == peer.config / "sessions"
    assert path.parent.name == "--" + str(peer.work).lstrip("/").replace("/", "-") + "--"
    assert path.name.endswith(f"_{made['persistentId']}.jsonl")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.req("kward:28")
async def test_a_name_given_at_the_beginning_is_in_the_file(connect: Connect) -> None:
    peer = connect()
    made = await peer.session(name="plan")
    assert made["name"] == "plan"
    assert [r.get("name") for r in peer.records(made) if r["type"] == "session_info"] == ["plan"]


@pytest.mark.req("kward:29")
async def test_an_unused_session_goes_when_another_begins(connect: Connect) -> None:
    peer = connect()
    first = await peer.session()
    second = await peer.session()
    assert not exists(first)
    assert exists(second)
    assert await peer.fails("runtime/state", sessionId=first["id"]) == (-32603, f"Unknown session: {first['id']}")


@pytest.mark.req("kward:30")
async def test_a_named_used_or_busy_session_stays_when_another_begins(connect: Connect) -> None:
    gate = Gate()
    peer = connect(GatedProvider(text("hi"), [*text("a"), gate]))
    named, used = await peer.session(name="n"), await peer.session()
    await peer.turn(used["id"])
    busy = await peer.session()
    await peer.start(busy["id"])
    await gate.stopped()
    await peer.session()
    for session in (named, used, busy):
        assert exists(session)
        assert await peer.ok("runtime/state", sessionId=session["id"])
    gate.open()


@pytest.mark.req("kward:29")
async def test_a_session_that_another_process_has_open_is_left_alone(connect: Connect) -> None:
    one, other = connect(), connect()
    theirs = await one.session()
    await other.ok("sessions/resume", path=theirs["path"])
    await other.session()
    assert exists(theirs)
    assert await one.ok("runtime/state", sessionId=theirs["id"])


# --- opening again ----------------------------------------------------------------------------------------------------
@pytest.mark.req("kward:31", "kward:32")
async def test_a_file_opened_twice_is_one_session_under_two_ids(connect: Connect) -> None:
    peer = connect()
    made = await peer.session()
    await peer.turn(made["id"])
    elsewhere = peer.where / "elsewhere"
    elsewhere.mkdir()
    one = await peer.ok("sessions/resume", path=made["path"])
    two = await peer.ok("sessions/resume", path=made["path"], workspaceRoot=str(elsewhere))
    assert len({made["id"], one["id"], two["id"]}) == 3
    assert {made["persistentId"], one["persistentId"], two["persistentId"]} == {made["persistentId"]}
    assert two["workspaceRoot"] == made["workspaceRoot"]
    relative = os.path.relpath(made["path"], elsewhere)
    assert (await peer.ok("sessions/resume", path=relative, workspaceRoot=str(elsewhere)))["path"] == made["path"]


@pytest.mark.req("kward:33", "kward:34")
async def test_a_path_that_is_no_session_is_refused(connect: Connect) -> None:
    peer = connect()
    missing = str(peer.where / "missing.jsonl")
    assert await peer.fails("sessions/resume", path=missing) == (-32603, f"Session file not found: {missing}")
    odd = peer.where / "odd.jsonl"
    for content in ("", "{}\n", '{"type":"message"}\n', "not json\n", '["session"]\n'):
        odd.write_text(content)
        assert await peer.fails("sessions/resume", path=str(odd)) == (-32603, f"Invalid Kward session file: {odd}")


@pytest.mark.req("kward:37")
async def test_a_session_of_another_protocol_is_listed_and_gets_its_file_when_it_is_opened(connect: Connect) -> None:
    peer = connect(TWO)
    thread = (await peer.process.threads.create(ThreadSettings(os.path.realpath(peer.work)))).id
    await peer.process.run(thread, "text: elsewhere", say="from another door")
    (row,) = (await peer.ok("sessions/list"))["sessions"]
    assert row["firstMessage"] == "from another door"
    assert row["messageCount"] == 2
    assert not os.path.exists(row["path"])
    opened = await peer.ok("sessions/resume", path=row["path"])
    assert opened["persistentId"] == row["id"]
    assert [r["message"]["role"] for r in peer.records(opened) if r["type"] == "message"] == ["user", "assistant"]
    await peer.turn(opened["id"])
    assert [r["message"]["content"] for r in peer.records(opened) if r["type"] == "message"][-2:] == ["go", "two"]
    assert len((await peer.ok("sessions/list"))["sessions"]) == 1


# --- listing ----------------------------------------------------------------------------------------------------------
@pytest.mark.req("kward:36")
async def test_the_list_has_the_newest_first_and_twenty_unless_said(connect: Connect) -> None:
    peer = connect()
    made = [await peer.session(name=f"n{n}") for n in range(23)]
    for n, session in enumerate(made):
        os.utime(session["path"], (1_000_000_000 + n, 1_000_000_000 + n))
    names = [row["name"] for row in (await peer.ok("sessions/list"))["sessions"]]
    assert len(names) == 20
    assert [row["name"] for row in (await peer.ok("sessions/list", limit=3))["sessions"]] == ["n22", "n21", "n20"]
    assert len((await peer.ok("sessions/list", limit=0))["sessions"]) == 20
    assert len((await peer.ok("sessions/list", limit=50))["sessions"]) == 23


@pytest.mark.req("kward:37")
async def test_the_list_hides_a_session_nobody_has_used_yet_and_leaves_its_file(connect: Connect) -> None:
    peer, other = connect(), connect()
    made = await peer.session()
    assert (await other.ok("sessions/list"))["sessions"] == []
    assert exists(made)


@pytest.mark.req("kward:38", "kward:39")
async def test_a_row_tells_its_first_words_and_counts_messages_alone(connect: Connect) -> None:
    peer = connect()
    made = await peer.session(name="n")
    await peer.turn(made["id"], "  a \n\n b\t" + "c" * 300)
    (row,) = (await peer.ok("sessions/list"))["sessions"]
    assert row["firstMessage"].startswith("a b ccc")
    assert len(row["firstMessage"]) <= 120
    assert row["messageCount"] == 2
    assert len(peer.records(made)) == 4
    assert row["path"] == made["path"]
    assert row["id"] == made["persistentId"]
    assert (row["depth"], row["isLast"], row["ancestorContinues"]) == (0, True, [])


async def test_the_list_holds_one_workspace_alone(connect: Connect) -> None:
    peer = connect()
    other = peer.work / "inner"
    other.mkdir()
    await peer.session(name="here")
    await peer.session(name="there", workspaceRoot=str(other))
    assert [row["name"] for row in (await peer.ok("sessions/list"))["sessions"]] == ["here"]
    there = await peer.ok("sessions/list", workspaceRoot=str(other))
    assert [row["name"] for row in there["sessions"]] == ["there"]


# --- naming -----------------------------------------------------------------------------------------------------------
@pytest.mark.req("kward:41")
async def test_blanks_take_a_name_away(connect: Connect) -> None:
    peer = connect()
    made = await peer.session()
    assert (await peer.ok("sessions/rename", sessionId=made["id"], name=" plan "))["name"] == "plan"
    assert (await peer.ok("sessions/rename", sessionId=made["id"], name="  "))["name"] is None
    assert [r["name"] for r in peer.records(made) if r["type"] == "session_info"] == ["plan", None]


# --- copies -----------------------------------------------------------------------------------------------------------
@pytest.mark.req("kward:40", "kward:42")
async def test_a_clone_stands_under_its_source_and_neither_changes_the_other(connect: Connect) -> None:
    peer = connect(TWO)
    source = await peer.session(name="s")
    await peer.turn(source["id"], "first")
    clone = await peer.ok("sessions/clone", sessionId=source["id"])
    assert (clone["parentId"], clone["parentPath"]) == (source["persistentId"], source["path"])
    head = peer.records(clone)[0]
    assert (head["parentId"], head["parentPath"]) == (source["persistentId"], source["path"])
    before = Path(source["path"]).read_bytes()
    await peer.turn(clone["id"], "in the clone")
    assert Path(source["path"]).read_bytes() == before
    kept = Path(clone["path"]).read_bytes()
    await peer.turn(source["id"], "in the source")
    assert Path(clone["path"]).read_bytes() == kept
    rows = {row["id"]: row for row in (await peer.ok("sessions/list"))["sessions"]}
    row = rows[clone["persistentId"]]
    assert (row["parentId"], row["depth"], row["ancestorContinues"]) == (source["persistentId"], 1, [])


async def test_the_list_is_a_tree_with_lines_to_draw(connect: Connect) -> None:
    peer = connect(TWO)
    root = await peer.session(name="root")
    await peer.turn(root["id"])
    first = await peer.ok("sessions/clone", sessionId=root["id"])
    second = await peer.ok("sessions/clone", sessionId=root["id"])
    below = await peer.ok("sessions/clone", sessionId=second["id"])
    for n, session in enumerate((root, first, second, below)):
        os.utime(session["path"], (1_000_000_000 + n, 1_000_000_000 + n))
    rows = (await peer.ok("sessions/list"))["sessions"]
    assert [(r["id"], r["depth"], r["isLast"], r["ancestorContinues"]) for r in rows] == [
        (root["persistentId"], 0, True, []),
        (second["persistentId"], 1, False, []),
        (below["persistentId"], 2, True, [True]),
        (first["persistentId"], 1, True, []),
    ]


def test_a_long_line_of_copies_of_copies_is_a_tree_too() -> None:
    times = ("2026-01-01T00:00:00.000Z",) * 2
    rows = [
        Listed(str(n), f"/{n}", "/w", "/w", *times, None, None, 1, str(n - 1) if n else None, None) for n in range(3000)
    ]
    told = tree(rows)
    assert [(row.id, row.depth) for row in told] == [(str(n), n) for n in range(3000)]


@pytest.mark.req("kward:43")
async def test_a_clone_and_a_session_opened_again_may_edit_what_was_read(connect: Connect) -> None:
    read = call("read_file", '{"path": "a.txt"}')
    edit = call("edit_file", '{"path": "a.txt", "edits": [{"old_text": "o", "new_text": "0"}]}', "c2")
    back = call("edit_file", '{"path": "a.txt", "edits": [{"old_text": "0", "new_text": "o"}]}', "c3")
    peer = connect(GatedProvider(read, text("read"), edit, text("edited")))
    (peer.work / "a.txt").write_text("one")
    source = await peer.session()
    await peer.turn(source["id"])
    clone = await peer.ok("sessions/clone", sessionId=source["id"])
    (result,) = payloads(await peer.turn(clone["id"]), "toolResult")
    assert result["result"]["isError"] is False, result
    assert (peer.work / "a.txt").read_text() == "0ne"
    later = connect(GatedProvider(back, text("edited")))
    again = await later.ok("sessions/resume", path=clone["path"])
    (result,) = payloads(await later.turn(again["id"]), "toolResult")
    assert result["result"]["isError"] is False, result
    assert (peer.work / "a.txt").read_text() == "one"


@pytest.mark.req("kward:43")
async def test_a_file_changed_since_must_be_read_again_also_by_a_session_opened_again(connect: Connect) -> None:
    edit = call("edit_file", '{"path": "a.txt", "edits": [{"old_text": "o", "new_text": "0"}]}', "c2")
    peer = connect(GatedProvider(call("read_file", '{"path": "a.txt"}'), text("read")))
    (peer.work / "a.txt").write_text("one")
    made = await peer.session()
    await peer.turn(made["id"])
    (peer.work / "a.txt").write_text("two")
    os.utime(peer.work / "a.txt", (2_000_000_000, 2_000_000_000))
    later = connect(GatedProvider(edit))
    again = await later.ok("sessions/resume", path=made["path"])
    (result,) = payloads(await later.turn(again["id"]), "toolResult")
    assert result["result"]["isError"] is True


@pytest.mark.req("kward:44", "kward:45")
async def test_a_fork_keeps_what_came_before_a_message_and_gives_it_back(connect: Connect) -> None:
    peer = connect(TWO)
    made = await peer.session()
    await peer.turn(made["id"], "first")
    long = "  second " + "x" * 200 + " "
    await peer.turn(made["id"], long)
    told = (await peer.ok("sessions/forkMessages", sessionId=made["id"]))["messages"]
    assert [m["entryId"] for m in told] == ["message:0", "message:2"]
    assert told[0]["text"] == "first"
    assert len(told[1]["text"]) <= 120
    forked = await peer.ok("sessions/fork", sessionId=made["id"], entryId="message:2")
    assert forked["text"] == long.strip()
    assert forked["cancelled"] is False
    messages = (await peer.ok("sessions/transcript", sessionId=forked["session"]["id"]))["messages"]
    assert [(m["role"], m["content"][0]["text"]) for m in messages] == [("user", "first"), ("assistant", "one")]
    await peer.turn(made["id"], "third")
    again = (await peer.ok("sessions/forkMessages", sessionId=made["id"]))["messages"]
    assert again[:2] == told


@pytest.mark.req("kward:46", "kward:47")
async def test_a_fork_begins_only_at_a_message_of_the_person(connect: Connect) -> None:
    peer = connect()
    made = await peer.session()
    await peer.turn(made["id"])
    for entry, words in (
        ("message:1", "Entry is not forkable: message:1"),
        ("foo", "Invalid entryId: foo"),
        ("message:99", "Unknown fork entryId: message:99"),
        ("message:-1", "Invalid entryId: message:-1"),
    ):
        assert await peer.fails("sessions/fork", sessionId=made["id"], entryId=entry) == (-32602, words)


@pytest.mark.req("kward:48")
async def test_a_fork_at_the_first_message_is_empty_and_has_a_parent(connect: Connect) -> None:
    peer = connect()
    made = await peer.session()
    await peer.turn(made["id"], "first")
    forked = await peer.ok("sessions/fork", sessionId=made["id"], entryId="message:0")
    assert forked["text"] == "first"
    assert forked["session"]["parentId"] == made["persistentId"]
    assert (await peer.ok("sessions/transcript", sessionId=forked["session"]["id"]))["messages"] == []


# --- exports ----------------------------------------------------------------------------------------------------------
@pytest.mark.req("kward:49", "kward:50", "kward:52")
async def test_an_export_lies_beside_the_file_with_a_heading_for_each_message(connect: Connect) -> None:
    peer = connect('text: "<b>bold</b>\\n## Not a heading"')
    made = await peer.session()
    await peer.turn(made["id"], "# hello")
    told = await peer.ok("sessions/export", sessionId=made["id"])
    assert told == {"path": made["path"].removesuffix(".jsonl") + ".md", "format": "markdown"}
    lines = Path(told["path"]).read_text().splitlines()
    assert lines[0] == "# Kward Session"
    assert [line for line in lines if line.startswith("#")] == ["# Kward Session", "## User", "## Assistant"]
    assert (await peer.ok("sessions/export", sessionId=made["id"], format="md"))["format"] == "markdown"
    page = await peer.ok("sessions/export", sessionId=made["id"], format="html")
    assert page["path"].endswith(".html")
    written = Path(page["path"]).read_text()
    assert "<pre>" in written
    assert "&lt;b&gt;bold&lt;/b&gt;" in written
    assert "<b>" not in written
    assert await peer.fails("sessions/export", sessionId=made["id"], format="pdf") == (
        -32603,
        "Unsupported export format: pdf",
    )


@pytest.mark.req("kward:51")
async def test_an_export_stays_in_the_workspace_or_among_the_sessions(connect: Connect) -> None:
    peer = connect()
    made = await peer.session()
    await peer.turn(made["id"])
    (peer.where / "outside").mkdir()
    (peer.work / "link").symlink_to(peer.where / "outside")
    (peer.work / "sub").mkdir()

    async def export(path: str) -> Any:
        return await peer.call("sessions/export", sessionId=made["id"], path=path)

    for path in ("../x.md", str(peer.where / "x.md"), "link/x.md", "/etc/x.md"):
        error = (await export(path))["error"]
        assert error["code"] == -32602, path
        assert error["message"].startswith("export path outside workspace or session directory: ")
    assert (await export("missing/x.md"))["error"]["code"] == -32603
    assert (await export("sub/x.md"))["result"]["path"] == os.path.realpath(peer.work / "sub" / "x.md")
    inside = str(Path(made["path"]).with_name("mine.md"))
    assert (await export(inside))["result"]["path"] == inside
    assert not list((peer.where / "outside").iterdir())


# --- ending -----------------------------------------------------------------------------------------------------------
@pytest.mark.req("kward:53")
async def test_a_deleted_session_is_gone_with_its_file(connect: Connect) -> None:
    peer = connect()
    made = await peer.session()
    await peer.turn(made["id"])
    twin = await peer.ok("sessions/resume", path=made["path"])
    told = await peer.ok("sessions/delete", sessionId=made["id"])
    assert told == {"deleted": True, "path": made["path"]}
    assert not exists(made)
    for id in (made["id"], twin["id"]):
        assert await peer.fails("sessions/transcript", sessionId=id) == (-32603, f"Unknown session: {id}")
    assert (await peer.ok("sessions/list"))["sessions"] == []


@pytest.mark.req("kward:53")
async def test_a_session_that_was_erased_elsewhere_is_unknown(connect: Connect) -> None:
    peer, other = connect(), connect()
    made = await peer.session()
    await peer.turn(made["id"])
    twin = await other.ok("sessions/resume", path=made["path"])
    await other.ok("sessions/delete", sessionId=twin["id"])
    words = f"Unknown session: {made['id']}"
    assert await peer.fails("turns/start", sessionId=made["id"], input="go") == (-32603, words)
    for method in ("sessions/transcript", "runtime/state", "runtime/stats", "commands/list", "sessions/forkMessages"):
        assert await peer.fails(method, sessionId=made["id"]) == (-32603, words), method
    await peer.session()
    assert await peer.ok("sessions/close", sessionId=made["id"]) == {"closed": True}


@pytest.mark.req("kward:53")
async def test_deleting_a_busy_session_stops_it_first(connect: Connect) -> None:
    gate = Gate()
    peer = connect(GatedProvider([*text("a"), gate]))
    made = await peer.session()
    turn = await peer.start(made["id"])
    await gate.stopped()
    await peer.ok("sessions/delete", sessionId=made["id"])
    assert payloads(await peer.finished(turn["id"]), "turnFinished") == [{"status": "canceled", "error": None}]
    assert not exists(made)


@pytest.mark.req("kward:54")
async def test_closing_removes_only_what_was_never_used_or_named(connect: Connect) -> None:
    peer = connect()
    used = await peer.session()
    await peer.turn(used["id"])
    named = await peer.session(name="n")
    unused = await peer.session()
    for session in (used, named, unused):
        assert await peer.ok("sessions/close", sessionId=session["id"]) == {"closed": True}
        assert (await peer.fails("runtime/state", sessionId=session["id"]))[1].startswith("Unknown session: ")
    assert [exists(s) for s in (used, named, unused)] == [True, True, False]


@pytest.mark.req("kward:55")
async def test_when_the_client_leaves_unused_files_vanish_and_others_stay(connect: Connect) -> None:
    peer = connect()
    used = await peer.session()
    await peer.turn(used["id"])
    unused = await peer.session()
    peer.hang_up()
    assert await peer.next() is None
    assert [exists(s) for s in (used, unused)] == [True, False]


# --- the transcript ---------------------------------------------------------------------------------------------------
@pytest.mark.req("kward:67", "kward:68", "kward:70")
async def test_the_transcript_has_thoughts_first_and_results_with_their_tools(connect: Connect) -> None:
    write = (
        'think: "hm"\ntext: "writing"\ntool_call: write_file {"path": "a.txt", "content": "x\\n"}\n---\ntext: "done"'
    )
    peer = connect(write)
    made = await peer.session()
    await peer.turn(made["id"])
    told = await peer.ok("sessions/transcript", sessionId=made["id"])
    assert told["session"]["id"] == made["id"]
    user, assistant, result, last = told["messages"]
    assert user == {"role": "user", "content": [{"type": "text", "text": "go"}]}
    assert [part["type"] for part in assistant["content"]] == ["thinking", "text", "toolCall"]
    assert assistant["content"][0] == {"type": "thinking", "thinking": "hm"}
    tool = assistant["content"][2]
    assert (tool["name"], tool["arguments"]) == ("write", {"path": "a.txt", "content": "x\n"})
    assert (result["role"], result["toolName"], result["isError"]) == ("toolResult", "write", False)
    assert result["toolCallId"] == tool["id"]
    assert result["details"]["changedFiles"] == ["a.txt"]
    assert "+x" in result["details"]["diff"]
    assert last["content"] == [{"type": "text", "text": "done"}]


async def test_two_requests_of_one_session_take_effect_in_their_order(connect: Connect) -> None:
    peer: Peer = connect()
    made = await peer.session()
    ids = [await peer.begin("sessions/rename", sessionId=made["id"], name=f"n{n}") for n in range(20)]
    closing = await peer.begin("sessions/close", sessionId=made["id"])
    late = await peer.begin("sessions/rename", sessionId=made["id"], name="late")
    assert [(await peer.reply(id))["result"]["name"] for id in ids] == [f"n{n}" for n in range(20)]
    assert (await peer.reply(closing))["result"] == {"closed": True}
    assert "Unknown session" in json.dumps(await peer.reply(late))
    assert [r["name"] for r in peer.records(made) if r["type"] == "session_info"] == [f"n{n}" for n in range(20)]
