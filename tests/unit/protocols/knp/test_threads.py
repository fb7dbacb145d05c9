"""Threads over HTTP: pages, history, patches, forks, deletions, keys and namespaces."""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64encode
from typing import Any
from urllib.parse import quote

import pytest

from quintet.domain.thread import ThreadSettings
from tests.fakes.knp_project import TEXT, Knp, kinds
from tests.fakes.knp_server import wait_for

THREAD = {
    "tid",
    "namespace",
    "title",
    "agentId",
    "model",
    "state",
    "parentTaskId",
    "createdAt",
    "updatedAt",
    "metadata",
}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@pytest.mark.req("knp:K22")
def test_a_thread_is_the_same_object_everywhere(knp: Knp) -> None:
    made = knp.thread(title="Help with auth", agentId="coder", metadata={"a": 1}, context={"b": 2})
    assert set(made) == THREAD
    assert made["model"] == {"provider": "talk", "modelId": "scripted"}
    assert (made["namespace"], made["agentId"], made["state"]) == ("default", "coder", "idle")
    assert (made["parentTaskId"], made["metadata"]) == (None, {"a": 1, "context": {"b": 2}})
    assert TIME.fullmatch(made["createdAt"])
    assert knp.get(f"/threads/{made['tid']}") == made
    assert made in knp.get("/threads")["threads"]
    bare = knp.ask("POST", "/threads").json
    assert (bare["title"], bare["agentId"]) == (None, "coder")


@pytest.mark.req("knp:K22")
def test_states_follow_the_runs(knp: Knp) -> None:
    fine, broken, busy = (knp.thread(namespace="states")["tid"] for _ in range(3))
    for tid, model in ((fine, "talk"), (broken, "bad"), (busy, "hold")):
        reply = knp.ask(
            "POST",
            f"/threads/{tid}/runs?namespace=states&detach=true",
            {"input": TEXT, "model": {"provider": model, "modelId": "scripted"}},
        )
        assert reply.status == 202, reply
    for tid in (fine, broken):
        wait_for(lambda tid=tid: knp.get(f"/threads/{tid}?namespace=states")["state"] != "running")
    shown = {t["tid"]: t["state"] for t in knp.get("/threads?namespace=states")["threads"]}
    assert shown == {fine: "idle", broken: "stopped", busy: "running"}
    for wish, wanted in (("running", {busy}), ("idle,stopped", {fine, broken}), ("stopped", {broken})):
        assert {t["tid"] for t in knp.get(f"/threads?namespace=states&state={wish}")["threads"]} == wanted
    assert knp.refused("GET", "/threads?state=asleep") == (400, "invalid_request")
    assert knp.ask("POST", f"/threads/{busy}/runs/abort?namespace=states").json == {"aborted": True}
    assert knp.get(f"/threads/{busy}?namespace=states")["state"] == "stopped"


@pytest.mark.req("knp:K23")
def test_pages_are_stable_while_threads_move(knp: Knp) -> None:
    made = [knp.thread(namespace="pages", title=f"t{n}")["tid"] for n in range(7)]
    first = knp.get("/threads?namespace=pages&limit=3")
    assert [t["tid"] for t in first["threads"]] == made[:3:-1]
    knp.ask("PATCH", f"/threads/{made[0]}?namespace=pages", {"title": "moved to the front"})
    knp.thread(namespace="pages")
    second = knp.get(f"/threads?namespace=pages&limit=3&cursor={first['next']}")
    assert [t["tid"] for t in second["threads"]] == made[3:0:-1]
    assert second["next"] is None  # the one that moved was seen by nobody twice, and nobody was skipped
    assert len(knp.get("/threads?namespace=pages&limit=100000")["threads"]) == 8
    for limit in ("0", "-1", "x", "1.5", ""):
        assert knp.refused("GET", f"/threads?limit={limit}") == (400, "invalid_request")
    forged = [urlsafe_b64encode(text).decode() for text in (b"9" * 30 + b":thr_x", b"-5:thr_x", b"5:thr_x", b"5", b":")]
    for cursor in ("x", "%00", "bm90OmE", "!", *forged):
        assert knp.refused("GET", f"/threads?cursor={cursor}") == (400, "invalid_request")


@pytest.mark.req("knp:K23")
def test_lists_are_filtered_by_agent(knp: Knp) -> None:
    planner = knp.thread(namespace="agents", agentId="planner")["tid"]
    knp.thread(namespace="agents")
    found = knp.get("/threads?namespace=agents&agent_id=planner")["threads"]
    assert [t["tid"] for t in found] == [planner]


@pytest.mark.req("knp:K24")
def test_history_is_told_in_either_order_and_in_pages(knp: Knp) -> None:
    tid = knp.thread()["tid"]
    knp.run(tid, "talk")
    knp.run(tid, "talk")
    up = knp.history(tid)
    assert [e["seq"] for e in up] == [1, 2, 3, 4, 5, 6]
    assert [e["kind"] for e in up] == ["message", "reasoning", "message"] * 2
    assert [e["metadata"].get("parentSeq") for e in up] == [None, 1, 1, None, 4, 4]
    assert [e["seq"] for e in knp.history(tid, "")] == [6, 5, 4, 3, 2, 1]
    page = knp.get(f"/threads/{tid}/events?after=2&limit=2")
    assert ([e["seq"] for e in page["events"]], page["hasMore"]) == ([6, 5], True)
    page = knp.get(f"/threads/{tid}/events?after=2&limit=4&order=asc")
    assert ([e["seq"] for e in page["events"]], page["hasMore"]) == ([3, 4, 5, 6], False)
    page = knp.get(f"/threads/{tid}/events?kinds=reasoning&limit=1")
    assert ([e["seq"] for e in page["events"]], page["hasMore"]) == ([5], True)
    for order in ("asc", "desc"):
        assert knp.history(tid, f"after={10**30}&order={order}") == []
    for query in ("limit=0", "limit=x", "after=-1", "order=up", "kinds=thoughts"):
        assert knp.refused("GET", f"/threads/{tid}/events?{query}") == (400, "invalid_request")


@pytest.mark.req("knp:K24")
def test_a_call_has_the_state_it_has_come_to(knp: Knp) -> None:
    tid = knp.thread()["tid"]
    knp.begin(tid, "log")
    approval = knp.waiting(tid)
    (call,) = knp.history(tid, "kinds=tool.call")
    assert (call["state"], call["toolId"], json.loads(call["arguments"])) == (
        "in_progress",
        "shell",
        {"command": "git log"},
    )
    knp.decide(approval["id"], "deny", message="not now")
    knp.ended(tid)
    (call,) = knp.history(tid, "kinds=tool.call")
    (result,) = knp.history(tid, "kinds=tool.result")
    assert (call["state"], result["callId"], result["result"]) == ("failed", call["callId"], None)
    assert "not now" in result["error"]


@pytest.mark.req("knp:K25")
def test_history_comes_with_the_thread_where_it_is_asked_for(knp: Knp) -> None:
    tid = knp.thread()["tid"]
    knp.run(tid, "talk")
    assert "history" not in knp.get(f"/threads/{tid}")
    assert [e["seq"] for e in knp.get(f"/threads/{tid}?history=true")["history"]] == [1, 2, 3]
    wish = quote(json.dumps({"limit": 2, "after": 0, "kinds": ["message"]}))
    assert [e["seq"] for e in knp.get(f"/threads/{tid}?history={wish}")["history"]] == [1, 3]
    for wrong in ("yes", "{", '{"most":1}', '{"limit":0}', "[]", "1"):
        assert knp.refused("GET", f"/threads/{tid}?history={quote(wrong)}") == (400, "invalid_request")


@pytest.mark.req("knp:K26")
def test_a_fork_keeps_seqs_and_says_where_it_is_from(knp: Knp) -> None:
    tid = knp.thread(title="source", metadata={"a": 1})["tid"]
    knp.run(tid, "talk")
    source = knp.history(tid)
    fork = knp.ask("POST", f"/threads/{tid}/fork", {"afterSeq": 2, "title": "other way"}).json
    assert (fork["title"], fork["metadata"]["forkedFrom"]) == ("other way", {"tid": tid, "seq": 2})
    copied = knp.history(fork["tid"])
    assert [(e["seq"], e["kind"]) for e in copied] == [(e["seq"], e["kind"]) for e in source[:2]]
    assert not {e["id"] for e in copied} & {e["id"] for e in source}
    assert copied[0]["metadata"]["forkedFrom"] == {"tid": tid, "seq": 1}
    with knp.server.stream(f"/events?after=0&tid={fork['tid']}&kinds=event.created") as stream:
        told = [stream.until("event.created")["data"]["event"] for _ in copied]
    assert told[0] == copied[0]
    assert len(knp.history(knp.ask("POST", f"/threads/{tid}/fork").json["tid"])) == len(source)
    assert knp.history(knp.ask("POST", f"/threads/{tid}/fork", {"afterSeq": 0}).json["tid"]) == []
    for place in (-1, len(source) + 1):
        assert knp.refused("POST", f"/threads/{tid}/fork", {"afterSeq": place}) == (400, "invalid_request")


@pytest.mark.req("knp:K26")
def test_a_fork_of_a_running_thread_leaves_open_calls_behind(knp: Knp) -> None:
    tid = knp.thread()["tid"]
    knp.begin(tid, "tool")
    knp.waiting(tid)
    assert [e["kind"] for e in knp.history(tid)] == ["message", "message", "tool.call"]
    fork = knp.ask("POST", f"/threads/{tid}/fork").json
    assert fork["state"] == "idle"
    assert [e["kind"] for e in knp.history(fork["tid"])] == ["message", "message"]
    knp.ask("POST", f"/threads/{tid}/runs/abort")


@pytest.mark.req("knp:K27")
def test_a_patch_merges_and_is_told_once(knp: Knp) -> None:
    tid = knp.thread(metadata={"a": 1, "b": 2})["tid"]
    with knp.server.stream(f"/events?tid={tid}&kinds=thread.updated") as stream:
        stream.until("connected")
        patch = {"title": "New title", "metadata": {"a": None, "c": {"d": 3}}}
        shown = knp.ask("PATCH", f"/threads/{tid}", patch).json
        assert (shown["title"], shown["metadata"]) == ("New title", {"b": 2, "c": {"d": 3}})
        assert knp.ask("PATCH", f"/threads/{tid}", {}).json["title"] == "New title"
        knp.ask("PATCH", f"/threads/{tid}", {"metadata": {"archived": True}})
        told = [stream.next(), stream.next()]
    assert [f and f["data"]["thread"]["metadata"] for f in told] == [
        {"b": 2, "c": {"d": 3}},
        {"b": 2, "c": {"d": 3}, "archived": True},
    ]
    assert told[0] is not None
    assert told[0]["data"]["thread"] | {"updatedAt": ""} == shown | {"updatedAt": ""}
    refused: tuple[Any, ...] = ({"agentId": "a"}, {"title": ""}, {"title": None}, {"metadata": []}, {"title": "x" * 81})
    for wrong in refused:
        assert knp.refused("PATCH", f"/threads/{tid}", wrong) == (400, "invalid_request")


@pytest.mark.req("knp:K27")
def test_a_delete_ends_the_run_first_and_is_told_last(knp: Knp) -> None:
    tid = knp.thread()["tid"]
    with knp.server.stream(f"/events?tid={tid}") as stream:
        stream.until("connected")
        knp.begin(tid, "hold")
        stream.until("text.delta")
        assert knp.ask("DELETE", f"/threads/{tid}").json == {"deleted": True}
        stream.until("thread.deleted")
    assert kinds(stream.frames)[-3:] == ["thread.stop", "run.finished", "thread.deleted"]
    assert stream.frames[-1]["data"] == {"tid": tid}
    for verb in ("DELETE", "GET"):
        assert knp.refused(verb, f"/threads/{tid}") == (404, "not_found")
    with knp.server.stream("/events?after=0&kinds=event.created,thread.deleted") as replayed:
        while (frame := replayed.next()) and frame["data"].get("tid") != tid:
            pass
        assert frame is not None
        assert frame["kind"] == "thread.deleted"  # of all that was said there nothing is left


@pytest.mark.req("knp:K28")
def test_a_key_makes_one_thread(knp: Knp) -> None:
    body, key = {"title": "once"}, {"Idempotency-Key": "make-one"}
    first = knp.ask("POST", "/threads", body, headers=key)
    again = knp.ask("POST", "/threads", body, headers=key)
    assert first.json["tid"] == again.json["tid"]
    assert knp.refused("POST", "/threads", {"title": "other"}, **key) == (409, "conflict")
    assert knp.ask("POST", "/threads?namespace=elsewhere", body, headers=key).status == 409
    assert "elsewhere" not in [p.name for p in knp.server.call(knp.server.app.projects.all())]
    assert knp.ask("POST", "/threads", body).json["tid"] != first.json["tid"]


@pytest.mark.req("knp:K21")
def test_the_namespace_is_the_querys_then_the_headers_then_the_bodys(knp: Knp) -> None:
    def made(query: str, header: str, body: str) -> str:
        path = f"/threads?namespace={query}" if query else "/threads"
        headers = {"x-kernl-namespace": header} if header else {}
        name: str = knp.ask("POST", path, {"namespace": body} if body else {}, headers=headers).json["namespace"]
        return name

    assert made("q", "h", "b") == "q"
    assert made("", "h", "b") == "h"
    assert made("", "", "b") == "b"
    assert made("", "", "") == "default"
    assert made(knp.project.name, "", "") == "default"  # its own name is another name of the same
    for name in ("a/b", "x" * 65, "ä", "%00"):
        assert knp.refused("GET", f"/threads?namespace={quote(name)}") == (400, "invalid_request")


@pytest.mark.req("knp:K21")
def test_a_thread_of_another_namespace_is_not_there(knp: Knp) -> None:
    tid = knp.thread(namespace="mine")["tid"]
    assert knp.get(f"/threads/{tid}", **{"x-kernl-namespace": "mine"})["tid"] == tid
    for verb, path, body in (
        ("GET", "", None),
        ("PATCH", "", {"title": "x"}),
        ("DELETE", "", None),
        ("POST", "/fork", {}),
        ("GET", "/events", None),
        ("POST", "/runs", {"input": TEXT}),
        ("POST", "/runs/abort", None),
        ("GET", "/runs/current", None),
    ):
        assert knp.refused(verb, f"/threads/{tid}{path}", body) == (404, "not_found")
    assert tid not in [t["tid"] for t in knp.get("/threads")["threads"]]
    assert knp.get("/threads?namespace=nobody-has-used-it") == {"threads": [], "next": None}


@pytest.mark.req("knp:K21")
def test_a_new_name_works_over_the_default_root_and_is_told_everywhere(knp: Knp) -> None:
    with knp.server.stream("/events?scope=global") as stream:
        stream.until("connected")
        tid = knp.thread(namespace="fresh")["tid"]
        told = stream.until("namespace.created")
        created = stream.until("thread.created")
    assert (told["namespace"], told["data"]) == ("fresh", {"namespace": "fresh"})
    assert (created["data"]["thread"]["tid"], created["namespace"]) == (tid, "fresh")
    assert knp.get("/files?path=/src&namespace=fresh") == knp.get("/files?path=/src")
    reply = knp.ask("POST", f"/threads/{tid}/runs?namespace=fresh", {"input": TEXT})
    assert reply.json["status"] == "completed"


@pytest.mark.req("knp:K21")
def test_a_project_of_another_process_can_be_watched_but_not_worked_in(knp: Knp) -> None:
    elsewhere = knp.project.parent / "elsewhere"
    elsewhere.mkdir()
    thread = knp.server.call(knp.server.app.threads.create(ThreadSettings(str(elsewhere)), title="theirs"))
    assert [t["tid"] for t in knp.get("/threads?namespace=elsewhere")["threads"]] == [thread.id]
    assert knp.get(f"/threads/{thread.id}?namespace=elsewhere&history=true")["history"] == []
    for verb, path, body in (
        ("GET", "/files", None),
        ("GET", "/files/content?path=a", None),
        ("GET", "/files/search?query=a", None),
        ("GET", "/files/grep?pattern=a", None),
        ("POST", "/threads", {}),
        ("POST", f"/threads/{thread.id}/runs", {"input": TEXT}),
    ):
        mark = "&" if "?" in path else "?"
        assert knp.refused(verb, f"{path}{mark}namespace=elsewhere", body) == (400, "invalid_request")


def test_what_cannot_be_used_is_refused_before_a_thread_is_made(knp: Knp) -> None:
    before = len(knp.get("/threads?limit=200")["threads"])
    refused: tuple[Any, ...] = (
        {"agentId": "nobody"},
        {"model": {"provider": "nobody", "modelId": "x"}},
        {"title": "x" * 81},
        {"metadata": {"a": "x" * 70_000}},
        {"metadata": []},
    )
    for body in refused:
        assert knp.refused("POST", "/threads", body) == (400, "invalid_request")
    assert len(knp.get("/threads?limit=200")["threads"]) == before
