"""What can go wrong, in words for people: a stable code, what happened, what to do next, and safe details.

Every protocol maps all of these classes to its own codes; nothing else leaves the engine as an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import msgspec


class ErrorInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """An error as it is kept in the journal and shown to clients."""

    code: str
    message: str
    next_step: str = ""
    data: dict[str, Any] = {}


class QuintetError(Exception):
    """Whatever the engine refuses or fails at. Subclasses give the code and the usual next step."""

    code: ClassVar[str] = "internal"
    next_step: ClassVar[str] = "Look into the log named by `quintet version`, then report what you see."

    def __init__(self, message: str, *, next_step: str | None = None, **data: Any) -> None:
        super().__init__(message)
        self.message = message
        self.step = self.next_step if next_step is None else next_step
        self.data: dict[str, Any] = data

    def info(self) -> ErrorInfo:
        """The error as it leaves: what looks like a secret is masked, and the details hold no headers and no paths of
        this machine, since they are what people paste elsewhere."""
        from quintet.domain.shapes import mask_shapes  # its patterns are made only where something went wrong

        return ErrorInfo(self.code, mask_shapes(self.message), self.step, _presentable(self.data, mask_shapes))

    def line(self) -> str:
        """One line for a terminal: what happened, then what to do."""
        return f"{self.message} {self.step}".strip()


_HEADERS = frozenset({"headers", "header", "authorization", "cookie", "set-cookie", "proxy-authorization"})


def _presentable(value: Any, mask: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        whole_path = value.startswith(("/", "~/")) and "\n" not in value
        return mask(value.rstrip("/").rsplit("/", 1)[-1] if whole_path else value)
    if isinstance(value, dict):
        return {k: _presentable(v, mask) for k, v in value.items() if str(k).lower() not in _HEADERS}
    if isinstance(value, list | tuple):
        return [_presentable(inner, mask) for inner in value]
    return value


class NotFound(QuintetError):
    code = "not_found"
    next_step = "List what exists with `quintet threads list`."


class Invalid(QuintetError):
    code = "invalid"
    next_step = "Correct the request and send it again; nothing was changed."


class Busy(QuintetError):
    code = "busy"
    next_step = "Wait for the running turn, steer it, or cancel it with `quintet threads cancel`."


class Denied(QuintetError):
    code = "denied"
    next_step = "See the rules in force with `quintet approvals rules`."


class Drifted(QuintetError):
    """What was approved is no longer what would run."""

    code = "drifted"
    next_step = "Look at it again: what was approved has changed since."


class AlreadyResolved(QuintetError):
    code = "already_resolved"
    next_step = "Nothing to do: the first answer stands."


class TurnOver(QuintetError):
    code = "turn_over"
    next_step = "Send it as a new turn."


class Cancelled(QuintetError):
    code = "cancelled"
    next_step = "Send the request again when you want it."


class Interrupted(QuintetError):
    code = "interrupted"
    next_step = "Look at what was left open with `quintet threads show`, then go on with the thread."


class NotConfigured(QuintetError):
    code = "not_configured"
    next_step = "Name a model in config.toml (`default_model`) or with `-m`."


class ProviderFailed(QuintetError):
    code = "provider_failed"
    next_step = "Try again, or choose another model with `-m`."


class TimedOut(QuintetError):
    code = "timed_out"
    next_step = "Try again with a longer limit."


class Expired(QuintetError):
    code = "expired"
    next_step = "Ask again; an unanswered request counts as denied."


class Conflict(QuintetError):
    code = "conflict"
    next_step = "Use another idempotency key for another request."


class Overloaded(QuintetError):
    code = "overloaded"
    next_step = "Send fewer requests at once, or wait a moment."


class StepLimit(QuintetError):
    code = "step_limit"
    next_step = "Continue the thread, or raise `--max-steps`."


class AnswerUnfit(QuintetError):
    code = "answer_unfit"
    next_step = "See its answers with `quintet threads show`; make the schema simpler or choose another model."


class BudgetSpent(QuintetError):
    code = "budget_spent"
    next_step = "Raise the budget or continue tomorrow."


class StorageFull(QuintetError):
    code = "storage_full"
    next_step = "Free disk space or run `quintet gc`; reading still works and writing resumes by itself."


class StorageReadOnly(QuintetError):
    code = "storage_read_only"
    next_step = "Make the home directory writable, or name another one with `--home` or QUINTET_HOME."


class StorageDamaged(QuintetError):
    code = "storage_damaged"
    next_step = "Keep the file and run `quintet repair`."


class VersionMismatch(QuintetError):
    code = "version_mismatch"
    next_step = "Use the newer Quintet, or another home directory."


class LeaseLost(QuintetError):
    code = "lease_lost"
    next_step = "Another process owns the thread now; follow it with `quintet events --follow`."


STORAGE_ERRORS = (StorageFull, StorageReadOnly, StorageDamaged, VersionMismatch, LeaseLost)


class NoServer(QuintetError):
    code = "no_server"
    next_step = "Start one with `quintet serve`."


class InternalFailure(QuintetError):
    """A defect of ours: the message says what was being done, the log says the rest."""

    code = "internal"


def all_error_classes() -> list[type[QuintetError]]:
    """Every class, for the tests that walk all of them through every protocol's map."""
    return sorted(QuintetError.__subclasses__(), key=lambda c: c.__name__)


def as_quintet_error(error: BaseException) -> QuintetError:
    """Any exception as one of ours; foreign ones become InternalFailure without their text (it may hold secrets)."""
    if isinstance(error, QuintetError):
        return error
    return InternalFailure(f"Quintet failed unexpectedly ({type(error).__name__}).")
