"""Agents, providers, configuration; and that every error has the published format."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from quintet.domain.errors import all_error_classes
from quintet.protocols.knp.errors import MAP, errors, without_paths
from tests.fakes.knp_project import Knp, knp_project

SECRET = "sk-live-0123456789abcdefghijklmnop"
MORE = """
[providers.keyed]
kind = "openai-chat"
base_url = "https://api.example.com/v1"
api_key = "sk-live-0123456789abcdefghijklmnop"
[providers.leak]
kind = "scripted"
script = "leak.script"
[models."keyed/big"]
vision = true
reasoning = true
[agents.reviewer]
description = "Looks at changes."
model = "talk/scripted"
[policy.rules]
"shell: curl -H sk-live-0123456789abcdefghijklmnop *" = "deny"
"""


@pytest.fixture(scope="module")
def knp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Knp]:
    with knp_project(tmp_path_factory.mktemp("knp"), "\n") as made:
        yield made


@pytest.fixture(scope="module")
def configured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Knp]:
    with knp_project(tmp_path_factory.mktemp("knp"), MORE) as made:
        yield made


def test_agents_are_the_built_in_ones_then_the_persons_own(configured: Knp) -> None:
    agents = configured.get("/agents")["agents"]
    assert [(a["id"], a["name"]) for a in agents] == [
        ("coder", "Coder"),
        ("explorer", "Explorer"),
        ("planner", "Planner"),
        ("reviewer", "Reviewer"),
    ]
    assert agents[3]["description"] == "Looks at changes."
    assert agents[3]["model"] == {"provider": "talk", "modelId": "scripted"}
    assert "model" not in agents[0]


def test_providers_say_what_they_have_and_whether_they_can_be_used(configured: Knp) -> None:
    shown = configured.get("/providers")
    by_id = {p["id"]: p for p in shown["providers"]}
    assert shown["default"] == {"provider": "talk", "modelId": "scripted"}
    assert by_id["keyed"]["connected"] is True
    assert by_id["keyed"]["models"] == [
        {"id": "big", "name": "big", "capabilities": {"reasoning": True, "vision": True, "tools": True}}
    ]
    assert by_id["anthropic"]["connected"] is False  # known, without a key
    assert by_id["anthropic"]["name"] == "Anthropic"
    assert by_id["anthropic"]["models"]


def test_no_secret_is_in_any_of_it(configured: Knp) -> None:
    for path in ("/config", "/providers", "/agents"):
        assert b"sk-live" not in configured.ask("GET", path).body
    rules = configured.get("/config")["permissions"]["rules"]
    assert list(rules.values()) == ["deny"]
    assert configured.get("/config")["permissions"]["mode"] == "ask"


@pytest.mark.req("security:S44")
def test_a_known_secret_is_on_no_stream_and_in_no_answer(configured: Knp) -> None:
    first, second = SECRET[:11], SECRET[11:]
    script = f'scope: turn\nthink: {SECRET}\ntext: it is {first}\ntext: "{second} as you see"\n'
    (configured.server.app.home / "leak.script").write_text(script)
    tid = configured.thread(title=SECRET, metadata={"note": [SECRET]})["tid"]
    with configured.streamed(tid, "leak") as stream:
        stream.until("run.result")
    configured.ask("PATCH", f"/threads/{tid}", {"metadata": {"more": SECRET}})
    with configured.server.stream("/events?after=0") as replayed:
        replayed.until("run.finished")
    told = [str(stream.frames), str(replayed.frames), str(configured.history(tid)), str(configured.get("/threads"))]
    for shown in told:
        assert tid in shown
        assert SECRET not in shown
        assert second not in shown
    said = configured.history(tid)[-1]["content"][0]["text"]
    assert said.startswith("it is ")
    assert said.endswith(" as you see")


@pytest.mark.req("knp:K39")
def test_every_error_has_a_published_code() -> None:
    published = {"not_found", "invalid_request", "conflict", "unauthorized", "internal", "forbidden", "overloaded"}
    assert {code for code, _ in MAP.values()} <= published
    for kind in all_error_classes():
        answer = errors(kind("It failed.", secret="/home/somebody/x"), "GET /x")
        assert answer.body.error.code in published
        assert "/home" not in str(answer.body)


@pytest.mark.req("knp:K39")
def test_no_error_tells_where_things_lie_on_the_server(tmp_path: Path) -> None:
    for said, told in (
        ("its script /home/me/.local/a.script cannot be read", "its script a.script cannot be read"),
        ("'/tmp/x/y' and (/var/lib/z)", "'y' and (z)"),
        (
            "see https://example.com/home/x or GET /approvals/rules",
            "see https://example.com/home/x or GET /approvals/rules",
        ),
    ):
        assert without_paths(said) == told
    with knp_project(tmp_path, '[providers.lost]\nkind = "scripted"\nscript = "none.script"\n') as knp:
        reply = knp.ask("POST", "/threads", {"model": {"provider": "lost", "modelId": "scripted"}})
        assert reply.status == 400
        assert "none.script" in reply.json["error"]["message"]
        assert str(tmp_path) not in str(reply.body)


@pytest.mark.req("knp:K39")
def test_what_is_not_there_and_not_offered_is_said_in_the_published_format(knp: Knp) -> None:
    assert knp.refused("GET", "/nothing") == (404, "not_found")
    assert knp.refused("PUT", "/threads", {}) == (405, "invalid_request")
    assert knp.refused("GET", "/threads/thr_x") == (404, "not_found")
    assert knp.ask("GET", "/threads/thr_x").json["error"]["message"].startswith("Thread not found")
    assert knp.ask("GET", "/threads", auth=False).json["error"]["code"] == "unauthorized"
