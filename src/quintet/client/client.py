"""The client: calls as they are published, and a stream that comes back with its cursor until it is left."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx2
import msgspec

from quintet.client.discovery import Address, find_server, parse_address
from quintet.client.envelope import Envelope, Lines
from quintet.domain.errors import (
    Conflict,
    Denied,
    InternalFailure,
    Invalid,
    NoServer,
    NotFound,
    Overloaded,
    QuintetError,
    TimedOut,
)

SILENT_FOR_S = 75.0  # two heartbeats and a half
REFUSED = 401
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0
_ERRORS: dict[str, type[QuintetError]] = {
    "not_found": NotFound,
    "invalid_request": Invalid,
    "conflict": Conflict,
    "unauthorized": Denied,
    "forbidden": Denied,
    "overloaded": Overloaded,
}


class Client:
    """`find` says where the server is; it is asked again when the token is refused, since a server that was started
    anew has another one."""

    def __init__(self, find: Callable[[], Address], *, namespace: str = "", timeout_s: float = 60.0) -> None:
        self._find = find
        self._address = find()
        self._namespace = namespace
        self._timeout_s = timeout_s
        self._http = self._open()
        self._left: list[httpx2.AsyncClient] = []  # of servers that were there before

    @classmethod
    def local(cls, home: str | Path | None = None, **more: Any) -> Client:
        """For the server of this home, found by its server.json."""
        return cls(lambda: find_server(home), **more)

    @classmethod
    def at(cls, url: str, token: str = "", **more: Any) -> Client:
        """For a server somewhere."""
        return cls(lambda: parse_address(url, token), **more)

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for http in (*self._left, self._http):
            await http.aclose()

    # --- calls -----------------------------------------------------------------------------------------------------
    async def request(self, verb: str, path: str, body: Any = None, *, key: str = "", **query: str) -> Any:
        """Any call of the interface; what is refused is raised as one of our errors."""
        headers = {"idempotency-key": key} if key else {}
        content = None
        if body is not None:
            content = msgspec.json.encode(body)
            headers["content-type"] = "application/json"
        params = {k: v for k, v in query.items() if v}
        answer = await self._heard(verb, path, content=content, headers=headers, params=params)
        # Where nothing was done by it, it can be asked again, of a server that was started anew.
        if (answer is None or answer.status_code == REFUSED) and self._moved():
            answer = await self._heard(verb, path, content=content, headers=headers, params=params)
        if answer is None:
            raise NoServer(f"Nothing answers at {self._address.url}.")
        if answer.status_code >= 400:
            raise _error(answer.status_code, answer.content)
        return msgspec.json.decode(answer.content)

    async def _heard(self, verb: str, path: str, **more: Any) -> httpx2.Response | None:
        """The answer; None where nobody was there to ask."""
        try:
            return await self._http.request(verb, path, **more)
        except httpx2.ConnectError:
            return None
        except httpx2.TimeoutException:
            raise TimedOut("The server did not answer in time.") from None
        except httpx2.TransportError:
            raise NoServer(f"Nothing answers at {self._address.url}.") from None

    async def health(self) -> Any:
        return await self.request("GET", "/health")

    async def threads(self, **query: str) -> Any:
        return await self.request("GET", "/threads", **query)

    async def thread(self, tid: str, **query: str) -> Any:
        return await self.request("GET", f"/threads/{tid}", **query)

    async def create_thread(self, *, key: str = "", **fields: Any) -> Any:
        return await self.request("POST", "/threads", fields, key=key)

    async def run(self, tid: str, text: str, *, detach: bool = False, key: str = "", **fields: Any) -> Any:
        """One run, until it is over; with `detach` until it has begun."""
        body = {"input": [{"kind": "text", "text": text}], **fields}
        query = {"detach": "true"} if detach else {}
        return await self.request("POST", f"/threads/{tid}/runs", body, key=key, **query)

    async def abort(self, tid: str) -> Any:
        return await self.request("POST", f"/threads/{tid}/runs/abort")

    async def approvals(self, **query: str) -> Any:
        return (await self.request("GET", "/approvals", **query))["approvals"]

    async def answer(self, approval: str, decision: str, message: str = "") -> Any:
        body = {"decision": decision, **({"message": message} if message else {})}
        return await self.request("POST", f"/approvals/{approval}", body)

    # --- events ----------------------------------------------------------------------------------------------------
    async def events(
        self, after: int | None = None, *, reconnect: bool = True, **query: str
    ) -> AsyncIterator[Envelope]:
        """What happened after the cursor, then what happens; without one, from now on. A lost connection is taken up
        where it was lost, each event given once. Heartbeats are not given; gaps and resets are."""
        cursor, pause_s, met = after, FIRST_PAUSE_S, False
        while True:
            try:
                async for envelope in self._connection(cursor, query):
                    pause_s, met = FIRST_PAUSE_S, True
                    if envelope.kind == "connected":
                        cursor = int(envelope.data.get("seq", 0)) if cursor is None else cursor
                    elif envelope.kind == "replay.reset":
                        cursor = int(envelope.data["seq"])
                    elif envelope.numbered and envelope.seq <= (cursor or 0):
                        continue
                    elif envelope.numbered:
                        cursor = envelope.seq
                    if envelope.kind not in ("heartbeat", "overflow"):
                        yield envelope
            except (httpx2.TransportError, Overloaded, ValueError) as why:
                if not reconnect or not met:
                    if isinstance(why, httpx2.TransportError):
                        raise NoServer(f"Nothing answers at {self._address.url}.") from None
                    raise
                self._moved()
            except Denied:
                if not reconnect or not met or not self._moved():
                    raise
            if not reconnect:
                return
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)

    async def _connection(self, cursor: int | None, query: dict[str, str]) -> AsyncIterator[Envelope]:
        headers = {"accept": "text/event-stream"}
        if cursor is not None:
            headers["last-event-id"] = str(cursor)
        timeout = httpx2.Timeout(self._timeout_s, read=SILENT_FOR_S)
        async with self._http.stream(
            "GET", "/events", headers=headers, params={k: v for k, v in query.items() if v}, timeout=timeout
        ) as answer:
            if answer.status_code >= 400:
                raise _error(answer.status_code, await answer.aread())
            lines = Lines()
            async for chunk in answer.aiter_bytes():
                for envelope in lines.feed(chunk):
                    yield envelope

    def _moved(self) -> bool:
        """Whether the server is somewhere else now, or has another token."""
        try:
            found = self._find()
        except NoServer:
            return False
        if found == self._address:
            return False
        self._left.append(self._http)  # not closed yet: somebody may still wait for an answer there
        self._address = found
        self._http = self._open()
        return True

    def _open(self) -> httpx2.AsyncClient:
        headers = {"x-kernl-protocol": "knp/0.1"}
        if self._address.token:
            headers["authorization"] = f"Bearer {self._address.token}"
        if self._namespace:
            headers["x-kernl-namespace"] = self._namespace
        transport = httpx2.AsyncHTTPTransport(uds=self._address.socket) if self._address.socket else None
        # Not through a proxy of the environment: the token is for this server alone.
        return httpx2.AsyncClient(
            base_url=self._address.url, headers=headers, timeout=self._timeout_s, transport=transport, trust_env=False
        )


def _error(status: int, content: bytes) -> QuintetError:
    try:
        told = msgspec.json.decode(content)["error"]
        code, message = str(told["code"]), str(told["message"])
        details = told.get("details") or {}
    except (msgspec.DecodeError, KeyError, TypeError):
        return InternalFailure(f"The server answered {status}, and not in KNP's words.")
    known = _ERRORS.get(code, InternalFailure)
    return known(message, next_step="", **{str(k): v for k, v in details.items() if k != "next_step"})
