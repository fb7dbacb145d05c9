"""Event -> 0..n frames: a pure projection."""

from __future__ import annotations

from collections.abc import Sequence

from quintet.domain.event import Event
from quintet.protocols.knp.frames import Frame

DEFAULT = "default"


async def project(events: Sequence[Event]) -> list[list[Frame]]:
    return [[Frame(e.kind, e.payload, DEFAULT, e.at_ms, e.thread, e.root)] for e in events]
