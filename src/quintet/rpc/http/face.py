"""A face: one protocol's routes behind the guards, as an ASGI application. Knows rows and faults, no route by name.

The order is fixed: guards, route, credential, verb, params, body, handler. Whatever fails is answered in the face's own
format, and every request is one line of the access log.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar
from urllib.parse import unquote

import msgspec

from quintet.rpc.dispatch import Lanes
from quintet.rpc.http.access import AccessLog
from quintet.rpc.http.attempts import Attempts
from quintet.rpc.http.bodies import Decoders, Receive, has_body, read_body
from quintet.rpc.http.call import Answer, Caller, HttpCall, Streamed
from quintet.rpc.http.credential import Credential, Shown, in_header, split_path
from quintet.rpc.http.faults import BadRequest, Errors, HttpError, NoRoute, NotAuthorised, TooMany, WrongVerb
from quintet.rpc.http.guards import Guards, Peer
from quintet.rpc.http.routes import HOLDER, PUBLIC, Route, RouteTable
from quintet.rpc.http.sending import Send, Sender
from quintet.rpc.http.sse import LINK, Stream

S = TypeVar("S")
NOBODY = "-"


class Limits(msgspec.Struct, frozen=True):
    body_bytes: int = 10 * 1024 * 1024
    streams: int = 2_000
    heartbeat_s: float = 30.0
    key_length: int = 255


class Face(Generic[S]):
    """`credential` None: nobody has to prove anything (`--no-auth`); the guards stay."""

    def __init__(
        self,
        name: str,
        table: RouteTable,
        errors: Errors,
        state: S,
        *,
        guards: Guards,
        credential: Credential | None,
        attempts: Attempts,
        access: AccessLog,
        limits: Limits | None = None,
        own_headers: tuple[str, ...] = (),
        on_defect: Callable[[BaseException], None] = lambda failure: None,
    ) -> None:
        self.name, self.table, self.state = name, table, state
        self.limits = limits or Limits()
        self.credential = credential
        self.streams: dict[Stream, int] = {}  # with the generation of the credential that opened it
        self._errors, self._guards, self._attempts, self._access = errors, guards, attempts, access
        self._on_defect = on_defect
        self._own_headers = own_headers  # request headers of the protocol's own, which pages may send too
        self._decoders = Decoders()
        self._encode = msgspec.json.Encoder().encode
        self._lanes = Lanes()

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        began = time.perf_counter()
        headers, counts = _headers(scope["headers"])
        peer = self._guards.peer(scope["client"], headers)
        sender = Sender(send)
        seen = _Seen()
        try:
            self._guards.check(headers, counts, unix=scope["client"] is None)
            sender.origin = headers.get("origin", "")
            await self._serve(scope, headers, peer, receive, sender, seen)
        except Exception as failure:
            if sender.status == 0:
                error = self._error(failure, seen.route)
                # An unread body is not worth reading: the connection ends with the answer.
                await sender.json(error.status, self._encode(error.body), error.headers, close=not seen.read)
            else:
                self._on_defect(failure)
                raise
        finally:
            self._access.line(
                face=self.name,
                caller=seen.caller,
                verb=scope["method"],
                route=seen.route,
                status=sender.status,
                peer=peer.address,
                took_ms=(time.perf_counter() - began) * 1000,
            )

    async def _serve(
        self, scope: Any, headers: Mapping[str, str], peer: Peer, receive: Receive, sender: Sender, seen: _Seen
    ) -> None:
        path, shown = split_path(scope["raw_path"].decode("ascii"))
        found = self.table.find(path)
        verb = "GET" if scope["method"] == "HEAD" else scope["method"]
        seen.read = not has_body(headers)
        if found is not None:
            seen.route = next(iter(found[0].values())).path
        if verb == "OPTIONS" and sender.origin and "access-control-request-method" in headers:
            await sender.preflight(found[0] if found else (), self._own_headers)
            return
        route = found[0].get(verb) if found is not None else None
        caller = self._caller(route, shown, headers, peer)
        seen.caller = caller.name
        if found is None:
            raise NoRoute("There is nothing here.")
        if route is None:
            raise WrongVerb("This path does not offer that method.", allow=", ".join(sorted(found[0])))
        params = self._decoders.params(
            route, {name: _part(value) for name, value in found[1].items()}, scope["query_string"]
        )
        raw = await read_body(headers, receive, self.limits.body_bytes) if has_body(headers) else b""
        seen.read = True
        body = self._decoders.body(route, raw)
        key = self._key(route, headers)
        call = HttpCall(
            self.state,
            route,
            caller,
            headers,
            prefix=scope["raw_path"].decode("ascii").removesuffix(path) if shown else "",
            key=key,
            digest=hashlib.sha256(raw).hexdigest() if key else "",
        )
        await self._answer(await self._run(route, call, params, body), sender, scope)

    async def _run(self, route: Route, call: HttpCall[S], params: Any, body: Any) -> Any:
        lane_key = route.scope(params, body) if route.scope is not None else None
        if lane_key is None:
            return await route.handler(call, params, body)
        lane = self._lanes.enter(lane_key)
        try:
            await lane.wait()
            return await route.handler(call, params, body)
        finally:
            lane.leave()

    async def _answer(self, outcome: Any, sender: Sender, scope: Any) -> None:
        if isinstance(outcome, Streamed):
            await self._stream(outcome, sender, scope)
        elif isinstance(outcome, Answer):
            await sender.json(outcome.status, self._encode(outcome.result), outcome.headers)
        else:
            await sender.json(200, self._encode(outcome))

    async def _stream(self, outcome: Streamed, sender: Sender, scope: Any) -> None:
        if len(self.streams) >= self.limits.streams:
            raise TooMany(f"{self.limits.streams} streams are open, and no more are served.", retry_after="5")
        stream = Stream(sender.piece, scope["extensions"][LINK], beat_s=self.limits.heartbeat_s)
        self.streams[stream] = self.credential.generation if self.credential else 0
        try:
            await sender.begin_stream(outcome.headers)
            stream.start()
            await outcome.fill(stream)
            if not stream.lost:
                await sender.end()
        finally:
            stream.stop()
            del self.streams[stream]

    def end_streams(self, *, of_old_credentials: bool = False) -> None:
        """Before the server stops, or when a token is worth nothing any more."""
        now = self.credential.generation if self.credential else 0
        for stream, generation in list(self.streams.items()):
            if not of_old_credentials or generation != now:
                stream.close()

    def _caller(self, route: Route | None, path: Shown | None, headers: Mapping[str, str], peer: Peer) -> Caller:
        if route is not None and route.who == PUBLIC:
            return Caller(NOBODY, "none", peer.address, peer.local)
        if self.credential is None:
            return Caller("anyone", "none", peer.address, peer.local)
        shown = [s for s in (path, in_header(headers)) if s is not None]
        wait_s = self._attempts.wait_s(peer.address) if shown else 0
        # The token no number of guesses finds is looked at always, so that nobody can lock its holder out.
        proven = [s for s in shown if self.credential.accepts(s, guessable=not wait_s)]
        if proven:
            return Caller(HOLDER, proven[0].proof, peer.address, peer.local)
        if not shown:
            raise NotAuthorised("This needs the server's token.", www_authenticate='Basic realm="quintet", Bearer')
        if wait_s:
            raise TooMany("Too many wrong credentials; wait before the next one.", retry_after=str(wait_s))
        self._attempts.failed(peer.address)
        raise NotAuthorised("This is not the server's token.", www_authenticate='Basic realm="quintet", Bearer')

    def _key(self, route: Route, headers: Mapping[str, str]) -> str:
        key = headers.get("idempotency-key", "") if route.keyed else ""
        if len(key) > self.limits.key_length or not key.isprintable():
            raise BadRequest(f"An Idempotency-Key has {self.limits.key_length} printable characters at most.")
        return key

    def _error(self, failure: BaseException, route: str) -> HttpError:
        try:
            error = self._errors(failure, route)
        except Exception as second:
            self._on_defect(second)
            error = HttpError(500, {"error": {"code": "internal", "message": "Internal error"}})
        if error.status >= 500:
            self._on_defect(failure)
        return error


class _Seen:
    """How far a request came, for the log and for how its connection goes on."""

    __slots__ = ("caller", "read", "route")

    def __init__(self) -> None:
        self.caller, self.route, self.read = NOBODY, NOBODY, False


def _headers(raw: list[tuple[bytes, bytes]]) -> tuple[dict[str, str], dict[str, int]]:
    headers: dict[str, str] = {}
    counts: dict[str, int] = {}
    for name, value in raw:
        word = name.decode("latin-1")
        counts[word] = counts.get(word, 0) + 1
        headers[word] = value.decode("latin-1")
    return headers, counts


def _part(value: str) -> str:
    """A part of the path as the client meant it; a slash inside it stays inside it."""
    try:
        return unquote(value, errors="strict")
    except UnicodeDecodeError:
        raise BadRequest("The path cannot be read.") from None
