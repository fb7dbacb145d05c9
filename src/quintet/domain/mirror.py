"""Mirror: a file that clients read themselves, and how far it tells its thread. Pure."""

from __future__ import annotations

import hashlib

import msgspec


class Mirror(msgspec.Struct, frozen=True):
    path: str
    kind: str  # the protocol whose clients read it
    thread: str
    through_seq: int = 0  # everything up to this event is told in it
    size: int = 0  # what it held when it was last written here
    digest: str = hashlib.sha256().hexdigest()  # of that


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
