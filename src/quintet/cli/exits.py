"""Exit codes: what a script may rely on. One table from error codes to numbers."""

from __future__ import annotations

from quintet.domain.errors import ErrorInfo
from quintet.domain.turn import TurnState

DONE = 0
FAILED = 1
USAGE = 2
DENIED = 3
BUDGET = 4
PROVIDER = 5
STORAGE = 6
NO_SERVER = 7
TIMEOUT = 124
INTERRUPTED = 130

MEANINGS = {
    DONE: "done",
    FAILED: "failed; the line on stderr says why and what to do",
    USAGE: "the command line, the prompt or config.toml is wrong; nothing was changed",
    DENIED: "approval was needed and nobody gave it",
    BUDGET: "a budget is spent; what was done until then is kept",
    PROVIDER: "the model or its configuration failed",
    STORAGE: "storage is full, read-only, damaged or of another version",
    NO_SERVER: "a server is needed and none runs; `quintet serve` starts one",
    TIMEOUT: "the time limit was reached",
    INTERRUPTED: "cancelled or interrupted",
}

BY_CODE = {
    "not_found": FAILED,
    "invalid": USAGE,
    "busy": FAILED,
    "denied": DENIED,
    "drifted": DENIED,
    "already_resolved": FAILED,
    "turn_over": FAILED,
    "cancelled": INTERRUPTED,
    "interrupted": INTERRUPTED,
    "not_configured": PROVIDER,
    "provider_failed": PROVIDER,
    "timed_out": TIMEOUT,
    "expired": DENIED,
    "conflict": FAILED,
    "overloaded": FAILED,
    "step_limit": FAILED,
    "answer_unfit": FAILED,
    "budget_spent": BUDGET,
    "storage_full": STORAGE,
    "storage_read_only": STORAGE,
    "storage_damaged": STORAGE,
    "version_mismatch": STORAGE,
    "lease_lost": FAILED,
    "no_server": NO_SERVER,
    "internal": FAILED,
}


def of_turn(state: TurnState, error: ErrorInfo | None) -> int:
    if state is TurnState.DONE:
        return DONE
    if state is TurnState.FAILED:
        return BY_CODE.get(error.code, FAILED) if error else FAILED
    return INTERRUPTED
