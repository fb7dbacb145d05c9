"""One request as it came, and how far it got: for the log, and for how its connection goes on."""

from __future__ import annotations

import time
from typing import Any

from quintet.rpc.http.bodies import Receive, has_body, read_body
from quintet.rpc.http.callers import NOBODY
from quintet.rpc.http.guards import Guards, Peer
from quintet.rpc.http.sending import Sender
from quintet.rpc.http.sse import LINK


class Request:
    def __init__(self, scope: Any, receive: Receive, sender: Sender, guards: Guards) -> None:
        self.began = time.perf_counter()
        self.headers, self.counts = _headers(scope["headers"])
        self.peer: Peer = guards.peer(scope["client"], self.headers)
        self.path: str = scope["raw_path"].decode("ascii")
        self.query: bytes = scope["query_string"]
        self.verb_sent: str = scope["method"]
        self.verb = "GET" if self.verb_sent == "HEAD" else self.verb_sent
        self.link = scope["extensions"][LINK]
        self.sender = sender
        self.caller = self.route = NOBODY
        self.noted = False
        self.read = not has_body(self.headers)
        self._receive = receive

    @property
    def is_preflight(self) -> bool:
        """A browser asks whether a page, of an origin that was allowed already, may call."""
        return self.verb == "OPTIONS" and bool(self.sender.origin) and "access-control-request-method" in self.headers

    async def body(self, limit: int) -> bytes:
        raw = b"" if self.read else await read_body(self.headers, self._receive, limit)
        self.read = True
        return raw


def _headers(raw: list[tuple[bytes, bytes]]) -> tuple[dict[str, str], dict[str, int]]:
    headers: dict[str, str] = {}
    counts: dict[str, int] = {}
    for name, value in raw:
        word = name.decode("latin-1")
        counts[word] = counts.get(word, 0) + 1
        headers[word] = value.decode("latin-1")
    return headers, counts
