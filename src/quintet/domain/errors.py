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

    @property
    def docs(self) -> str:
        """Where the documentation says more."""
        return f"docs/errors.md#{self.code}"

    def line(self) -> str:
        """One line for a terminal: what happened, what to do, where to read on."""
        return " ".join(filter(None, (self.message, self.next_step, f"({self.docs})")))


class QuintetError(Exception):
    """Whatever the engine refuses or fails at. Subclasses give the code, the usual next step, and as their first
    sentence what docs/errors.md says has happened."""

    code: ClassVar[str] = "internal"
    next_step: ClassVar[str] = "Look into the log named by `quintet version`, then report what you see."

    def __init__(self, message: str, *, next_step: str | None = None, **data: Any) -> None:
        super().__init__(message)
        self.message = message
        self.step = self.next_step if next_step is None else next_step
        self.data: dict[str, Any] = data

    @property
    def docs(self) -> str:
        return ErrorInfo(self.code, "").docs

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
    """What was named is not there: it never was, or it has been deleted."""

    code = "not_found"
    next_step = "List what exists with `quintet threads list`."


class Invalid(QuintetError):
    """The request, the command line or the configuration does not make sense as it stands."""

    code = "invalid"
    next_step = "Correct the request and send it again; nothing was changed."


class OutOfBounds(Invalid):
    """A path leads to where whoever gave it has no business. Its words name the path: a door to others puts its own in
    their place."""


class Busy(QuintetError):
    """Something else is at work where this would have to happen."""

    code = "busy"
    next_step = "Wait for the running turn, steer it, or cancel it with `quintet threads cancel`."


class Denied(QuintetError):
    """A rule, the mode or a person said no."""

    code = "denied"
    next_step = "See the rules in force with `quintet approvals rules`."


class Drifted(QuintetError):
    """What was approved, or seen before, is no longer what is there."""

    code = "drifted"
    next_step = "Look at what is there now, then ask for it again."


class AlreadyResolved(QuintetError):
    """Somebody else has answered this request before."""

    code = "already_resolved"
    next_step = "Leave it: the first answer stands; `quintet threads show` says which it was."


class TurnOver(QuintetError):
    """The turn this was meant for has ended."""

    code = "turn_over"
    next_step = "Send it as a new turn with `quintet run --thread`."


class Cancelled(QuintetError):
    """The turn was cancelled by a person or a client."""

    code = "cancelled"
    next_step = "Send the request again when you want it."


class Interrupted(QuintetError):
    """The process that ran the turn ended, or was told to stop, before the turn was done."""

    code = "interrupted"
    next_step = "Look at what was left open with `quintet threads show`, then go on with the thread."


class NotConfigured(QuintetError):
    """No model is named, or the one that is named cannot be used as it is configured."""

    code = "not_configured"
    next_step = "Name a model in config.toml (`default_model`) or with `-m`."


class ProviderFailed(QuintetError):
    """The model's server refused, failed, or sent what cannot be understood."""

    code = "provider_failed"
    next_step = "Try again, or choose another model with `-m`."


class TimedOut(QuintetError):
    """Something took longer than it was allowed to."""

    code = "timed_out"
    next_step = "Try again with a longer limit, such as `--timeout`."


class Expired(QuintetError):
    """Nobody answered the request in time."""

    code = "expired"
    next_step = "Ask again; an unanswered request counts as denied."


class Conflict(QuintetError):
    """The same key or name was used before for something else."""

    code = "conflict"
    next_step = "Use another idempotency key for another request."


class Overloaded(QuintetError):
    """More is being asked at once than is taken on."""

    code = "overloaded"
    next_step = "Send fewer requests at once, or wait a moment."


class StepLimit(QuintetError):
    """The turn made as many model calls as it may."""

    code = "step_limit"
    next_step = "Continue the thread, or raise `--max-steps`."


class AnswerUnfit(QuintetError):
    """The model's answer does not have the form that was asked for, also after it was told so."""

    code = "answer_unfit"
    next_step = "See its answers with `quintet threads show`; make the schema simpler or choose another model."


class BudgetSpent(QuintetError):
    """What the turn, the thread or the day may cost is used up."""

    code = "budget_spent"
    next_step = "Raise it with `--budget` or under [limits] in config.toml, or continue tomorrow."


class StorageFull(QuintetError):
    """The disk that holds the home is full."""

    code = "storage_full"
    next_step = "Free disk space or run `quintet gc`; reading still works and writing resumes by itself."


class StorageReadOnly(QuintetError):
    """The home cannot be written to."""

    code = "storage_read_only"
    next_step = "Make the home directory writable, or name another one with `--home` or QUINTET_HOME."


class StorageDamaged(QuintetError):
    """The journal, or a row of it, is not what was written."""

    code = "storage_damaged"
    next_step = "Keep the file and run `quintet repair`."


class VersionMismatch(QuintetError):
    """The journal was written by another version than this one can read."""

    code = "version_mismatch"
    next_step = "Use the newer Quintet, or another home directory."


class LeaseLost(QuintetError):
    """The turn is no longer this process's to go on with."""

    code = "lease_lost"
    next_step = "Another process owns the thread now; follow it with `quintet events --follow`."


STORAGE_ERRORS = (StorageFull, StorageReadOnly, StorageDamaged, VersionMismatch, LeaseLost)


class NoServer(QuintetError):
    """A server is needed, and none runs for this home."""

    code = "no_server"
    next_step = "Start one with `quintet serve`."


class InternalFailure(QuintetError):
    """A defect of ours. The message says what was being done, the log says the rest."""

    code = "internal"


def all_error_classes() -> list[type[QuintetError]]:
    """Every class, for the tests that walk all of them through every protocol's map."""
    return sorted(QuintetError.__subclasses__(), key=lambda c: c.__name__)


def as_quintet_error(error: BaseException) -> QuintetError:
    """Any exception as one of ours; foreign ones become InternalFailure without their text (it may hold secrets)."""
    if isinstance(error, QuintetError):
        return error
    return InternalFailure(f"Quintet failed unexpectedly ({type(error).__name__}).")
