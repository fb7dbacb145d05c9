"""Turn: one user input until the agent rests. It ends exactly once."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from quintet.domain.errors import ErrorInfo
from quintet.domain.item import Part
from quintet.domain.principal import Principal


class TurnState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"

    @property
    def ended(self) -> bool:
        return self not in (TurnState.QUEUED, TurnState.RUNNING)


class Mode(StrEnum):
    """How much a turn may do without asking, strictest first."""

    READ_ONLY = "read-only"
    ASK = "ask"
    ALLOW = "allow"


def strictest(*modes: Mode | None) -> Mode:
    """The strictest of the modes that are set; with none set, ask."""
    order = list(Mode)
    given = [m for m in modes if m is not None]
    return min(given, key=order.index) if given else Mode.ASK


class WhenBusy(StrEnum):
    QUEUE = "queue"
    REJECT = "reject"
    STEER = "steer"


class Turn(msgspec.Struct, frozen=True, omit_defaults=True):
    id: str
    thread: str
    state: TurnState
    runner: str  # the process that accepted it; only that one runs it
    mode: Mode
    principal: Principal
    parts: tuple[Part, ...]
    queued_ms: int
    started_ms: int = 0
    finished_ms: int = 0
    error: ErrorInfo | None = None
    cancelling: bool = False  # its owner has accepted a cancel or is shutting down
    for_turn: str = ""  # of a subagent: the turn of the parent thread whose call it works for
    for_call: str = ""
    background: bool = False  # that call has returned at once: its end is a notice
    agent: str = ""  # who is to work in it instead of the thread's own
    aside: str = ""  # a question beside the thread: the turn has no input and is there to have it answered
    input: int = 0  # ordinal of the item that holds its parts, once it was begun


class Lease(msgspec.Struct, frozen=True):
    """The right to write a thread's turn: valid while the thread's owner and epoch are still these."""

    thread: str
    turn: str
    owner: str
    epoch: int


class ClientKey(msgspec.Struct, frozen=True):
    """A client's idempotency key: the same key and body fold into one turn for 24 hours."""

    scope: str  # principal and, where the client named one, thread
    key: str
    digest: str  # of the body
