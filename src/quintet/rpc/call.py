"""One call in progress, as its handler sees it: who called, how to answer first, notify, ask back."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from msgspec import UNSET

from quintet.rpc.messages import Id
from quintet.rpc.rows import Row

if TYPE_CHECKING:
    from quintet.rpc.connection import Connection

S = TypeVar("S")
R = TypeVar("R")


class Reply(Generic[R]):
    """Returned by a handler whose work goes on after its answer.

    `then` is started only when the reply has its place in the ordered writer, so nothing it sends can come
    before the reply. It is a function, not a coroutine: if the reply cannot be sent, it never exists.
    """

    __slots__ = ("result", "then")

    def __init__(self, result: R, then: Callable[[], Awaitable[None]] | None = None) -> None:
        self.result = result
        self.then = then


class Call(Generic[S]):
    """`id` is None for a notification too; `expects_reply` tells them apart."""

    __slots__ = ("_task", "cancelled", "connection", "expects_reply", "id", "method", "row")

    def __init__(
        self, connection: "Connection[S]", method: str, row: Row | None, id: Id, *, expects_reply: bool
    ) -> None:
        self.connection = connection
        self.method = method
        self.row = row
        self.id = id
        self.expects_reply = expects_reply
        self.cancelled = False
        self._task: asyncio.Task[None] | None = None

    @property
    def state(self) -> S:
        """What the protocol keeps per connection."""
        return self.connection.state

    def cancel(self) -> None:
        """Cancel the handler. It is still answered: by what it returns after all, or by the error map."""
        self.cancelled = True
        if self._task is not None:
            self._task.cancel()

    def begin(self) -> None:
        """The task's first step, where a cancel that came before it is honoured."""
        self._task = asyncio.current_task()
        if self.cancelled:
            raise asyncio.CancelledError

    def finish(self) -> None:
        """The outcome is known: a cancel from now on is too late, so that no call is answered twice."""
        if self._task is not None and self.cancelled:
            self._task.uncancel()
        self._task = None

    async def notify(self, method: str, params: Any = UNSET) -> None:
        await self.connection.notify(method, params)

    def offer(self, method: str, params: Any = UNSET) -> bool:
        return self.connection.offer(method, params)

    async def ask(self, method: str, params: Any = UNSET, *, timeout_s: float | None = None, result: Any = Any) -> Any:
        return await self.connection.ask(method, params, timeout_s=timeout_s, result=result)
