"""A server over a small project with models that play scripts, and the requests that tests of KNP make again and
again."""

from __future__ import annotations

import http.client
import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from quintet.serving.server import Wish
from tests.fakes.knp_server import WITHIN_S, Reply, Running, Sse, knp_server, wait_for
from tests.faults.processes import write_home

SCRIPTS = {
    "talk": "think: Hmm\ntext: Hello\ntext:  world\nusage: in=10 out=5 cached=2 reasoning=1",
    "tool": 'text: I look.\ntool_call: shell {"command": "git status"}\n---\ntext: Done.',
    "rm": 'tool_call: shell {"command": "rm -rf src"}\n---\ntext: Done.',
    "log": 'tool_call: shell {"command": "git log"}\n---\ntext: Done.',
    "hold": "text: Half\nuntil: never\ntext:  and half",
    "bad": "text: Half\nerror: 529 overloaded",
    "long": "repeat: 200 every 0.002 text: w",
    "todo": 'tool_call: todo {"todos": [{"text": "a", "status": "done"}, {"text": "b"}]}\n---\ntext: Done.',
    "ask": 'tool_call: ask_user {"questions": [{"question": "Which?", "header": "Q", "options": '
    '[{"label": "A", "description": "a"}, {"label": "B", "description": "b"}]}]}\n---\ntext: Done.',
}
TEXT = [{"kind": "text", "text": "go"}]


def make_project(where: Path) -> Path:
    (where / "src").mkdir(parents=True)
    (where / "src/index.ts").write_text("export function main() {}\n// TODO: auth\n")
    (where / "README.md").write_text("# A project\n")
    (where / ".gitignore").write_text("dist\n")
    (where / "dist").mkdir()
    (where / "dist/out.js").write_text("TODO\n")
    subprocess.run(["git", "init", "-q", str(where)], check=True, capture_output=True)
    return where


def make_home(where: Path, more: str = "") -> Path:
    home = write_home(where)
    lines = ['default_model = "talk/scripted"', more]
    for name, script in SCRIPTS.items():
        (home / f"{name}.script").write_text(f"scope: turn\n{script}\n")
        lines.append(f'[providers.{name}]\nkind = "scripted"\nscript = "{name}.script"\n')
    lines.append('[models."talk/scripted"]\nvision = true\n')
    (home / "config.toml").write_text("\n".join(lines))
    return home


class Knp:
    """Asks as a client does."""

    def __init__(self, server: Running, project: Path) -> None:
        self.server, self.project = server, project
        self.ask = server.ask

    def get(self, path: str, **headers: str | None) -> Any:
        reply = self.ask("GET", path, headers=headers)
        assert reply.status == 200, reply
        return reply.json

    def refused(self, verb: str, path: str, body: Any = None, **headers: str | None) -> tuple[int, str]:
        reply = self.ask(verb, path, body, headers=headers)
        assert set(reply.json) == {"error"}, reply
        return reply.status, reply.json["error"]["code"]

    def thread(self, namespace: str = "", **body: Any) -> dict[str, Any]:
        reply = self.ask("POST", f"/threads?namespace={namespace}" if namespace else "/threads", body)
        assert reply.status == 200, reply
        made: dict[str, Any] = reply.json
        return made

    def run(self, tid: str, model: str = "talk", **more: Any) -> Reply:
        """Held until it has ended, unless detached."""
        detach = more.pop("detach", "")
        headers = more.pop("headers", None)
        body = {"input": TEXT, "model": {"provider": model, "modelId": "scripted"}, **more}
        return self.ask("POST", f"/threads/{tid}/runs{detach}", body, headers=headers)

    def begin(self, tid: str, model: str, **more: Any) -> str:
        """Begun and left to itself; its id."""
        reply = self.run(tid, model, detach="?detach=true", **more)
        assert reply.status == 202, reply
        return str(reply.json["runId"])

    @contextmanager
    def streamed(self, tid: str, model: str = "talk", headers: Mapping[str, str] | None = None) -> Iterator[Sse]:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=WITHIN_S)
        body = json.dumps({"input": TEXT, "model": {"provider": model, "modelId": "scripted"}})
        wanted = {"Content-Type": "application/json", "Accept": "text/event-stream", **(headers or {})}
        connection.request("POST", f"/threads/{tid}/runs", body, self.server.headers(wanted))
        stream = Sse(connection, connection.getresponse())
        try:
            yield stream
        finally:
            stream.close()

    def waiting(self, tid: str, namespace: str = "") -> dict[str, Any]:
        """The approval that waits in a thread, once it does."""
        found: list[dict[str, Any]] = []

        def look() -> bool:
            found[:] = self.get(f"/approvals?tid={tid}&namespace={namespace}")["approvals"]
            return bool(found)

        wait_for(look)
        return found[0]

    def decide(self, approval: str, decision: str, **more: Any) -> Reply:
        return self.ask("POST", f"/approvals/{approval}", {"decision": decision, **more})

    def ended(self, tid: str) -> dict[str, Any]:
        """The last run, once it has ended."""
        found: dict[str, Any] = {}

        def look() -> bool:
            found.update(self.get(f"/threads/{tid}/runs/current"))
            return found["status"] != "running"

        wait_for(look)
        return found

    def history(self, tid: str, query: str = "order=asc") -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = self.get(f"/threads/{tid}/events?{query}")["events"]
        return events


@contextmanager
def knp_project(where: Path, more: str = "") -> Iterator[Knp]:
    project, home = make_project(where / "proj"), make_home(where / "home", more)
    with knp_server(home, Wish(knp_port=0, roots=(str(project),))) as server:
        yield Knp(server, project.resolve())


def kinds(frames: list[dict[str, Any]]) -> list[str]:
    """Of the frames of events, with pieces that repeat told once."""
    found: list[str] = []
    for frame in frames:
        if frame["kind"] != "heartbeat" and (not found or found[-1] != frame["kind"]):
            found.append(frame["kind"])
    return found
