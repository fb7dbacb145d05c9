"""What can go wrong between a socket and a handler, as exceptions. A face's map gives bodies, never other statuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct


class HttpFault(Exception):
    """Raised on this floor. The sentence is for people and holds nothing of the server's."""

    status = 500

    def __init__(self, message: str, **headers: str) -> None:
        super().__init__(message)
        self.message = message
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class BadRequest(HttpFault):
    status = 400


class NotAuthorised(HttpFault):
    status = 401


class Forbidden(HttpFault):
    """The Host, the Origin or the fetch site; told before anything is looked at."""

    status = 403


class NoRoute(HttpFault):
    status = 404


class WrongVerb(HttpFault):
    status = 405


class TooSlow(HttpFault):
    status = 408


class TooLarge(HttpFault):
    status = 413


class WrongType(HttpFault):
    status = 415


class TooMany(HttpFault):
    """Too many failed attempts, streams or requests; `retry_after` says when to come back."""

    status = 429


class HttpError(Struct, frozen=True):
    """An error as a face says it."""

    status: int
    body: Any
    headers: dict[str, str] = {}


# Total: any exception, with the route it came from, has an answer in the face's own format.
Errors = Callable[[BaseException, str], HttpError]
