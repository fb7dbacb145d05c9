"""A Kward client on the pipes of the real executable, started as Tauren starts it. Every wait is bounded."""

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

from tests.fakes.kward_peer import is_event, kinds, payloads
from tests.faults.processes import environment

__all__ = ["KWARD", "KwardClient", "kinds", "payloads"]
KWARD = str(Path(sys.executable).parent / "quintet-kward")
LIMIT_S = 30.0
Message = dict[str, Any]


class KwardClient:
    """Used as a context; whatever still runs at its end is killed, by its own id."""

    def __init__(self, home: Path, work: Path, *argv: str, **env: str) -> None:
        work.mkdir(parents=True, exist_ok=True)
        files = {"KWARD_CONFIG_PATH": str(home.parent / "kward" / "config.json"), "HOME": str(home.parent)}
        self.popen = subprocess.Popen(
            argv or (KWARD, "rpc"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=work,
            env=environment(QUINTET_HOME=str(home), **(files | env)),
        )
        self.seen: list[Message] = []
        self._ids = 0
        self._buffer = b""

    def __enter__(self) -> KwardClient:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.popen.poll() is None:
            self.popen.kill()
        self.popen.wait(LIMIT_S)
        for pipe in (self.popen.stdin, self.popen.stdout, self.popen.stderr):
            assert pipe is not None
            pipe.close()

    # --- speaking ------------------------------------------------------------------------------------------------
    def raw(self, data: bytes) -> None:
        assert self.popen.stdin is not None
        self.popen.stdin.write(data)
        self.popen.stdin.flush()

    def begin(self, method: str, **params: Any) -> int:
        """Without params nothing is sent of them, as Tauren does."""
        self._ids += 1
        message: Message = {"jsonrpc": "2.0", "id": self._ids, "method": method}
        body = json.dumps(message | ({"params": params} if params else {})).encode()
        self.raw(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        return self._ids

    # --- hearing -------------------------------------------------------------------------------------------------
    def next(self, within_s: float = LIMIT_S) -> Message | None:
        """The next message; None at the end of the stream."""
        assert self.popen.stdout is not None
        deadline = time.monotonic() + within_s
        while (body := self._body()) is None:
            left = deadline - time.monotonic()
            assert left > 0, f"nothing came within {within_s} s after {self.seen[-5:]}"
            if select.select([self.popen.stdout], [], [], left)[0]:
                data = os.read(self.popen.stdout.fileno(), 65536)
                if not data:
                    assert not self._buffer, f"half a block at the end: {self._buffer!r}"
                    return None
                self._buffer += data
        message: Message = json.loads(body)
        assert message["jsonrpc"] == "2.0", message
        self.seen.append(message)
        return message

    def _body(self) -> bytes | None:
        head, mark, rest = self._buffer.partition(b"\r\n\r\n")
        if not mark:
            return None
        assert head.startswith(b"Content-Length: "), f"not a block: {self._buffer[:200]!r}"
        size = int(head.removeprefix(b"Content-Length: "))
        if len(rest) < size:
            return None
        self._buffer = rest[size:]
        return rest[:size]

    def until(self, match: Callable[[Message], bool]) -> Message:
        while True:
            message = self.next()
            assert message is not None, f"the stream ended after {self.seen[-5:]}"
            if match(message):
                return message

    def reply(self, id: int) -> Message:
        for message in self.seen:
            if message.get("id") == id and "method" not in message:
                return message
        return self.until(lambda m: m.get("id") == id and "method" not in m)

    def call(self, method: str, **params: Any) -> Message:
        return self.reply(self.begin(method, **params))

    def ok(self, method: str, **params: Any) -> Any:
        reply = self.call(method, **params)
        assert "result" in reply, reply
        return reply["result"]

    def turn(self, session: str, input: str = "go", **params: Any) -> list[Message]:
        return self.finished(self.ok("turns/start", sessionId=session, input=input, **params)["id"])

    def finished(self, turn: str) -> list[Message]:
        if not any(is_event(m, turn, "turnFinished") for m in self.seen):
            self.until(lambda m: is_event(m, turn, "turnFinished"))
        return self.events(turn)

    def hears(self, kind: str, turn: str = "") -> Any:
        for message in self.seen:
            if is_event(message, turn, kind):
                return message["params"]["payload"]
        return self.until(lambda m: is_event(m, turn, kind))["params"]["payload"]

    def events(self, turn: str) -> list[Message]:
        return [m["params"] for m in self.seen if m.get("method") == "turn/event" and m["params"]["turnId"] == turn]

    # --- ending --------------------------------------------------------------------------------------------------
    def hang_up(self) -> None:
        assert self.popen.stdin is not None
        self.popen.stdin.close()

    def leave(self) -> tuple[int, str]:
        """As Tauren leaves: the input ends and a signal follows at once."""
        self.hang_up()
        self.signal(signal.SIGTERM)
        return self.ended()

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
