"""What a failed attempt means: whether to try again, after how long, and what to tell the person. Pure."""

from __future__ import annotations

import email.utils
import math
import random
import re
from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec

from quintet.domain.errors import ProviderFailed

LONGEST_ASKED_S = 365 * 86_400.0  # nobody means more than that
_AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
_MAY_BE_LENGTH = (400, 413, 422, 500)  # the last as some local servers answer
_REASONS = {
    400: ("bad_request", "it refused the request"),
    401: ("auth", "it does not accept the key"),
    402: ("credit", "the account has no credit left"),
    403: ("auth", "the key may not use this"),
    404: ("not_found", "it knows no such model or address"),
    408: ("timeout", "it gave up waiting"),
    413: ("too_long", "the request is too large for it"),
    422: ("bad_request", "it refused the request"),
    429: ("rate_limit", "too many requests"),
    529: ("overloaded", "it is overloaded"),
}
_STEPS = {
    "auth": "Check the key of this provider in config.toml or the environment.",
    "credit": "Add credit with the provider, or choose another model with `-m`.",
    "not_found": "Check the model's name and the provider's base_url.",
    "too_long": "Start a new thread, or choose a model with a larger context.",
}
# Servers have no common word for a request that is longer than the model's window; these are theirs.
_TOO_LONG = re.compile(
    r"context[ _](length|window|size|limit)|maximum context|(prompt|input) is too long|prompt too long"
    r"|maximum prompt length|input (length|token count).{0,40}exceed|(exceeded|exceeds) (the )?model.{0,10}token limit"
    r"|reduce the length of the (messages|prompt|input)|range of input length",
    re.IGNORECASE,
)


# What servers call their own failures when they report them inside a stream that began well.
_KINDS = {
    "overloaded": ("overloaded", True),
    "rate_limit": ("rate_limit", True),
    "too_many_requests": ("rate_limit", True),
    "server_error": ("server", True),
    "api_error": ("server", True),
    "internal": ("server", True),
    "timeout": ("timeout", True),
    "unavailable": ("server", True),
    "auth": ("auth", False),
    "permission": ("auth", False),
    "insufficient_quota": ("credit", False),
    "billing": ("credit", False),
}


class Pace(msgspec.Struct, frozen=True):
    """How long to wait between attempts: the first time, doubled each time after, and all waits together."""

    first_s: float = 0.5
    longest_s: float = 30.0
    together_s: float = 120.0


class Failure(msgspec.Struct, frozen=True):
    """Why an attempt failed."""

    reason: str
    words: str
    again: bool
    retry_after_s: float | None = None
    status: int | None = None


def of_status(status: int, headers: Mapping[str, str], body: str, now: datetime | None = None) -> Failure:
    reason, words = _REASONS.get(status, ("server" if status >= 500 else "refused", f"it answered {status}"))
    said = _said(body)
    if status in _MAY_BE_LENGTH and _TOO_LONG.search(f"{said} {_code(body)}"):
        reason = "too_long"
    if said:
        words += f" ({said})"
    again = status in _AGAIN and reason != "too_long"
    return Failure(reason, f"{words}; status {status}", again, retry_after(headers, now), status)


def of_kind(kind: str, said: str) -> Failure:
    """An error reported inside the stream: a word for its kind, or a status, and the server's own words."""
    if kind.isdecimal() and len(kind) == 3:
        return of_status(int(kind), {}, said)
    if _TOO_LONG.search(f"{kind} {said[:300]}"):
        return Failure("too_long", f"it reported an error ({' '.join(said.split())[:300] or kind})", again=False)
    low = f"{kind} {said[:300]}".lower().replace(" ", "_")
    reason, again = next((row for word, row in _KINDS.items() if word in low), (kind or "refused", False))
    words = " ".join(said.split())[:300] or kind or "no reason given"
    return Failure(reason, f"it reported an error ({words})", again)


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds the server asks us to wait; None when it does not say, or says nonsense."""
    milliseconds, given = headers.get("retry-after-ms", "").strip(), headers.get("retry-after", "").strip()
    try:
        if _is_number(milliseconds):
            asked = float(milliseconds) / 1000
        elif _is_number(given):
            asked = float(given)
        else:
            asked = _until(given, now) if given else math.nan
    except (ValueError, TypeError, OverflowError):
        return None
    return None if math.isnan(asked) else min(max(0.0, asked), LONGEST_ASKED_S)


def _is_number(text: str) -> bool:
    return text.isascii() and text.replace(".", "", 1).isdecimal()


def _until(date: str, now: datetime | None) -> float:
    when = email.utils.parsedate_to_datetime(date)
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return (when - (now or datetime.now(UTC))).total_seconds()


def _code(body: str) -> str:
    """The server's own names for the error, where it gives any beside the words."""
    try:
        error = msgspec.json.decode(body.encode())["error"]
        return f"{error.get('code', '')} {error.get('type', '')}"
    except (msgspec.DecodeError, UnicodeEncodeError, LookupError, TypeError, AttributeError):
        return ""


def _said(body: str) -> str:
    """The server's own words in an error body, on one line; a page of HTML says nothing."""
    try:
        value = msgspec.json.decode(body.encode())
    except (msgspec.DecodeError, UnicodeEncodeError):
        return "" if "<" in body[:200] else " ".join(body.split())[:300]
    while isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, dict):
        inner = value.get("error", value)
        said = inner.get("message") or inner.get("detail") or inner.get("type") if isinstance(inner, dict) else inner
        return " ".join(str(said or "").split())[:300]
    return ""


class Waits:
    """How long to wait between the attempts of one call, all waits together bounded."""

    def __init__(self, max_retries: int, pace: Pace) -> None:
        self._left = max_retries
        self._pace = pace
        self._spent_s = 0.0
        self.attempt = 1

    def next(self, failure: Failure) -> float | None:
        """Seconds until the next attempt, or None: give up now."""
        if not failure.again or self._left <= 0:
            return None
        pace, wait = self._pace, failure.retry_after_s
        if wait is None:
            wait = min(pace.first_s * 2 ** (self.attempt - 1), pace.longest_s) * random.uniform(0.75, 1.25)  # noqa: S311
            wait = min(wait, max(0.0, pace.together_s - self._spent_s))
        if self._spent_s + wait > pace.together_s:
            return None
        self._left -= 1
        self._spent_s += wait
        self.attempt += 1
        return wait


def failed(provider: str, failure: Failure, attempts: int) -> ProviderFailed:
    """The end of it, in words for the person."""
    tried = f" after {attempts} attempts" if attempts > 1 else ""
    wait = failure.retry_after_s
    if wait is not None:
        step = f"It asks to come back in {_duration(wait)}; or choose another model with `-m`."
    else:
        step = _STEPS.get(failure.reason, ProviderFailed.next_step)
    details: dict[str, object] = {"reason": failure.reason, "attempts": attempts}
    if failure.status is not None:
        details["status"] = failure.status
    if wait is not None:
        details["retry_after_s"] = round(wait, 1)
    return ProviderFailed(f"{provider} failed{tried}: {failure.words}.", next_step=step, **details)


def _duration(seconds: float) -> str:
    for unit, size in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{math.ceil(seconds / size)} {unit}"
    return f"{math.ceil(seconds)} seconds"
