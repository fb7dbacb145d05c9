"""Tools as the engine sees them: what they are called, what they would do, and what came of it."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from quintet.domain.item import ResultStatus


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


class ToolOutcome(msgspec.Struct, frozen=True, omit_defaults=True):
    text: str
    status: ResultStatus = ResultStatus.OK
    message: str = ""
    display: tuple[dict[str, Any], ...] = ()
    changed_files: tuple[str, ...] = ()
    diff: str = ""


class Todo(msgspec.Struct, frozen=True):
    text: str
    status: str = "pending"  # pending | in_progress | done
