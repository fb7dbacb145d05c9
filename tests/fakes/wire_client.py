"""A Wire client on the pipes of the real executable. It answers requests as it is told; every wait is bounded."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.faults.processes import ROOT, environment

KIMI = str(Path(sys.executable).parent / "quintet-kimi")
LIMIT_S = 20.0
Message = dict[str, Any]
Answer = Callable[[Message], Message | None]


class WireClient:
    """Used as a context; whatever still runs at its end is killed, by its own id."""

    def __init__(
        self, home: Path, *flags: str, work: Path, argv: tuple[str, ...] = (KIMI, "--wire"), **env: str
    ) -> None:
        self.popen = subprocess.Popen(
            [*argv, "--home", str(home), "--work-dir", str(work), *flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            env=environment(KIMI_SHARE_DIR=str(home / "share"), **env),
        )
        self.seen: list[Message] = []
        self._buffer = b""

    def __enter__(self) -> WireClient:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.popen.poll() is None:
            self.popen.kill()
        self.popen.wait(LIMIT_S)
        for pipe in (self.popen.stdin, self.popen.stdout, self.popen.stderr):
            assert pipe is not None
            pipe.close()

    # --- speaking ------------------------------------------------------------------------------------------------
    def raw(self, line: bytes) -> None:
        assert self.popen.stdin is not None
        self.popen.stdin.write(line + b"\n")
        self.popen.stdin.flush()

    def send(self, **message: Any) -> None:
        self.raw(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def answer(self, request: Message, **result: Any) -> None:
        self.send(id=request["id"], result={"request_id": request["id"], **result})

    # --- hearing -------------------------------------------------------------------------------------------------
    def next(self, within_s: float = LIMIT_S) -> Message | None:
        """The next message; None at the end of the stream."""
        assert self.popen.stdout is not None
        deadline = time.monotonic() + within_s
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            assert left > 0, f"nothing came within {within_s} s after {self.seen[-5:]}"
            if select.select([self.popen.stdout], [], [], left)[0]:
                data = os.read(self.popen.stdout.fileno(), 65536)
                if not data:
                    assert not self._buffer, f"half a line at the end: {self._buffer!r}"
                    return None
                self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        assert line[:1] + line[-1:] == b"{}", line  # no blank, mark or return around it, which a parser would forgive
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0", message
        self.seen.append(message)
        return message

    def until(self, match: Callable[[Message], bool], answers: Answer = lambda request: None) -> list[Message]:
        """All messages up to the first that matches; requests on the way are answered with what `answers` gives."""
        heard: list[Message] = []
        while True:
            message = self.next()
            assert message is not None, f"the stream ended after {heard[-5:]}"
            heard.append(message)
            if message.get("method") == "request" and (result := answers(message)) is not None:
                self.answer(message, **result)
            if match(message):
                return heard

    def reply(self, id: Any, answers: Answer = lambda request: None) -> list[Message]:
        """All messages up to the reply with this id."""
        return self.until(lambda m: m.get("id") == id and "method" not in m, answers)

    def call(self, method: str, id: Any = "c", answers: Answer = lambda request: None, **params: Any) -> list[Message]:
        self.send(id=id, method=method, params=params)
        return self.reply(id, answers)

    def prompt(self, words: Any = "go", answers: Answer = lambda request: None) -> list[Message]:
        return self.call("prompt", "p", answers, user_input=words)

    def initialize(self, version: str = "1.10", **more: Any) -> Message:
        params = {"protocol_version": version, "client": {"name": "test", "version": "1"}, **more}
        return self.call("initialize", "i", **params)[-1]

    # --- ending --------------------------------------------------------------------------------------------------
    def hang_up(self) -> None:
        assert self.popen.stdin is not None
        self.popen.stdin.close()

    def signal(self, number: signal.Signals) -> None:
        self.popen.send_signal(number)

    def rest(self) -> list[Message]:
        """Whatever still comes until the stream ends."""
        heard = []
        while (message := self.next()) is not None:
            heard.append(message)
        return heard

    def ended(self, within_s: float = LIMIT_S) -> tuple[int, str]:
        """(exit code, stderr)."""
        code = self.popen.wait(within_s)
        assert self.popen.stderr is not None
        return code, self.popen.stderr.read().decode()


def kinds(messages: list[Message]) -> list[str]:
    """The type of each event and request, and `reply` for each reply."""
    return [m["params"]["type"] if "params" in m else "reply" for m in messages]


def payloads(messages: list[Message], kind: str) -> list[Any]:
    return [m["params"]["payload"] for m in messages if "params" in m and m["params"]["type"] == kind]


def spoken(messages: list[Message]) -> str:
    return "".join(p.get("text", "") for p in payloads(messages, "ContentPart"))
