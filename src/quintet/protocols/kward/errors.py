"""Every failure as one of JSON-RPC's codes. Total: whatever is raised has a row. Texts that clients compare are exact.

What a client reads is the text; `data` repeats it for whoever develops one. Stack traces stay in the log.
"""

from __future__ import annotations

import re
from typing import Any

from quintet.domain.errors import as_quintet_error
from quintet.rpc.faults import BadParams, Overloaded, UnknownMethod
from quintet.rpc.framing import BadFrame
from quintet.rpc.messages import BadMessage, ErrorResponse, WireError

PARSE, INVALID_REQUEST, UNKNOWN_METHOD, INVALID_PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603
# By the code of a domain error; whatever has no row is internal.
BY_CODE: dict[str, int] = {"invalid": INVALID_PARAMS}
_HEADERS = {
    "missing_length": "Missing Content-Length header",
    "truncated": "Unexpected EOF while reading JSON-RPC body",
}


class BadArgument(Exception):
    """An argument that is refused, in words the client shows."""


class Failed(Exception):
    """Anything else that the wire has its own words for."""


def unknown(noun: str, id: object) -> Failed:
    """`Unknown session: …` is what a client looks for before it makes a new one."""
    return Failed(f"Unknown {noun}: {id}")


def errors(failure: BaseException, method: str) -> WireError:
    """The map that dispatch uses."""
    match failure:
        case UnknownMethod():
            return WireError(UNKNOWN_METHOD, f"Method not found: {method}", _data("NoMethodError", method))
        case BadParams(detail=detail):
            return _bad_params(detail)
        case BadArgument():
            return _error(INVALID_PARAMS, str(failure), "ArgumentError")
        case Failed():
            return _error(INTERNAL, str(failure), "RuntimeError")
        case Overloaded():
            return _error(INTERNAL, "Too many requests at once", "RuntimeError")
        case OSError(strerror=str(why), filename=str(path)):
            words = f"{why}: {path}. Look whether it can be read and written, then try again."
            return _error(INTERNAL, words, "SystemCallError")
    info = as_quintet_error(failure).info()
    return _error(BY_CODE.get(info.code, INTERNAL), f"{info.message} {info.next_step}".strip(), info.code)


def bad(problem: BadFrame | BadMessage) -> ErrorResponse | None:
    """What is no request. A header's trouble has no id; a request without a method is answered only if it has one."""
    if isinstance(problem, BadFrame):
        words = _HEADERS.get(problem.reason) or f"Invalid JSON-RPC header: {problem.detail}"
        return ErrorResponse(None, WireError(INVALID_REQUEST, words))
    if problem.reason in ("parse", "depth"):
        return ErrorResponse(None, WireError(PARSE, "Parse error"))
    if problem.reason in ("method", "shape") and not problem.has_id:
        return None
    return ErrorResponse(problem.id, WireError(INVALID_REQUEST, "Invalid Request"))


def _bad_params(detail: str) -> WireError:
    if found := re.search(r"missing required field `([^`]+)`", detail):
        return _error(INTERNAL, f'key not found: "{found[1]}"', "KeyError")
    return _error(INVALID_PARAMS, f"Invalid params: {detail}", "ArgumentError")


def _error(code: int, message: str, kind: str) -> WireError:
    return WireError(code, message, _data(kind, message))


def _data(kind: str, message: str) -> dict[str, Any]:
    return {"code": kind, "message": message, "backtrace": []}
