"""The audit chain as others see it: its rows, and what a look at all of it found. Pure; the journal writes it."""

from __future__ import annotations

import msgspec

BEGUN = "chain.begun"  # the first row of each journal; events before its number were never part of the chain


class AuditRow(msgspec.Struct, frozen=True):
    """One link: which event it stands for, that event's digest, and what binds it to the row before."""

    number: int
    seq: int
    kind: str
    at_ms: int
    thread: str
    digest: bytes
    link: bytes

    @property
    def name(self) -> str:
        """What a person notes to ask later whether this row is still the same."""
        return f"{self.number}:{self.link.hex()}"


class Flaw(msgspec.Struct, frozen=True):
    """What is wrong at one place of the chain, in words."""

    number: int
    words: str


class Verified(msgspec.Struct, frozen=True):
    rows: int
    head: AuditRow | None
    flaws: tuple[Flaw, ...] = ()
    more_flaws: int = 0  # beyond those listed

    @property
    def whole(self) -> bool:
        return not self.flaws
