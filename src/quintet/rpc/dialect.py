"""How one protocol speaks JSON-RPC: its framing, and its words where the standard is silent."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from quintet.rpc.framing import BadFrame, Decoder
from quintet.rpc.messages import BadMessage, ErrorResponse, NullId

if TYPE_CHECKING:
    from quintet.rpc.connection import Connection


def _silent(what: str, about: object) -> None: ...


class Dialect(Struct, frozen=True, kw_only=True):
    """How a protocol frames, and what it says where JSON-RPC leaves the words to it."""

    decoder: Callable[[], Decoder]
    encode: Callable[[bytes], bytes]
    bad: Callable[[BadFrame | BadMessage], ErrorResponse | None]  # None: silence
    null_id: NullId = "refuse"
    batch: Callable[["Connection[Any]", bytes], Awaitable[None]] | None = None  # None: an array goes to `bad`
    # Told when the input is over: calls still run, and what they send still goes out.
    on_end: Callable[["Connection[Any]"], Awaitable[None]] | None = None
    grace_s: float = 1.0  # how long calls may go on after the input's end
    log: Callable[[str, object], None] = _silent
