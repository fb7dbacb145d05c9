"""Runs over HTTP: streamed, held, detached; busy, failing, aborted; what may be said to begin one."""

from __future__ import annotations

import asyncio
import json
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from quintet.domain.thread import ThreadSettings
from tests.fakes.knp_project import TEXT, Knp, kinds
from tests.fakes.knp_server import wait_for

ORDER = [
    "run.started",
    "thread.start",
    "event.created",
    "thread.updated",  # the first title
    "model.call.start",
    "reasoning.start",
    "reasoning.delta",
    "reasoning.end",
    "event.created",
    "text.start",
    "text.delta",
    "text.end",
    "event.created",
    "model.call.end",
    "thread.stop",
    "run.finished",
    "run.result",
]


@pytest.mark.req("knp:K1", "knp:K2", "knp:K20")
def test_a_streamed_run_is_its_envelopes_then_the_result_then_the_end(knp: Knp) -> None:
    tid = knp.thread()["tid"]
    with knp.streamed(tid) as stream:
        while stream.next():
            pass
    assert stream.answer.status == 200
    assert kinds(stream.frames) == ORDER
    first, last = stream.frames[0], stream.frames[-1]
    assert first["data"] == {"runId": stream.answer.getheader("x-run-id"), "tid": tid}
    assert (last["sse_id"], last["seq"]) == (None, stream.frames[-2]["seq"])
    assert last["data"] == {
        "runId": first["data"]["runId"],
        "tid": tid,
        "status": "completed",
        "usage": {
            "inputTokens": 10,
            "outputTokens": 5,
            "reasoningTokens": 1,
            "cacheRead": 2,
            "cacheWrite": 0,
            "cost": 0.0,
        },
    }
    deltas = "".join(f["data"]["delta"] for f in stream.frames if f["kind"] == "text.delta")
    (end,) = (f["data"] for f in stream.frames if f["kind"] == "text.end")
    assert end["text"] == deltas == "Hello world"


@pytest.mark.req("knp:K1", "knp:K2")
def test_a_held_run_is_answered_with_the_same_object(knp: Knp) -> None:
    tid = knp.thread()["tid"]
    for accept in ("application/json", "*/*", None):
        reply = knp.run(tid, headers={"Accept": accept} if accept else None)
        assert (reply.status, reply.json["status"], reply.json["tid"]) == (200, "completed", tid)
        assert reply.headers["x-run-id"] == reply.json["runId"]
        assert set(reply.json) == {"runId", "tid", "status", "usage"}


@pytest.mark.req("knp:K2")
def test_both_ways_of_saying_that_a_run_begins_and_ends_are_told(knp: Knp) -> None:
    tid = knp.thread(agentId="planner")["tid"]
    with knp.streamed(tid) as stream:
        stream.until("run.result")
    said = {f["kind"]: f["data"] for f in stream.frames}
    assert said["thread.start"] == {"tid": tid, "agentId": "planner", "namespace": "default"}
    assert said["thread.stop"] == {"tid": tid, "agentId": "planner", "state": "idle"}
    assert said["run.finished"] == {"runId": said["run.started"]["runId"], "tid": tid, "status": "completed"}


@pytest.mark.req("knp:K20")
def test_a_run_with_a_tool_is_told_in_its_order(knp: Knp) -> None:
    tid = knp.thread(title="tools")["tid"]
    with knp.streamed(tid, "tool") as stream:
        asked = stream.until("approval.requested")
        assert knp.decide(asked["data"]["id"], "allow").json == {"id": asked["data"]["id"], "decision": "allow"}
        stream.until("run.result")
    assert kinds(stream.frames) == [
        *("run.started", "thread.start", "event.created", "model.call.start"),
        *("text.start", "text.delta", "text.end", "event.created"),
        *("tool.start", "tool.input.delta", "tool.input.end", "event.created", "model.call.end"),
        *("approval.requested", "approval.resolved", "tool.result", "event.created", "event.updated"),
        *("model.call.start", "text.start", "text.delta", "text.end", "event.created", "model.call.end"),
        *("thread.stop", "run.finished", "run.result"),
    ]
    said = {f["kind"]: f["data"] for f in stream.frames}
    call = said["tool.start"]["callId"]
    assert said["tool.start"] == {"tid": tid, "callId": call, "toolId": "shell"}
    assert said["tool.input.end"] == {"tid": tid, "callId": call, "input": {"command": "git status"}}
    assert (said["tool.result"]["callId"], said["tool.result"]["error"]) == (call, None)
    updated = said["event.updated"]["event"]
    assert (updated["kind"], updated["callId"], updated["state"]) == ("tool.call", call, "completed")
    assert updated == knp.history(tid, "kinds=tool.call")[0]
    created = [f["data"]["event"] for f in stream.frames if f["kind"] == "event.created"]
    assert [e["id"] for e in created] == [e["id"] for e in knp.history(tid)]
    assert said["approval.resolved"] == {"id": asked["data"]["id"], "decision": "allow", "tid": tid}


@pytest.mark.req("knp:K3")
@pytest.mark.parametrize("how", ["?detach=true", "prefer"])
def test_a_detached_run_goes_on_alone(knp: Knp, how: str) -> None:
    tid = knp.thread()["tid"]
    detach, headers = (how, None) if how.startswith("?") else ("", {"Prefer": "respond-async"})
    reply = knp.run(tid, detach=detach, headers=headers)
    assert (reply.status, reply.json["tid"], reply.json["status"] in ("running", "completed")) == (202, tid, True)
    assert knp.ended(tid)["runId"] == reply.json["runId"]
    assert knp.history(tid)[-1]["content"] == [{"kind": "text", "text": "Hello world"}]


@pytest.mark.req("knp:K4", "knp:K7", "knp:K8")
def test_a_busy_thread_says_so_and_stores_nothing(knp: Knp) -> None:
    tid = knp.thread()["tid"]
    run = knp.begin(tid, "hold")
    wait_for(lambda: knp.history(tid))
    reply = knp.run(tid)
    assert (reply.status, reply.json["error"]["code"]) == (409, "conflict")
    assert reply.json["error"]["details"] == {"runId": run}
    assert len(knp.history(tid)) == 1
    assert knp.get(f"/threads/{tid}/runs/current")["status"] == "running"
    assert knp.ask("POST", f"/threads/{tid}/runs/abort").json == {"aborted": True}
    ended = knp.ended(tid)
    assert (ended["runId"], ended["status"], ended["error"]["code"]) == (run, "aborted", "cancelled")
    assert knp.ask("POST", f"/threads/{tid}/runs/abort").json == {"aborted": False}
    assert knp.run(tid).json["status"] == "completed"


@pytest.mark.req("knp:K5")
def test_who_leaves_a_streamed_run_does_not_end_it(knp: Knp) -> None:
    tid = knp.thread()["tid"]
    with knp.streamed(tid, "tool") as stream:
        asked = stream.until("approval.requested")
    assert knp.get(f"/threads/{tid}")["state"] == "running"
    knp.decide(asked["data"]["id"], "allow")
    assert knp.ended(tid)["status"] == "completed"


@pytest.mark.req("knp:K5")
def test_nobody_waits_for_a_held_run_whose_client_left_and_the_run_goes_on(knp: Knp) -> None:
    async def waiting() -> int:
        names = [getattr(task.get_coro(), "__qualname__", "") for task in asyncio.all_tasks()]
        return sum(name == "start.<locals>.whole" for name in names)

    tid = knp.thread()["tid"]
    body = json.dumps({"input": TEXT, "model": {"provider": "tool", "modelId": "scripted"}}).encode()
    head = f"POST /threads/{tid}/runs HTTP/1.1\r\nHost: 127.0.0.1:{knp.server.port}\r\n"
    head += f"Authorization: Bearer {knp.server.token}\r\nContent-Type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", knp.server.port), timeout=30) as client:
        client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        asked = knp.waiting(tid)
        assert knp.server.call(waiting()) == 1
    wait_for(lambda: knp.server.call(waiting()) == 0)
    knp.decide(asked["id"], "allow")
    assert knp.ended(tid)["status"] == "completed"


@pytest.mark.req("knp:K6")
def test_a_model_that_fails_ends_the_run_as_failed(knp: Knp) -> None:
    tid = knp.thread()["tid"]
    reply = knp.run(tid, "bad")
    assert (reply.status, reply.json["status"], reply.json["error"]["code"]) == (200, "failed", "provider_failed")
    assert knp.history(tid)[-1]["metadata"] == {"parentSeq": 1, "partial": True}
    with knp.streamed(tid, "bad") as stream:
        stream.until("run.result")
    said = {f["kind"]: f["data"] for f in stream.frames}
    assert (stream.answer.status, said["run.result"]["status"]) == (200, "failed")
    assert said["thread.stop"]["state"] == "stopped"
    assert said["model.call.end"]["finishReason"] == "error"
    assert said["run.finished"]["error"] == said["run.result"]["error"]


@pytest.mark.req("knp:K6", "knp:K9")
def test_what_cannot_be_begun_leaves_the_thread_as_it_was(knp: Knp) -> None:
    thread = knp.thread()
    path = f"/threads/{thread['tid']}/runs"
    bodies: tuple[Any, ...] = (
        {"input": TEXT, "agentId": "nobody"},
        {"input": TEXT, "model": {"provider": "nobody", "modelId": "x"}},
        {"input": TEXT, "onAsk": "perhaps"},
        {"input": []},
        {},
        {"input": "go"},
        {"input": {"kind": "text", "text": "go"}},
        {"input": [{"kind": "song", "text": "la"}]},
        {"input": [{"kind": "text"}]},
        {"input": [*TEXT, {"kind": "file"}]},
        {"input": [{"kind": "file", "uri": "https://example.com/a"}]},
        {"input": [{"kind": "file", "uri": "file:///etc/passwd"}]},
        {"input": [{"kind": "file", "uri": "file:///../../etc/passwd"}]},
        {"input": [{"kind": "file", "uri": "file:///src/%2e%2e/%2e%2e/x"}]},
        {"input": [{"kind": "file", "uri": "file://elsewhere/src/index.ts"}]},
        {"input": [{"kind": "file", "uri": "file:///src"}]},
    )
    for body in bodies:
        assert knp.refused("POST", path, body) == (400, "invalid_request"), body
    assert knp.get(f"/threads/{thread['tid']}") == thread
    assert knp.refused("GET", f"{path}/current") == (404, "not_found")


@pytest.mark.req("knp:K9", "knp:K32")
@pytest.mark.parametrize("leads", ["../outside-canary", "/etc/hostname"])
def test_a_file_that_leads_out_of_the_project_is_refused_without_a_word_of_where(knp: Knp, leads: str) -> None:
    (knp.project.parent / "outside-canary").write_text("theirs")
    link = knp.project / "inner-canary"
    link.symlink_to(leads)
    try:
        tid = knp.thread()["tid"]
        reply = knp.run(tid, input=[{"kind": "file", "uri": "file:///inner-canary"}])
        assert (reply.status, reply.json["error"]["code"]) == (400, "invalid_request")
        assert "canary" not in str(reply.json)
        assert "/etc" not in str(reply.json)
        assert knp.history(tid) == []
    finally:
        link.unlink()


@pytest.mark.req("knp:K6")
def test_a_thread_whose_model_is_gone_says_so_before_anything_is_begun(knp: Knp) -> None:
    settings = ThreadSettings(str(knp.project), model="gone/x")
    thread = knp.server.call(knp.server.app.threads.create(settings))
    assert knp.refused("POST", f"/threads/{thread.id}/runs", {"input": TEXT}) == (400, "invalid_request")
    assert knp.history(thread.id) == []
    assert knp.run(thread.id).json["status"] == "completed"  # with one that is there


@pytest.mark.req("knp:K9")
def test_files_and_data_are_read_by_the_model_and_told_as_they_were_given(knp: Knp) -> None:
    (knp.project / "pixel.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    given = [
        *TEXT,
        {"kind": "file", "uri": "file:///src/index.ts", "mimeType": "text/plain"},
        {"kind": "file", "uri": f"file://{knp.project}/pixel.png", "filename": "a dot"},
        {"kind": "data", "data": {"a": [1, None]}},
    ]
    tid = knp.thread()["tid"]
    assert knp.run(tid, input=given).json["status"] == "completed"
    assert knp.history(tid)[0]["content"] == [
        *TEXT,
        {"kind": "file", "uri": "file:///src/index.ts", "mimeType": "text/plain", "filename": "index.ts"},
        {"kind": "file", "uri": "file:///pixel.png", "mimeType": "image/png", "filename": "a dot"},
        {"kind": "data", "data": {"a": [1, None]}},
    ]
    image = [{"kind": "file", "uri": "file:///pixel.png"}]
    assert knp.run(tid, "tool", input=image).status == 400  # a model that takes none
    (item, *_) = knp.server.call(knp.server.app.threads.items(tid))
    assert "// TODO: auth" in item.body.parts[1].text  # type: ignore[union-attr]


@pytest.mark.req("knp:K7")
def test_an_abort_keeps_what_was_said_and_denies_what_waits(knp: Knp) -> None:
    tid = knp.thread()["tid"]
    with knp.streamed(tid, "hold") as stream:
        stream.until("text.delta")
        knp.ask("POST", f"/threads/{tid}/runs/abort")
        stream.until("run.result")
    assert stream.frames[-1]["data"]["status"] == "aborted"
    said = knp.history(tid)[-1]
    assert (said["content"], said["metadata"]["partial"]) == ([{"kind": "text", "text": "Half"}], True)
    with knp.streamed(tid, "tool") as stream:
        stream.until("approval.requested")
        knp.ask("POST", f"/threads/{tid}/runs/abort")
        resolved = stream.until("approval.resolved")
        stream.until("run.result")
    assert (resolved["data"]["decision"], resolved["data"]["reason"]) == ("deny", "aborted")
    assert knp.get(f"/approvals?tid={tid}") == {"approvals": []}
    assert knp.refused("POST", "/threads/thr_00000000000000000000000000/runs/abort") == (404, "not_found")


@pytest.mark.req("knp:K28")
def test_a_key_makes_one_run_whatever_way_it_is_asked_for(knp: Knp) -> None:
    tid, key = knp.thread()["tid"], {"Idempotency-Key": "run-once"}
    first = knp.run(tid, headers=key)
    assert first.json["status"] == "completed"
    assert knp.run(tid, headers=key).json == first.json
    with knp.streamed(tid, headers=key) as stream:
        stream.until("run.result")
    assert kinds(stream.frames) == ORDER
    assert stream.frames[-1]["data"] == first.json
    assert knp.run(tid, headers=key, detach="?detach=true").json["runId"] == first.json["runId"]
    assert knp.run(tid, "tool", headers=key).status == 409
    assert [e["seq"] for e in knp.history(tid)] == [1, 2, 3]
    assert knp.run(knp.thread()["tid"], headers=key).json["runId"] != first.json["runId"]  # a key is a thread's


@pytest.mark.req("knp:K28", "reliability:R15")
def test_a_key_sent_twenty_times_at_once_makes_one_run(knp: Knp) -> None:
    tid, key = knp.thread()["tid"], {"Idempotency-Key": "at-once"}
    with ThreadPoolExecutor(20) as pool:
        replies = list(pool.map(lambda _: knp.run(tid, headers=key), range(20)))
    assert {reply.status for reply in replies} == {200}
    assert len({reply.json["runId"] for reply in replies}) == 1
    assert len(knp.history(tid)) == 3


@pytest.mark.req("knp:K1")
def test_streams_of_one_run_that_join_at_any_moment_tell_all_of_it(knp: Knp) -> None:
    """Joined while it runs, by a key that folds: what is read from the store and what comes live meet without a gap."""
    tid, key = knp.thread(title="joined")["tid"], {"Idempotency-Key": "join"}

    def read(_: int) -> list[tuple[int, str]]:
        with knp.streamed(tid, "long", headers=key) as stream:
            stream.until("run.result")
        return [(f["seq"], f["kind"]) for f in stream.frames if f["kind"] != "heartbeat"]

    with ThreadPoolExecutor(8) as pool:
        seen = list(pool.map(read, range(16)))
    assert seen[0][0][1] == "run.started"
    assert sum(kind == "text.delta" for _, kind in seen[0]) == 200
    assert all(one == seen[0] for one in seen)


@pytest.mark.req("knp:K31")
def test_a_run_that_is_to_fail_when_asked_does_so_at_once(knp: Knp) -> None:
    tid = knp.thread()["tid"]
    reply = knp.run(tid, "tool", onAsk="fail")
    assert (reply.json["status"], reply.json["error"]["code"]) == ("failed", "denied")
    assert knp.get(f"/approvals?tid={tid}") == {"approvals": []}


def test_a_list_of_things_to_do_is_told(knp: Knp) -> None:
    tid = knp.thread()["tid"]
    with knp.streamed(tid, "todo") as stream:
        stream.until("run.result")
    (told,) = (f["data"] for f in stream.frames if f["kind"] == "todo.updated")
    assert told["todos"] == [{"content": "a", "status": "completed"}, {"content": "b", "status": "pending"}]


def test_an_agent_for_one_run_is_not_the_threads(knp: Knp) -> None:
    tid = knp.thread()["tid"]
    assert knp.run(tid, agentId="planner").json["status"] == "completed"
    with knp.server.stream(f"/events?after=0&tid={tid}&kinds=thread.start,thread.stop,model.call.start") as stream:
        stream.until("thread.stop")
    assert {f["data"]["agentId"] for f in stream.frames[1:]} == {"planner"}
    assert knp.get(f"/threads/{tid}")["agentId"] == "coder"
