"""Command: what another process asks of the one that owns a turn. Answered on its outcome, not on its arrival."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from quintet.domain.item import Part
from quintet.domain.principal import Principal
from quintet.domain.turn import Mode


class CommandKind(StrEnum):
    STEER = "steer"
    CANCEL = "cancel"
    SET_MODE = "set_mode"


class Outcome(StrEnum):
    ACCEPTED = "accepted"
    TURN_OVER = "turn_over"
    REFUSED = "refused"
    OWNER_GONE = "owner_gone"


class Command(msgspec.Struct, frozen=True, omit_defaults=True):
    id: str
    thread: str
    turn: str
    kind: CommandKind
    principal: Principal
    posted_ms: int
    parts: tuple[Part, ...] = ()  # of a steer
    mode: Mode | None = None  # of set_mode, and of a steer by someone stricter
    reason: str = ""
    outcome: Outcome | None = None
    detail: str = ""
