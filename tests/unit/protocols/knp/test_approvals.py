"""Approvals over HTTP: listed, decided once, remembered as rules of the namespace."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintet.domain.grant import Scope
from quintet.domain.interaction import Verdict
from quintet.domain.principal import local
from quintet.engine.interactions import Answer
from tests.fakes.knp_project import TEXT, Knp, knp_project
from tests.fakes.knp_server import wait_for


def begin(knp: Knp, model: str, namespace: str) -> str:
    """A run that asks, in a namespace of its own."""
    tid: str = knp.thread(namespace=namespace)["tid"]
    body = {"input": TEXT, "model": {"provider": model, "modelId": "scripted"}}
    assert knp.ask("POST", f"/threads/{tid}/runs?namespace={namespace}&detach=true", body).status == 202
    return tid


def ended(knp: Knp, tid: str, namespace: str) -> str:
    def state() -> str:
        word: str = knp.get(f"/threads/{tid}/runs/current?namespace={namespace}")["status"]
        return word

    wait_for(lambda: state() != "running")
    return state()


def decide(knp: Knp, approval: str, decision: str, namespace: str, **more: str) -> int:
    return knp.ask("POST", f"/approvals/{approval}?namespace={namespace}", {"decision": decision, **more}).status


@pytest.mark.req("knp:K31")
def test_what_waits_is_listed_by_namespace_and_thread(knp: Knp) -> None:
    first, second = begin(knp, "tool", "list"), begin(knp, "log", "list")
    for tid in (first, second):
        knp.waiting(tid, "list")
    listed = knp.get("/approvals?namespace=list")["approvals"]
    assert {a["tid"] for a in listed} == {first, second}
    (one,) = knp.get(f"/approvals?namespace=list&tid={first}")["approvals"]
    assert set(one) == {"id", "tid", "callId", "tool", "input", "createdAt", "details"}
    assert (one["tool"], one["input"]) == ({"id": "shell", "name": "Execute Command"}, {"command": "git status"})
    assert (one["details"]["command"], one["details"]["always"]) == ("git status", "git status *")
    assert not {a["tid"] for a in knp.get("/approvals")["approvals"]} & {first, second}
    assert knp.refused("POST", f"/approvals/{one['id']}", {"decision": "allow"}) == (404, "not_found")
    for asked in listed:
        assert decide(knp, asked["id"], "deny", "list") == 200
    for tid in (first, second):
        assert ended(knp, tid, "list") == "completed"


@pytest.mark.req("knp:K29")
def test_a_denial_says_why_to_the_model_and_is_asked_again(knp: Knp) -> None:
    tid = knp.thread()["tid"]
    for _ in range(2):
        knp.begin(tid, "tool")
        assert knp.decide(knp.waiting(tid)["id"], "deny", message="use the other branch").status == 200
        knp.ended(tid)
        assert "use the other branch" in knp.history(tid, "kinds=tool.result&limit=1")[0]["error"]
    assert knp.get("/approvals/rules") == {"rules": []}


@pytest.mark.req("knp:K29")
def test_allow_always_is_a_rule_of_the_namespace_until_it_is_removed(knp: Knp) -> None:
    tid = begin(knp, "tool", "rules")
    assert decide(knp, knp.waiting(tid, "rules")["id"], "allow-always", "rules") == 200
    assert ended(knp, tid, "rules") == "completed"
    (rule,) = knp.get("/approvals/rules?namespace=rules")["rules"]
    assert set(rule) == {"id", "tool", "pattern", "decision", "scope", "createdAt"}
    assert (rule["tool"], rule["pattern"], rule["decision"], rule["scope"]) == (
        "shell",
        "git status *",
        "allow",
        "namespace",
    )
    assert knp.get("/config?namespace=rules")["approvalRules"] == [rule]
    assert knp.get("/approvals/rules") == {"rules": []}
    again = begin(knp, "tool", "rules")
    assert ended(knp, again, "rules") == "completed"  # nobody was asked
    other = begin(knp, "tool", "no-rules")
    decide(knp, knp.waiting(other, "no-rules")["id"], "deny", "no-rules")
    assert knp.refused("DELETE", f"/approvals/rules/{rule['id']}") == (404, "not_found")
    assert knp.ask("DELETE", f"/approvals/rules/{rule['id']}?namespace=rules").json == {"deleted": True}
    assert knp.refused("DELETE", f"/approvals/rules/{rule['id']}?namespace=rules") == (404, "not_found")
    asked = begin(knp, "tool", "rules")
    assert decide(knp, knp.waiting(asked, "rules")["id"], "deny", "rules") == 200


@pytest.mark.req("knp:K29")
@pytest.mark.parametrize("word", ["allow", "deny"])
def test_what_is_decided_for_good_answers_what_else_waits_alike(knp: Knp, word: str) -> None:
    space = f"alike-{word}"
    first, second, other = begin(knp, "tool", space), begin(knp, "tool", space), begin(knp, "log", space)
    for tid in (second, other):
        knp.waiting(tid, space)
    assert decide(knp, knp.waiting(first, space)["id"], f"{word}-always", space) == 200
    for tid in (first, second):
        assert ended(knp, tid, space) == "completed"
    (left,) = knp.get(f"/approvals?namespace={space}")["approvals"]
    assert left["tid"] == other
    result = knp.get(f"/threads/{second}/events?namespace={space}&kinds=tool.result")["events"][0]
    assert (result["error"] is None) == (word == "allow")
    decide(knp, left["id"], "deny", space)


@pytest.mark.req("knp:K29")
def test_deny_always_holds_until_it_is_removed(knp: Knp) -> None:
    tid = begin(knp, "tool", "never")
    assert decide(knp, knp.waiting(tid, "never")["id"], "deny-always", "never") == 200
    ended(knp, tid, "never")
    (rule,) = knp.get("/approvals/rules?namespace=never")["rules"]
    assert (rule["decision"], rule["pattern"]) == ("deny", "git status *")
    again = begin(knp, "tool", "never")
    assert ended(knp, again, "never") == "completed"
    result = knp.get(f"/threads/{again}/events?namespace=never&kinds=tool.result")["events"][0]
    assert "remembered no" in result["error"]
    knp.ask("DELETE", f"/approvals/rules/{rule['id']}?namespace=never")
    asked = begin(knp, "tool", "never")
    assert decide(knp, knp.waiting(asked, "never")["id"], "deny", "never") == 200


@pytest.mark.req("knp:K29")
def test_what_is_hard_to_undo_is_never_remembered(knp: Knp) -> None:
    tid = begin(knp, "rm", "hard")
    asked = knp.waiting(tid, "hard")
    assert "always" not in asked["details"]
    for word in ("allow-always", "deny-always"):
        assert decide(knp, asked["id"], word, "hard") == 400
    assert decide(knp, asked["id"], "deny", "hard") == 200


@pytest.mark.req("knp:K30")
def test_the_first_answer_counts_and_is_told_once(knp: Knp) -> None:
    tid = knp.thread()["tid"]
    with knp.server.stream(f"/events?tid={tid}&kinds=approval.*,run.finished") as stream:
        stream.until("connected")
        knp.begin(tid, "tool")
        asked = stream.until("approval.requested")["data"]["id"]
        for wrong in ({"decision": "perhaps"}, {}, {"decision": None}):
            assert knp.refused("POST", f"/approvals/{asked}", wrong) == (400, "invalid_request")
        assert knp.decide(asked, "deny").status == 200
        late = knp.decide(asked, "allow")
        assert (late.status, late.json["error"]["code"]) == (409, "conflict")
        assert late.json["error"]["details"] == {"decision": "deny"}
        stream.until("run.finished")
    assert [f["kind"] for f in stream.frames] == [
        "connected",
        "approval.requested",
        "approval.resolved",
        "run.finished",
    ]
    assert knp.refused("POST", "/approvals/int_00000000000000000000000000", {"decision": "allow"}) == (404, "not_found")


@pytest.mark.req("knp:K30")
def test_an_answer_through_another_protocol_is_told_here(knp: Knp) -> None:
    tid = knp.thread()["tid"]
    with knp.streamed(tid, "tool") as stream:
        asked = stream.until("approval.requested")["data"]["id"]
        answer = Answer(Verdict.ALLOW, remember=Scope.THREAD)
        knp.server.call(knp.server.app.interactions.answer(asked, answer, local("cli")))
        told = stream.until("approval.resolved")
        stream.until("run.result")
    assert told["data"] == {"id": asked, "decision": "allow-always", "tid": tid}
    (rule,) = [r for r in knp.get("/approvals/rules")["rules"] if r["scope"] == "thread"]
    assert rule["pattern"] == "git status *"
    knp.ask("DELETE", f"/approvals/rules/{rule['id']}")


def test_a_question_is_an_approval_that_is_allowed_with_an_answer(knp: Knp) -> None:
    tid = knp.thread()["tid"]
    knp.begin(tid, "ask")
    asked = knp.waiting(tid)
    assert asked["tool"]["id"] == "ask_user"
    assert asked["input"]["questions"][0]["text"] == "Which?"
    path = f"/approvals/{asked['id']}"
    for wrong in ({"decision": "allow"}, {"decision": "allow-always", "message": "A"}):
        assert knp.refused("POST", path, wrong) == (400, "invalid_request")
    assert knp.ask("POST", path, {"decision": "allow", "answers": [["B"]]}).json["decision"] == "allow"
    assert knp.ended(tid)["status"] == "completed"
    assert "B" in knp.history(tid, "kinds=tool.result")[0]["result"]


@pytest.mark.req("knp:K31")
def test_an_approval_nobody_decides_in_time_is_denied(tmp_path: Path) -> None:
    with knp_project(tmp_path, "[limits]\ninteraction_timeout_s = 0.2\n") as knp:
        tid = knp.thread()["tid"]
        with knp.streamed(tid, "tool") as stream:
            told = stream.until("approval.resolved")
            stream.until("run.result")
    assert (told["data"]["decision"], told["data"]["reason"]) == ("deny", "timeout")
    assert stream.frames[-1]["data"]["status"] == "completed"
