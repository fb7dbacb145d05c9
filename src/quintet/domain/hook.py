"""Hooks: moments at which something outside may look at what happens, and at some of them say no."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec


class HookEvent(StrEnum):
    PRE_TOOL_USE = "PreToolUse"
    POST_TOOL_USE = "PostToolUse"
    POST_TOOL_USE_FAILURE = "PostToolUseFailure"
    USER_PROMPT_SUBMIT = "UserPromptSubmit"
    STOP = "Stop"
    STOP_FAILURE = "StopFailure"
    SESSION_START = "SessionStart"
    SESSION_END = "SessionEnd"
    SUBAGENT_START = "SubagentStart"
    SUBAGENT_STOP = "SubagentStop"
    PRE_COMPACT = "PreCompact"
    POST_COMPACT = "PostCompact"
    NOTIFICATION = "Notification"


class HookSubscription(msgspec.Struct, frozen=True):
    """A wish to be told. The matcher is searched in the event's target: a tool's name, a reason, an agent."""

    id: str
    event: HookEvent
    matcher: str = ""
    timeout_s: float = 30.0


class HookCall(msgspec.Struct, frozen=True):
    event: HookEvent
    target: str
    data: dict[str, Any]


class HookVerdict(msgspec.Struct, frozen=True):
    """Silence, a time-out and an error all mean go on."""

    block: bool = False
    reason: str = ""
