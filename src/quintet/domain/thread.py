"""Thread: a durable conversation, its settings, and the folded view of what is visible in it."""

from __future__ import annotations

from typing import Any

import msgspec

from quintet.domain.compaction import CompactionRecord
from quintet.domain.memory import Recall
from quintet.domain.notice import Notice
from quintet.domain.turn import TurnState
from quintet.domain.view import View


class ThreadSettings(msgspec.Struct, frozen=True, omit_defaults=True):
    """What travels with the thread. Mode and tools do not: they come from whoever starts a turn."""

    cwd: str
    agent: str = ""
    model: str = ""  # "provider/model", empty = the runner's default
    plan_mode: bool = False
    directories: tuple[str, ...] = ()  # beside the workspace, added by a person: absolute, without links


class Thread(msgspec.Struct, frozen=True, omit_defaults=True):
    id: str
    root: str  # its own id unless it is a subagent's thread
    project: str
    profile: str
    settings: ThreadSettings
    created_ms: int
    updated_ms: int
    title: str = ""
    title_final: bool = False  # a person renamed it: nothing automatic touches the title again
    parent: str = ""
    parent_call: str = ""
    forked_from: str = ""
    depth: int = 0
    last_ordinal: int = 0
    owner: str = ""  # the process running a turn here now
    epoch: int = 0  # raised by every claim; writes of an older epoch are refused
    active_turn: str = ""
    view: View = View()
    compaction: CompactionRecord = CompactionRecord()
    recalled: Recall | None = None  # what came to mind when the last turn began that has a memory
    deleted_ms: int = 0
    metadata: dict[str, Any] = {}  # a client's own notes; nothing here reads them
    ended_as: TurnState | None = None  # how its last turn ended
    forked_at: int = 0  # the last item that was copied
    notices: tuple[Notice, ...] = ()  # posted, and not given to the model yet


class ThreadQuery(msgspec.Struct, frozen=True):
    """A page of threads, newest activity first; `before` is the key of the last row of the page before."""

    project: str = ""
    children: bool = False
    deleted: bool = False
    before: tuple[int, str] | None = None  # (updated_ms, id)
    limit: int = 50


class Handle(msgspec.Struct, frozen=True):
    """The name an outside client gave a thread, unique within its protocol and scope while live."""

    protocol: str
    scope: str
    external_id: str
    thread: str = ""
    deleted_ms: int = 0


class SearchHit(msgspec.Struct, frozen=True):
    thread: str
    title: str
    ordinal: int
    item: str
    at_ms: int
    snippet: str
    hidden: bool = False


TITLE_LENGTH = 80


def title_from(text: str) -> str:
    """The first line with words in it, at most eighty characters; no model is asked."""
    for line in text.splitlines():
        words = " ".join(line.split())
        if words:
            return words if len(words) <= TITLE_LENGTH else words[: TITLE_LENGTH - 1] + "…"
    return ""
