"""Tools as the engine sees them: what they are called, what they would do, and what came of it."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from quintet.domain.item import Media, ResultStatus
from quintet.domain.turn import Mode

RESULT_LIMIT = 64_000


class Effect(StrEnum):
    """What a call can change, which is what policy asks about."""

    NONE = "none"  # reads, thinks, asks; its outcome can be lost without harm
    WRITE = "write"
    EXECUTE = "execute"
    NETWORK = "network"


class ToolSpec(msgspec.Struct, frozen=True):
    name: str
    description: str
    parameters: dict[str, Any]  # JSON Schema
    effect: Effect = Effect.NONE
    external: bool = False  # lives in the client that started the turn
    own: str = ""  # the tool's own name, where it is offered under another

    @property
    def known_as(self) -> str:
        """By which rules, grants, agents and the person's hooks know it, whatever the model calls it."""
        return self.own or self.name


class Confine(StrEnum):
    """How the person who starts a turn wants its commands confined."""

    AUTO = "auto"  # as the mode says
    READ_ONLY = "ro"
    OFF = "off"  # not at all: the same as where no sandbox works


class CallScope(msgspec.Struct, frozen=True):
    """Where and for whom a call would run. Comes from the thread and its starter, never from the model."""

    cwd: str
    thread: str = ""
    mode: Mode = Mode.ASK
    confine: Confine = Confine.AUTO
    planning: bool = False  # the thread is in plan mode
    directories: tuple[str, ...] = ()  # the thread's, beside its workspace


class Prepared(msgspec.Struct, frozen=True, omit_defaults=True):
    """A checked call, before anything happened: what a person is shown and what policy judges."""

    title: str  # one line: "run pytest -q", "edit src/app.py"
    arguments: dict[str, Any]
    command: str = ""  # the whole shell command, for Effect.EXECUTE
    cwd: str = ""
    paths: tuple[str, ...] = ()  # absolute, resolved, for Effect.WRITE and reads
    diff: str = ""  # what a write would change
    digest: str = ""  # binds an approval to exactly this
    notes: tuple[str, ...] = ()
    confined: bool = True  # False: nothing but approval stands between this command and the machine
    unconfined: str = ""  # why not, and what would change that
    network: bool = False  # the command asks for network where its mode has none
    scripts: tuple[str, ...] = ()  # of each simple command of the line: digest of the files it runs, or nothing
    always_ask: str = ""  # why this call needs somebody's yes in every mode, unless a rule names it
    content: tuple[str, ...] = ()  # (kind, name, digest) of what somebody else wrote: a grant binds to the digest
    plan: str = ""  # what a person is asked to agree to before plan mode ends


class ToolOutcome(msgspec.Struct, frozen=True, omit_defaults=True):
    text: str
    status: ResultStatus = ResultStatus.OK
    message: str = ""
    display: tuple[dict[str, Any], ...] = ()
    changed_files: tuple[str, ...] = ()
    diff: str = ""
    images: tuple[Media, ...] = ()
    limit: int = RESULT_LIMIT  # characters of the text that the model gets at once; the whole of it is kept
    facts: dict[str, Any] = {}  # for whoever says it in other words (engine/spelling.py); not kept


class Todo(msgspec.Struct, frozen=True):
    text: str
    status: str = "pending"  # pending | in_progress | done
