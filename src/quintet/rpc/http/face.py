"""A face: one protocol's routes behind the guards, as an ASGI application. Knows rows and faults, no route by name.

The order is fixed: guards, route, credential, verb, params, body, handler. Whatever fails is answered in the face's own
format, and every request is one line of the access log.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar
from urllib.parse import unquote

import msgspec

from quintet.rpc.dispatch import Lanes
from quintet.rpc.http.access import AccessLog
from quintet.rpc.http.attempts import Attempts
from quintet.rpc.http.bodies import Decoders, Receive
from quintet.rpc.http.call import Answer, Held, HttpCall, Streamed
from quintet.rpc.http.callers import Callers
from quintet.rpc.http.credential import Credential, split_path
from quintet.rpc.http.faults import BadRequest, Errors, HttpError, NoRoute, TooMany, WrongVerb
from quintet.rpc.http.guards import Guards
from quintet.rpc.http.request import Request
from quintet.rpc.http.routes import Route, RouteTable
from quintet.rpc.http.sending import Send, Sender
from quintet.rpc.http.sse import Stream

S = TypeVar("S")
GONE = 499  # for the log alone: the client had left before it was answered
SINGLE = ("authorization", "content-type", "idempotency-key", "last-event-id")  # Host and Origin are the guards'


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
        before: Callable[[HttpCall[S]], None] = lambda call: None,
        on_defect: Callable[[BaseException], None] = lambda failure: None,
    ) -> None:
        self.name, self.table, self.state = name, table, state
        self.limits = limits or Limits()
        self.credential = credential
        self.streams: dict[Stream, int] = {}  # with the generation of the credential that opened it
        self._callers = Callers(credential, attempts)
        self._errors, self._guards, self._access = errors, guards, access
        self._on_defect = on_defect
        self._own_headers = own_headers  # request headers of the protocol's own, which pages may send too
        self._before = before  # raises to say no, once it is known who asks for what
        self._decoders = Decoders()
        self._encode = msgspec.json.Encoder().encode
        self._lanes = Lanes()

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive, Sender(send), self._guards)
        try:
            self._guards.check(request.headers, request.counts, unix=scope["client"] is None)
            request.sender.origin = request.headers.get("origin", "")
            await self._serve(request)
        except Exception as failure:
            if request.sender.status:  # in the middle of an answer: it ends here, and is seen to be cut off
                self._on_defect(failure)
                raise
            error = self._error(failure, request.route)
            # An unread body is not worth reading: the connection ends with the answer.
            await request.sender.json(error.status, self._encode(error.body), error.headers, close=not request.read)
        finally:
            self._note(request)

    async def _serve(self, request: Request) -> None:
        for name in (*SINGLE, *self._own_headers):
            if request.counts.get(name, 0) > 1:  # which of them would count?
                raise BadRequest(f"The header {name} was sent more than once.")
        path, shown = split_path(request.path)
        found = self.table.find(path)
        verbs, in_path = found if found is not None else ({}, {})
        if verbs:
            request.route = next(iter(verbs.values())).path
        if request.is_preflight:
            await request.sender.preflight(verbs, self._own_headers)
            return
        route = verbs.get(request.verb)
        caller = self._callers.of(route, shown, request.headers, request.peer)
        request.caller = caller.name
        if found is None:
            raise NoRoute("There is nothing here.")
        if route is None:
            raise WrongVerb("This path does not offer that method.", allow=", ".join(sorted(verbs)))
        params = self._decoders.params(route, {k: _part(v) for k, v in in_path.items()}, request.query)
        raw = await request.body(self.limits.body_bytes)
        body = self._decoders.body(route, raw)
        key = self._key(route, request.headers)
        digest = hashlib.sha256(raw).hexdigest() if key else ""
        prefix = request.path.removesuffix(path) if shown else ""
        call = HttpCall(self.state, self.table, route, caller, request.headers, prefix=prefix, key=key, digest=digest)
        self._before(call)
        await self._answer(await self._run(route, call, params, body), request)

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

    async def _held(self, held: Held, request: Request) -> Answer | None:
        """None when the client has gone."""
        waiting = asyncio.ensure_future(held.wait())
        take_back = request.link.on_lost(waiting.cancel)
        try:
            await asyncio.wait({waiting})
        finally:
            take_back()
            waiting.cancel()
        return None if waiting.cancelled() else waiting.result()

    async def _answer(self, outcome: Any, request: Request) -> None:
        if isinstance(outcome, Held):
            outcome = await self._held(outcome, request)
            if outcome is None:
                request.sender.status = GONE
                return
        if isinstance(outcome, Streamed):
            await self._stream(outcome, request)
        elif isinstance(outcome, Answer):
            await request.sender.json(outcome.status, self._encode(outcome.result), outcome.headers)
        else:
            await request.sender.json(200, self._encode(outcome))

    async def _stream(self, outcome: Streamed, request: Request) -> None:
        if len(self.streams) >= self.limits.streams:
            raise TooMany(f"{self.limits.streams} streams are open, and no more are served.", retry_after="5")
        sender = request.sender
        stream = Stream(sender.piece, request.link, beat_s=self.limits.heartbeat_s)
        self.streams[stream] = self.credential.generation if self.credential else 0
        try:
            await sender.begin_stream(outcome.headers)
            self._note(request)  # it may be open for days
            if request.verb_sent != "HEAD":
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
        if error.status == 500:
            self._on_defect(failure)
        return error

    def _note(self, request: Request) -> None:
        """Once for each request."""
        if not request.noted:
            request.noted = True
            self._access.line(
                face=self.name,
                caller=request.caller,
                verb=request.verb_sent,
                route=request.route,
                status=request.sender.status,
                peer=request.peer.address,
                took_ms=(time.perf_counter() - request.began) * 1000,
            )


def _part(value: str) -> str:
    """A part of the path as the client meant it; a slash inside it stays inside it."""
    try:
        return unquote(value, errors="strict")
    except UnicodeDecodeError:
        raise BadRequest("The path cannot be read.") from None
