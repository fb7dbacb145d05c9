"""Hook: somebody's word at a fixed moment of a turn: a command of the person's, or a client that wants to be asked.

Pure. Whether a hook is due is decided here; asking it is the engine's, running it the workspace's.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from quintet.domain.hook_matcher import Matcher
from quintet.domain.tool import Confine
from quintet.domain.turn import Mode

TIMEOUT_S = 30.0
TIMEOUT_MOST_S = 600.0
REASON_AT_MOST = 4_000  # characters of a reason that anybody is told


class HookEvent(StrEnum):
    """The moments. Their words are those that published clients know; ours differ where the core's nouns do."""

    BEFORE_TOOL = "PreToolUse"
    AFTER_TOOL = "PostToolUse"
    AFTER_TOOL_FAILED = "PostToolUseFailure"
    INPUT_GIVEN = "UserPromptSubmit"
    TURN_RESTS = "Stop"
    TURN_FAILED = "StopFailure"
    THREAD_BEGUN = "SessionStart"
    THREAD_LEFT = "SessionEnd"
    SUBAGENT_STARTED = "SubagentStart"
    SUBAGENT_RESTS = "SubagentStop"
    BEFORE_COMPACTION = "PreCompact"
    AFTER_COMPACTION = "PostCompact"
    NOTIFIED = "Notification"


# Where a block means something; at the other moments there is nothing left to be held back.
BLOCKING = frozenset(
    {
        HookEvent.BEFORE_TOOL,
        HookEvent.AFTER_TOOL,
        HookEvent.AFTER_TOOL_FAILED,
        HookEvent.INPUT_GIVEN,
        HookEvent.TURN_RESTS,
        HookEvent.SUBAGENT_STARTED,
        HookEvent.BEFORE_COMPACTION,
    }
)


class HookAction(StrEnum):
    ALLOW = "allow"
    BLOCK = "block"


class Hook(msgspec.Struct, frozen=True):
    """A command to be run at a moment."""

    event: HookEvent
    command: str
    matcher: Matcher
    source: str  # where it is written, as a person would look for it
    timeout_s: float = TIMEOUT_S
    of_project: bool = False  # it came with a checkout: never run before somebody agreed to exactly this
    spelled: bool = False  # written for another program: it knows tools by the names that program's clients use


class HookSubscription(msgspec.Struct, frozen=True):
    """A client that wants to be asked at a moment, in the turns it starts."""

    id: str
    event: HookEvent
    matcher: Matcher
    timeout_s: float = TIMEOUT_S

    @property
    def source(self) -> str:
        return f"the client's hook {self.id}"


class HookScope(msgspec.Struct, frozen=True):
    """Where and for whom a hook runs. Comes from the thread and its starter."""

    cwd: str
    thread: str
    mode: Mode
    confine: Confine = Confine.AUTO


class HookVerdict(msgspec.Struct, frozen=True):
    """What a hook said. One that could not say anything allows, and `problem` tells why it could not."""

    blocks: bool = False
    reason: str = ""
    problem: str = ""


ALLOWED = HookVerdict()


def blocked(reason: str, source: str) -> HookVerdict:
    """A block has words, also where its hook had none."""
    words = reason.strip() or f"blocked by {source}"
    if len(words) > REASON_AT_MOST:
        words = f"{words[:REASON_AT_MOST]} [cut: {len(words)} characters]"
    return HookVerdict(blocks=True, reason=words)


FIELDS_AT_MOST = 200_000  # characters of one text that a hook is given


def bounded(fields: dict[str, Any]) -> dict[str, Any]:
    """What a hook is given, with very long texts cut and that said, in the text and beside it."""
    cut: list[str] = []
    kept = {name: _bounded(value, name, cut) for name, value in fields.items()}
    return {**kept, "truncated": sorted(set(cut))} if cut else kept


def _bounded(value: Any, name: str, cut: list[str]) -> Any:
    if isinstance(value, str) and len(value) > FIELDS_AT_MOST:
        cut.append(name)
        return f"{value[:FIELDS_AT_MOST]} [cut: {len(value)} characters]"
    if isinstance(value, dict):
        return {key: _bounded(inner, name, cut) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_bounded(inner, name, cut) for inner in value]
    return value
