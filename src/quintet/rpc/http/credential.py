"""The server's credential and how clients show it: Bearer, Basic, or the first two parts of the path.

Only digests are kept and compared, all of them and in constant time, whichever way a secret came.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping

from msgspec import Struct

PREFIX = "/t/"
USER = "opencode"  # the name OpenCode's own clients send
LONGEST = 4096


class Shown(Struct, frozen=True):
    """One secret somebody showed. `chosen` may be a person's own password, which others might guess."""

    proof: str  # bearer | basic | path
    secret: str
    user: str = ""


class Credential:
    def __init__(self, token: str, *, user: str = "", password: str = "") -> None:
        self._user = user or USER
        self._password = _digest(password) if password else None
        self._token = _digest(token)
        self.generation = 0

    def rotate(self, token: str) -> None:
        """The old token is worth nothing from now on."""
        self._token = _digest(token)
        self.generation += 1

    def accepts(self, shown: Shown, *, guessable: bool = True) -> bool:
        """Without `guessable` only the token counts, which no number of attempts finds."""
        digest = _digest(shown.secret)
        by_token = hmac.compare_digest(digest, self._token)
        by_password = hmac.compare_digest(digest, self._password or self._token)
        if shown.proof == "basic" and shown.user != self._user:
            return False
        return by_token or (guessable and self._password is not None and shown.proof == "basic" and by_password)


def split_path(path: str) -> tuple[str, Shown | None]:
    """The path without a token in front of it, and that token."""
    if not path.startswith(PREFIX):
        return path, None
    token, slash, rest = path[len(PREFIX) :].partition("/")
    return slash + rest or "/", Shown("path", token[:LONGEST])


def in_header(headers: Mapping[str, str]) -> Shown | None:
    """What the Authorization header shows; None where there is none, or none that can be read."""
    scheme, _, value = headers.get("authorization", "")[:LONGEST].partition(" ")
    if scheme.lower() == "bearer":
        return Shown("bearer", value.strip())
    if scheme.lower() != "basic":
        return None
    try:
        user, colon, password = base64.b64decode(value.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return Shown("basic", "")
    return Shown("basic", password, user) if colon else Shown("basic", "")


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).digest()
