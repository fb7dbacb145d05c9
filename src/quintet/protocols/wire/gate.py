"""Which version brought which message, and what a client that declares less is not sent.

Only what is harmless to miss is left out. Questions, plan mode and hook requests are not: what the client says it can
do decides about those.
"""

from __future__ import annotations

OLDEST = (1, 1)
SINCE: dict[str, tuple[int, int]] = {
    "TurnBegin": (1, 1),
    "StepBegin": (1, 1),
    "StepInterrupted": (1, 1),
    "CompactionBegin": (1, 1),
    "CompactionEnd": (1, 1),
    "StatusUpdate": (1, 1),
    "ContentPart": (1, 1),
    "ToolCall": (1, 1),
    "ToolCallPart": (1, 1),
    "ToolResult": (1, 1),
    "ApprovalResponse": (1, 1),
    "SubagentEvent": (1, 1),
    "ApprovalRequest": (1, 1),
    "ToolCallRequest": (1, 1),
    "TurnEnd": (1, 2),
    "QuestionRequest": (1, 4),
    "SteerInput": (1, 5),
    "PlanDisplay": (1, 7),
    "HookRequest": (1, 7),
    "HookTriggered": (1, 7),
    "HookResolved": (1, 7),
    # In no version's notes; clients of 1.9 have been seen to know them.
    "MCPLoadingBegin": (1, 9),
    "MCPLoadingEnd": (1, 9),
    "BtwBegin": (1, 9),
    "BtwEnd": (1, 9),
    "StepRetry": (1, 10),
    "Notification": (1, 10),  # in no notes either; no client of an older version is known to take it
}
# The Node SDK declares 1.7 and shows a PlanDisplay as an error; the request behind it shows the plan, too.
TAKEN_SINCE = SINCE | {"PlanDisplay": (1, 8)}
DROPPED = frozenset(
    {
        "StepRetry",
        "HookTriggered",
        "HookResolved",
        "MCPLoadingBegin",
        "MCPLoadingEnd",
        "Notification",
        "PlanDisplay",
        "BtwBegin",
        "BtwEnd",
        "SteerInput",
    }
)


class Gate:
    """What one client is sent. A client that has said nothing is of the oldest version."""

    def __init__(self, *, shut: bool = True) -> None:
        self._shut = shut
        self._version = OLDEST
        self._steers = False

    def declared(self, version: str) -> None:
        self._version = _numbers(version)

    def steers(self) -> None:
        """The client steers by itself, so it knows what comes of that."""
        self._steers = True

    def lets(self, kind: str) -> bool:
        if not self._shut or kind not in DROPPED or (kind == "SteerInput" and self._steers):
            return True
        return self._version >= TAKEN_SINCE[kind]

    def ends_once(self) -> bool:
        """TurnEnd was new in 1.2. The Go SDK, which declares that, takes the first for the last; a second TurnBegin
        ends the program it is part of, and what comes behind its cancel but for the end is an unexpected end to it."""
        return self._shut and self._version == SINCE["TurnEnd"]


def _numbers(version: str) -> tuple[int, int]:
    """Compared as numbers: 1.10 comes after 1.9. What is no version counts as the oldest."""
    major, _, minor = version.strip().partition(".")
    if not (major.isascii() and major.isdigit() and minor.isascii() and minor.isdigit()):
        return OLDEST
    return int(major[:9]), int(minor[:9])
