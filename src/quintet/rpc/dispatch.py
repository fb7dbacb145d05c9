"""Messages to handlers: one task per call, order inside a scope, every failure through the error map.

Knows rows and calls; no method by name, no code, no bytes.
"""

import asyncio
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Any

import msgspec

from quintet.rpc.call import Call, Reply
from quintet.rpc.faults import BadParams, Ended, Overloaded, Refused, UnknownMethod
from quintet.rpc.messages import Notification, Request, WireError
from quintet.rpc.rows import Row, Table

# Total: any exception, with the method it came from, has a wire error.
Errors = Callable[[BaseException, str], WireError]
# Raises to say no; runs before the params are looked at.
Guard = Callable[[Call[Any], Row], None]
MAX_CALLS = 256


def guard_by_role(call: Call[Any], row: Row) -> None:
    if row.who and call.connection.role not in row.who:
        raise Refused(row.name, call.connection.role)


class Lanes:
    """Who waits behind whom. Share one between connections to keep order across them."""

    def __init__(self) -> None:
        self._tails: dict[Hashable, asyncio.Future[None]] = {}

    def enter(self, key: Hashable) -> "Lane":
        before = self._tails.get(key)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._tails[key] = done
        done.add_done_callback(lambda _: self._forget(key, done))
        return Lane(before, done)

    def _forget(self, key: Hashable, done: asyncio.Future[None]) -> None:
        if self._tails.get(key) is done:
            del self._tails[key]

    def __len__(self) -> int:
        return len(self._tails)


class Lane:
    """One place in a queue, taken when the message was read, not when its task first ran."""

    __slots__ = ("_before", "_done")

    def __init__(self, before: asyncio.Future[None] | None, done: asyncio.Future[None]) -> None:
        self._before = before
        self._done = done

    async def wait(self) -> None:
        if self._before is not None:
            await asyncio.shield(self._before)

    def leave(self) -> None:
        """Let the next one go; if this one gave up while waiting, only once the one before it is through."""
        if self._done.done():
            return
        if self._before is None or self._before.done():
            self._done.set_result(None)
        else:
            self._before.add_done_callback(lambda _: self.leave())


class Dispatcher:
    """The table of one protocol, ready to run calls for any number of connections."""

    def __init__(
        self,
        table: Table,
        errors: Errors,
        *,
        guard: Guard = guard_by_role,
        max_calls: int = MAX_CALLS,
        lanes: Lanes | None = None,
    ) -> None:
        self.table = table
        self.max_calls = max_calls
        self._errors = errors
        self._guard = guard
        self._lanes = lanes or Lanes()
        self._decoders: dict[str, msgspec.json.Decoder[Any]] = {}

    def error(self, failure: BaseException, method: str) -> WireError:
        try:
            return self._errors(failure, method)
        except Exception:
            return WireError(-32603, "Internal error")  # a map that is not total must not leave a client waiting

    def start(self, call: Call[Any], message: Request | Notification, running: int) -> WireError | None:
        """Decide what is decided on reading and start the task, or return the error. Never waits."""
        try:
            row = self._find(call, message)
            if running >= self.max_calls and not row.urgent:
                raise Overloaded(self.max_calls)
            self._guard(call, row)
            params = self._decode(row, message)
            key = row.scope(params) if row.scope is not None else None
        except Exception as failure:
            if call.expects_reply:
                return self.error(failure, call.method)
            call.connection.log("dropped notification", failure)
            return None
        lane = self._lanes.enter(key) if key is not None else None
        task = call.connection.start(call, self._run(call, row, params, lane))
        if lane is not None:
            # Not in the coroutine: one that is cancelled before its first step never reaches its own
            # `finally`.
            task.add_done_callback(lambda _: lane.leave())
        return None

    def _find(self, call: Call[Any], message: Request | Notification) -> Row:
        row = call.row
        wrong = "notification" if call.expects_reply else "request"
        if row is None or row.form == wrong:
            raise UnknownMethod(message.method)
        return row

    def _decode(self, row: Row, message: Request | Notification) -> Any:
        decoder = self._decoders.get(row.name)
        if decoder is None:
            # Made at the first call: building all of them would cost every start.
            decoder = self._decoders[row.name] = msgspec.json.Decoder(row.params)
        # Measured before compared: params may be a hundred megabytes, and comparing would copy them.
        raw = memoryview(message.params)
        empty = raw.nbytes == 0 or (raw.nbytes == 4 and raw.tobytes() == b"null")
        try:
            return decoder.decode(b"{}" if empty else raw)
        except (ValueError, RecursionError) as why:
            raise BadParams(row.name, str(why)) from why

    async def _run(self, call: Call[Any], row: Row, params: Any, lane: Lane | None) -> None:
        try:
            call.begin()
            if lane is not None:
                await lane.wait()
            outcome = await row.handler(call, params)
            call.finish()
            reply = outcome if isinstance(outcome, Reply) else Reply(outcome)
            if call.expects_reply:
                await call.connection.reply(call.id, reply.result)
            if reply.then is not None:
                call.connection.background(reply.then)
        except asyncio.CancelledError as failure:
            if call.connection.ending or not call.cancelled:
                raise
            call.finish()
            await self._fail(call, failure)
        except Exception as failure:
            call.finish()
            await self._fail(call, failure)

    async def _fail(self, call: Call[Any], failure: BaseException) -> None:
        if not call.expects_reply:
            call.connection.log("failed notification", failure)
            return
        with suppress(Ended):  # then nobody is left to answer
            await call.connection.refuse(call.id, self.error(failure, call.method))
