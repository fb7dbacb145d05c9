"""One connection: reader, dispatch and writer, and the questions asked back to the other side.

The reader never waits for the writer (a full pipe is no deadlock), short of a bound on what is owed to one
reader.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, Generic, Protocol, TypeVar

from msgspec import UNSET

from quintet.rpc import messages
from quintet.rpc.call import Call
from quintet.rpc.dialect import Dialect
from quintet.rpc.dispatch import Dispatcher
from quintet.rpc.faults import Ended
from quintet.rpc.framing import BadFrame, Frame
from quintet.rpc.messages import (
    BadMessage,
    ErrorResponse,
    Id,
    Notification,
    Request,
    Response,
    WireError,
)
from quintet.rpc.questions import Questions
from quintet.rpc.writer import Sink, Writer

S = TypeVar("S")
_PATIENCE_S = 0.05
_TOGETHER = 64 * 1024


class Source(Protocol):
    async def read(self) -> bytes:
        """Some bytes; none at the end."""

    async def close(self) -> None: ...


class Connection(Generic[S]):
    def __init__(
        self,
        source: Source,
        sink: Sink,
        dispatcher: Dispatcher,
        dialect: Dialect,
        *,
        state: S,
        role: str = "",
    ) -> None:
        self.state, self.role = state, role
        self.writer = Writer(sink)
        self.log = dialect.log
        self.ending = False  # set when calls are being cancelled: they are no longer answered
        self._source, self._dispatcher, self._dialect = source, dispatcher, dialect
        self._calls: dict[asyncio.Task[None], Call[S]] = {}
        self._others: set[asyncio.Task[None]] = set()  # `then` work
        self._owed: set[asyncio.Task[None]] = set()  # answers that found no room at once
        self._questions = Questions()
        self._slack = asyncio.Event()  # something owed was settled
        self._saturated = False  # calls are at their bound and did not move for a moment
        self._over = asyncio.Event()

    # What handlers and protocols use.

    async def notify(self, method: str, params: Any = UNSET) -> None:
        await self._send(messages.encode_notification(method, params))

    async def notify_all(self, method: str, many: Sequence[Any]) -> None:
        """One notification for each of the params, in order. Small ones lie side by side and take one place."""
        frame = self._dialect.encode
        frames = [frame(body) for body in messages.encode_notifications(method, many)]
        if sum(map(len, frames)) > _TOGETHER:
            for each in frames:
                await self.writer.send(each)
        elif frames:
            await self.writer.send(b"".join(frames), len(frames))

    def offer(self, method: str, params: Any = UNSET) -> bool:
        """For streamed events. False when the reader lags: then `cut` with a marker it can resume from."""
        if self.writer.lagging:
            return False  # without the cost of encoding what will not be sent
        return self.writer.offer(self._dialect.encode(messages.encode_notification(method, params)))

    async def cut(self, method: str, params: Any = UNSET) -> None:
        await self.writer.cut(self._dialect.encode(messages.encode_notification(method, params)))

    async def ask(
        self,
        method: str,
        params: Any = UNSET,
        *,
        timeout_s: float | None = None,
        result: Any = Any,
        id: str | int | None = None,
    ) -> Any:
        """A request to the other side. Raises TimeoutError, Remote, BadReply, or Ended when it is over."""
        if self.writer.closed:
            raise Ended("the connection is over")
        with self._questions.open(id) as question:
            async with asyncio.timeout(timeout_s):
                await self._send(messages.encode_request(question.id, method, params))
                return await question.answer(result)

    async def post(self, id: str | int, method: str, params: Any = UNSET) -> None:
        """A request whose answer nobody waits for: one that is told again."""
        await self._send(messages.encode_request(id, method, params))

    def find(self, id: Id) -> Call[S] | None:
        """The call in progress with this id, the latest if the client used one twice."""
        for call in reversed(self._calls.values()):
            if call.expects_reply and call.id == id and type(call.id) is type(id):
                return call
        return None

    def end(self) -> None:
        """Stop reading and let `serve` come to its end."""
        self._over.set()

    # What dispatch uses.

    async def reply(self, id: Id, result: Any) -> None:
        await self._send(messages.encode_result(id, result))

    async def refuse(self, id: Id, error: WireError) -> None:
        await self._send(messages.encode_error(id, error))

    def start(self, call: Call[S], work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._calls[task] = call
        task.add_done_callback(self._finished)
        return task

    def background(self, then: Callable[[], Awaitable[None]]) -> None:
        async def work() -> None:
            try:
                await then()
            except Exception as failure:
                self.log("failed after reply", failure)

        if not self.ending:
            task = asyncio.get_running_loop().create_task(work())
            self._others.add(task)
            task.add_done_callback(self._others.discard)

    # The life of the connection.

    async def serve(self) -> None:
        """Until the input ends, `end` is called or the output breaks; then an orderly, bounded end."""
        loop = asyncio.get_running_loop()
        watch = [loop.create_task(work) for work in (self._read(), _wait(self._over), _wait(self.writer.broken))]
        try:
            await asyncio.wait(watch, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._over.set()
            await _stop(watch)
            await self._finish()
        if not watch[0].cancelled() and (failure := watch[0].exception()) is not None:
            raise failure

    async def _read(self) -> None:
        decoder = self._dialect.decoder()
        while data := await self._more():
            for item in decoder.feed(data):
                if not await self._take(item):
                    return
            await asyncio.sleep(0)  # a fast sender must not keep its own calls from running
        for item in decoder.eof():
            await self._take(item)

    async def _more(self) -> bytes:
        try:
            return await self._source.read()
        except OSError as failure:
            self.log("input failed", failure)
            return b""  # what cannot be read has ended

    async def _take(self, item: Frame | BadFrame) -> bool:
        if isinstance(item, BadFrame):
            self._answer(self._dialect.bad(item))
            return not item.fatal
        message = messages.decode(item.body, null_id=self._dialect.null_id)
        if isinstance(message, BadMessage):
            if message.reason == "batch" and self._dialect.batch is not None:
                batch, body = self._dialect.batch, item.body
                self._owe(lambda: batch(self, body))
            else:
                self._answer(self._dialect.bad(message))
        elif isinstance(message, Response | ErrorResponse):
            if not self._questions.settle(message):
                self.log("answer nobody waits for", message)
        else:
            if len(self._calls) >= self._dispatcher.max_calls and not self._saturated:
                await self._patience()
            self._begin(message)
        # Calls and unsent answers together are bounded; only there do we stop reading.
        while len(self._calls) + len(self._owed) >= 2 * self._dispatcher.max_calls:
            self._slack.clear()
            await self._slack.wait()
        return True

    async def _patience(self) -> None:
        """A burst of quick calls is no overload: wait a moment for a place, once until one comes free."""
        try:
            async with asyncio.timeout(_PATIENCE_S):
                while len(self._calls) >= self._dispatcher.max_calls:
                    self._slack.clear()
                    await self._slack.wait()
        except TimeoutError:
            self._saturated = True

    def _begin(self, message: Request | Notification) -> None:
        is_request = isinstance(message, Request)
        id_ = message.id if isinstance(message, Request) else None
        row = self._dispatcher.table.get(message.method)
        call = Call(self, message.method, row, id_, expects_reply=is_request)
        error = self._dispatcher.start(call, message, len(self._calls))
        if error is not None:
            self._answer(ErrorResponse(id_, error))

    def _answer(self, answer: ErrorResponse | None) -> None:
        if answer is None or self.writer.closed:
            return
        frame = self._dialect.encode(messages.encode_error(answer.id, answer.error))
        if not self.writer.try_send(frame):
            self._owe(lambda: self.writer.send(frame))

    def _owe(self, work: Callable[[], Awaitable[None]]) -> None:
        task = asyncio.get_running_loop().create_task(self._quietly(work))
        self._owed.add(task)
        task.add_done_callback(self._finished)

    async def _quietly(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except Ended:
            pass
        except Exception as failure:
            self.log("failed answer", failure)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._calls.pop(task, None)
        self._owed.discard(task)
        self._saturated = False
        self._slack.set()

    async def _send(self, body: bytes) -> None:
        await self.writer.send(self._dialect.encode(body))

    async def _finish(self) -> None:
        self._questions.end()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._dialect.grace_s):
                if (on_end := self._dialect.on_end) is not None:
                    await self._quietly(lambda: on_end(self))
                while not self.writer.closed and (owed := [*self._calls, *self._owed]):
                    await asyncio.wait(owed)
        self.ending = True
        await _stop([*self._calls, *self._others, *self._owed])
        await self.writer.close(self._dialect.grace_s)
        await self._source.close()


async def _wait(event: asyncio.Event) -> None:
    await event.wait()


async def _stop(tasks: list[asyncio.Task[None]], timeout_s: float = 1.0) -> None:
    """Cancel and wait, but not for ever: a handler that swallows its cancel does not hold up the end."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=timeout_s)
