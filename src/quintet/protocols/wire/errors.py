"""Every failure as one of Wire's codes. Total: whatever is raised has a row. Texts that clients compare are exact."""

from __future__ import annotations

from quintet.domain.errors import ErrorInfo, as_quintet_error
from quintet.rpc.faults import BadParams, Overloaded, UnknownMethod
from quintet.rpc.framing import BadFrame
from quintet.rpc.messages import BadMessage, ErrorResponse, WireError

PARSE, INVALID_REQUEST, UNKNOWN_METHOD, INVALID_PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603
WRONG_STATE, NO_MODEL, NOT_SUPPORTED, PROVIDER, LOGIN_EXPIRED = -32000, -32001, -32002, -32003, -32004

UNSET = "(none)/(none)"  # the reference of a client's configuration that names no usable model

IN_PROGRESS = "An agent turn is already in progress"
NONE_IN_PROGRESS = "No agent turn is in progress"
EXPIRED = (
    "The model's server does not accept the login: it may have expired. Log in again with Kimi's own program, or give "
    "the provider an api_key in Kimi's config.toml."
)

# By the code of a domain error; whatever has no row is internal.
BY_CODE: dict[str, int] = {
    "invalid": INVALID_PARAMS,
    "busy": WRONG_STATE,
    "turn_over": WRONG_STATE,
    "overloaded": WRONG_STATE,
    "not_configured": NO_MODEL,
    "provider_failed": PROVIDER,
}
_TEXTS = {"busy": IN_PROGRESS, "turn_over": NONE_IN_PROGRESS}


class WrongState(Exception):
    """Not now: a turn runs, or none does."""


class LoginExpired(Exception):
    """The model's server, which Kimi logs in to, does not accept who asks."""


class NotSupported(Exception):
    """The model lacks what the input needs."""


def errors(failure: BaseException, method: str) -> WireError:
    """The map that dispatch uses."""
    match failure:
        case UnknownMethod():
            return _error(UNKNOWN_METHOD, f"Unexpected method received: {method}")
        case BadParams():
            return _error(INVALID_PARAMS, f"Invalid parameters for method `{method}`")
        case WrongState():
            return _error(WRONG_STATE, str(failure))
        case NotSupported():
            return _error(NOT_SUPPORTED, str(failure))
        case LoginExpired():
            return _error(LOGIN_EXPIRED, EXPIRED)
        case Failed():
            return of_info(failure.info)
        case Overloaded():
            return _error(WRONG_STATE, "Too many requests at once")
    return of_info(as_quintet_error(failure).info())


class Failed(Exception):
    """A turn ended with this error."""

    def __init__(self, info: ErrorInfo) -> None:
        super().__init__(info.message)
        self.info = info


def of_info(info: ErrorInfo) -> WireError:
    code = BY_CODE.get(info.code, INTERNAL)
    if code == NO_MODEL:
        # Of a model that was never chosen there is nothing more to say, and some compare the whole error.
        words = None if info.data.get("model") == UNSET else f"{info.message} {info.next_step}".strip()
        return _error(code, "LLM is not set", words)
    if code == PROVIDER:
        return _error(code, info.message)  # whose next step is the client's to choose
    return _error(code, _TEXTS.get(info.code) or f"{info.message} {info.next_step}".strip())


def bad(problem: BadFrame | BadMessage) -> ErrorResponse | None:
    """What is no message is answered with id null, whatever could be read of its id."""
    if isinstance(problem, BadMessage) and problem.reason == "parse":
        return ErrorResponse(None, _error(PARSE, "Invalid JSON format"))
    return ErrorResponse(None, _error(INVALID_REQUEST, "Invalid request"))


def _error(code: int, message: str, data: str | None = None) -> WireError:
    """`data` is always there, as null where there is none."""
    return WireError(code, message, data)
