"""KNP with real processes: what another process runs is seen and answered here, a server that was killed says so when
it comes back, and an abort leaves nothing of a tool behind."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.fakes.knp_project import TEXT, Knp, make_home, make_project
from tests.fakes.knp_server import Running
from tests.fakes.wire_client import WireClient
from tests.faults.processes import Process, end_leftovers, living_with, quintet_running, wait_until

SEEN_WITHIN_S = 5.0  # a second where nothing else runs; a loaded machine may be late
TREE_DEAD_WITHIN_S = 2.0


@contextmanager
def serving(home: Path, project: Path) -> Iterator[tuple[Process, Knp]]:
    ready = home / "ready.json"
    ready.unlink(missing_ok=True)
    flags = ("--knp-port", "0", "--ready-file", str(ready), "--project", str(project))
    with quintet_running("serve", *flags, home=home) as process:
        wait_until(lambda: ready.exists() or process.popen.poll() is not None, 30)
        assert ready.exists(), process.words()
        facts = json.loads(ready.read_text())
        reached: Any = SimpleNamespace(url=facts["knp"]["url"], token=facts["token"])
        yield process, Knp(Running(None, reached, None), project)  # type: ignore[arg-type]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "proj")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return make_home(tmp_path / "home")


@pytest.mark.req("knp:K21", "knp:K30", "knp:K31")
def test_a_run_of_another_process_is_seen_and_its_approval_answered(home: Path, project: Path) -> None:
    with serving(home, project) as (_, knp), knp.server.stream("/events") as stream:
        stream.until("connected")
        words = ("run", "--json", "--mode", "ask", "--on-ask", "wait:60", "-m", "tool/scripted", "go")
        with quintet_running(*words, home=home, cwd=project) as run:
            asked = stream.until("approval.requested")
            seen = time.time()
            told, own = run.event("interaction.requested", within_s=30)
            assert seen - told < SEEN_WITHIN_S
            assert own["id"] == asked["id"].partition(".")[0]
            (listed,) = knp.get("/approvals")["approvals"]
            assert (listed["id"], listed["input"]) == (asked["data"]["id"], {"command": "git status"})
            assert knp.decide(listed["id"], "allow").status == 200
            finished = stream.until("run.finished")
            assert run.wait(30) == 0, run.words()
        assert finished["data"]["status"] == "completed"
        tid = finished["data"]["tid"]
        assert [e["kind"] for e in knp.history(tid)] == ["message", "message", "tool.call", "tool.result", "message"]
        assert knp.get(f"/threads/{tid}")["state"] == "idle"


@pytest.mark.req("knp:K20", "knp:K30")
def test_a_turn_of_a_wire_client_is_steered_by_what_is_decided_here(home: Path, project: Path) -> None:
    with serving(home, project) as (_, knp), knp.server.stream("/events") as stream:
        stream.until("connected")
        with WireClient(home, "--model", "tool/scripted", work=project) as client:
            client.send(method="prompt", id="1", params={"user_input": "go"})
            asked = stream.until("approval.requested")
            assert knp.decide(asked["data"]["id"], "deny", message="not now").status == 200
            stream.until("run.finished")
        kinds = [f["kind"] for f in stream.frames]
        # A Wire client's answer may begin anew, so its pieces are told whole at the end of the step.
        assert kinds.index("tool.start") < kinds.index("text.end") < kinds.index("model.call.end")
        assert "not now" in knp.history(asked["data"]["tid"], "kinds=tool.result")[0]["error"]


@pytest.mark.req("knp:K3", "knp:K8", "knp:K10", "knp:K31", "reliability:R1")
def test_a_server_killed_in_a_run_tells_of_it_when_it_comes_back(home: Path, project: Path) -> None:
    with serving(home, project) as (process, knp):
        waiting, streaming = knp.thread()["tid"], knp.thread()["tid"]
        with knp.server.stream("/events") as stream:
            runs = {waiting: knp.begin(waiting, "tool"), streaming: knp.begin(streaming, "hold")}
            wanted = {"approval.requested", "text.delta"}
            while wanted:
                frame = stream.next()
                assert frame is not None
                if frame["kind"] != "text.delta" or frame["data"]["tid"] == streaming:
                    wanted.discard(frame["kind"])
        last = stream.frames[-1]["seq"]
        approval = knp.waiting(waiting)["id"]
        process.kill()
    with serving(home, project) as (_, knp):
        for tid, run in runs.items():
            current = knp.get(f"/threads/{tid}/runs/current")
            assert (current["runId"], current["status"]) == (run, "failed")
            assert current["error"]["code"] == "interrupted"
            assert knp.get(f"/threads/{tid}")["state"] == "stopped"
            assert knp.history(tid)[0]["content"] == TEXT
        assert knp.history(streaming)[-1]["metadata"]["partial"] is True
        assert knp.get("/approvals") == {"approvals": []}
        late = knp.decide(approval, "allow")
        assert (late.status, late.json["error"]["details"]) == (409, {"decision": "deny"})
        with knp.server.stream("/events", last_event_id=str(last)) as stream:
            resolved = stream.until("approval.resolved")
            ended = [stream.until("run.finished")["data"] for _ in runs]
        assert (resolved["data"]["decision"], resolved["data"]["reason"]) == ("deny", "interrupted")
        assert {(run["runId"], run["status"]) for run in ended} == {(run, "failed") for run in runs.values()}
        numbers = [f["seq"] for f in stream.frames if f["sse_id"] is not None]
        assert numbers == sorted(set(numbers))
        assert numbers[0] > last
        assert knp.run(waiting).json["status"] == "completed"


@pytest.mark.req("knp:K7", "reliability:R14")
def test_an_abort_leaves_no_process_of_a_tool(home: Path, project: Path) -> None:
    mark = f"{time.time():.6f}"
    line = f"sleep {mark} & setsid sleep {mark} & trap '' TERM; sleep {mark}"
    (home / "tool.script").write_text(f"tool_call: shell {json.dumps({'command': line})}\n---\ntext: Done.\n")
    try:
        with serving(home, project) as (_, knp):
            tid = knp.thread()["tid"]
            with knp.streamed(tid, "tool") as stream:
                knp.decide(stream.until("approval.requested")["data"]["id"], "allow")
                wait_until(lambda: len(living_with(mark)) >= 3, 30)
                begun = time.monotonic()
                assert knp.ask("POST", f"/threads/{tid}/runs/abort").json == {"aborted": True}
                wait_until(lambda: not living_with(mark), 30)
                took = time.monotonic() - begun
                stream.until("run.result")
            assert took < TREE_DEAD_WITHIN_S
            assert stream.frames[-1]["data"]["status"] == "aborted"
            (result,) = knp.history(tid, "kinds=tool.result")
            assert result["result"] is None
    finally:
        end_leftovers(living_with(mark))
