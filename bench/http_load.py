"""Plain HTTP for benches: one request with a time limit, many over a few connections, a stream read raw."""

from __future__ import annotations

import http.client
import json
import selectors
import socket
import time
from collections.abc import Iterator
from typing import Any


class Target:
    """A server, and what every request to it carries."""

    def __init__(self, port: int, headers: dict[str, str] | None = None) -> None:
        self.port, self.headers = port, headers or {}

    def ask(self, verb: str, path: str, body: Any = None, *, within_s: float = 60.0) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=within_s)
        try:
            raw = None if body is None else json.dumps(body).encode()
            kind = {} if raw is None else {"Content-Type": "application/json"}
            connection.request(verb, path, body=raw, headers={**self.headers, **kind})
            answer = connection.getresponse()
            data = answer.read()
            assert answer.status < 300, (verb, path, answer.status, data[:300])
            return json.loads(data) if data else None
        finally:
            connection.close()

    def until_ready(self, path: str, began: float, *, within_s: float = 60.0) -> float:
        """Seconds until the first answer. A connection that is taken and not answered is given up and tried again."""
        while True:
            try:
                self.ask("GET", path, within_s=0.25)
                return time.perf_counter() - began
            except (OSError, http.client.HTTPException):
                assert time.perf_counter() - began < within_s, "the server did not get ready"
                time.sleep(0.002)

    def per_second(self, path: str, *, connections: int = 16, seconds: float = 2.0) -> float:
        """Answers a second, each connection asking again as soon as it was answered."""
        head = "".join(f"{name}: {value}\r\n" for name, value in self.headers.items())
        request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n{head}\r\n".encode()
        selector = selectors.DefaultSelector()
        for _ in range(connections):
            peer = socket.create_connection(("127.0.0.1", self.port), timeout=60)
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            peer.sendall(request)
            selector.register(peer, selectors.EVENT_READ, [b""])
        count, began = 0, time.perf_counter()
        while (now := time.perf_counter()) - began < seconds:
            for key, _ in selector.select(1.0):
                peer = key.fileobj  # type: ignore[assignment]
                key.data[0] += peer.recv(1 << 20)
                if _whole(key.data[0]):
                    key.data[0] = b""
                    count += 1
                    peer.sendall(request)
        took = now - began
        for key in list(selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        return count / took

    def stream(self, path: str) -> Iterator[tuple[float, dict[str, Any]]]:
        """(arrival, JSON) of every frame; the first item is given once the stream is open."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", path, headers=self.headers)
        answer = connection.getresponse()
        try:
            while line := answer.readline():
                if line.startswith(b"data:"):
                    yield time.time(), json.loads(line[5:])
        finally:
            answer.close()
            connection.close()


def _whole(data: bytes) -> bool:
    head, found, body = data.partition(b"\r\n\r\n")
    if not found:
        return False
    lower = head.lower()
    if b"content-length:" in lower:
        length = int(lower.split(b"content-length:")[1].split(b"\r\n")[0])
        return len(body) >= length
    return body.endswith(b"0\r\n\r\n")
