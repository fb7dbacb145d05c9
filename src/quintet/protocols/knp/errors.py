"""Any failure -> KNP's error format. Total: what is not known is internal, and says nothing of the server."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from quintet.domain.errors import QuintetError, as_quintet_error
from quintet.rpc.http.faults import HttpError, HttpFault

# Our code -> KNP's code and status.
MAP: dict[str, tuple[str, int]] = {
    "not_found": ("not_found", 404),
    "invalid": ("invalid_request", 400),
    "busy": ("conflict", 409),
    "denied": ("forbidden", 403),
    "drifted": ("conflict", 409),
    "already_resolved": ("conflict", 409),
    "turn_over": ("conflict", 409),
    "cancelled": ("conflict", 409),
    "interrupted": ("conflict", 409),
    "not_configured": ("invalid_request", 400),
    "provider_failed": ("internal", 500),
    "timed_out": ("internal", 500),
    "expired": ("conflict", 409),
    "conflict": ("conflict", 409),
    "overloaded": ("overloaded", 429),
    "step_limit": ("conflict", 409),
    "answer_unfit": ("conflict", 409),
    "budget_spent": ("conflict", 409),
    "storage_full": ("overloaded", 503),
    "storage_read_only": ("overloaded", 503),
    "storage_damaged": ("internal", 500),
    "version_mismatch": ("internal", 500),
    "lease_lost": ("conflict", 409),
    "no_server": ("internal", 500),
    "internal": ("internal", 500),
}
_OF_FAULT = {401: "unauthorized", 403: "forbidden", 404: "not_found", 429: "overloaded", 503: "overloaded"}


# A path of the server in somebody's words. Routes and addresses look alike but begin in no such place.
_PLACES = "home|root|Users|tmp|private|var|usr|etc|opt|srv|mnt|media|data|work|run|proc|nix|Volumes"
_PATH = re.compile(rf"(?<![\w:/.])/(?:{_PLACES})/(?:[^\s/'\"`,;:)]+/)*([^\s/'\"`,;:)]*)")


def without_paths(words: str) -> str:
    """Only the last name of each."""
    return _PATH.sub(r"\1", words)


class ErrorBody(msgspec.Struct, frozen=True, omit_defaults=True):
    code: str
    message: str
    details: dict[str, Any] = {}


class ErrorAnswer(msgspec.Struct, frozen=True):
    error: ErrorBody


def errors(failure: BaseException, route: str) -> HttpError:
    if isinstance(failure, HttpFault):
        code = _OF_FAULT.get(failure.status, "invalid_request" if failure.status < 500 else "internal")
        return HttpError(failure.status, ErrorAnswer(ErrorBody(code, failure.message)), failure.headers)
    known: QuintetError = as_quintet_error(failure)
    info = known.info()
    code, status = MAP[info.code]
    words = without_paths(" ".join(filter(None, (info.message, info.next_step))))
    headers = {"retry-after": "5"} if code == "overloaded" else {}
    return HttpError(status, ErrorAnswer(ErrorBody(code, words, info.data)), headers)
