"""One request in progress, as its handler sees it, and what a handler may return besides a plain result."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from msgspec import Struct

from quintet.rpc.http.routes import Route, RouteTable

if TYPE_CHECKING:
    from quintet.rpc.http.sse import Stream

S = TypeVar("S")


class Caller(Struct, frozen=True):
    """Who asks, as far as this floor can tell."""

    name: str  # holder, or nobody
    proof: str  # bearer | basic | path | none
    peer: str  # an address, or `unix`
    local: bool = False  # came from this machine, and no proxy says otherwise; grants nothing by itself


class HttpCall(Generic[S]):
    """`state` is what the face was made with: the engine as its protocol sees it."""

    __slots__ = ("_headers", "caller", "digest", "key", "prefix", "route", "state", "table")

    def __init__(
        self,
        state: S,
        table: RouteTable,
        route: Route,
        caller: Caller,
        headers: Mapping[str, str],
        *,
        prefix: str = "",
        key: str = "",
        digest: str = "",
    ) -> None:
        self.state = state
        self.table = table  # all routes of the face
        self.route = route
        self.caller = caller
        self.key = key  # Idempotency-Key, on routes that honour it
        self.digest = digest  # of the body that came with that key
        self.prefix = prefix  # what stood before the path, such as /t/<token>
        self._headers = headers

    def header(self, name: str) -> str:
        """By lower-case name; empty where it was not sent."""
        return self._headers.get(name, "")

    @property
    def wants_stream(self) -> bool:
        return "text/event-stream" in self.header("accept").lower()


class Answer(Struct, frozen=True):
    """A result with another status, or with headers."""

    result: Any
    status: int = 200
    headers: dict[str, str] = {}


class Held(Struct, frozen=True):
    """An answer that may take long. Once the client is gone nobody waits for it; what it waits for goes on."""

    wait: Callable[[], Coroutine[Any, Any, Answer]]


class Streamed(Struct, frozen=True):
    """Server-Sent Events. `fill` writes into the stream until it returns or the client is gone."""

    fill: Callable[[Stream], Awaitable[None]]
    headers: dict[str, str] = {}
