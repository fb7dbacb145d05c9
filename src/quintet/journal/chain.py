"""How rows of the audit chain are bound to each other: digests of events, and links over them. Pure.

What is hashed is part of the file's format: rows of years ago must still be found whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

from quintet.domain.audit import AuditRow

# Of an event that belongs into the chain and is not bound yet: its number, kind, time and thread, and its digest.
Unbound = tuple[int, str, int, str, bytes]


def digest(text: bytes) -> bytes:
    """Of what an event's checksum covers."""
    return sha256(text).digest()


def fields(number: int, seq: int, kind: str, at_ms: int, thread: str, digest: bytes) -> bytes:
    return f"{number} {seq} {kind} {at_ms} {thread}\n".encode() + digest


def link(last: AuditRow | None, row: AuditRow) -> bytes:
    return sha256(_before(last) + _fields(row)).digest()


def bound(last: AuditRow | None, given: Iterable[Unbound]) -> list[AuditRow]:
    """The rows that come behind the last one, each bound to the one before it."""
    rows: list[AuditRow] = []
    number, before = last.number if last else 0, _before(last)
    for seq, kind, at_ms, thread, digest in given:
        number += 1
        own = fields(number, seq, kind, at_ms, thread, digest)
        link = sha256(before + own).digest()
        rows.append(AuditRow(number, seq, kind, at_ms, thread, digest, link))
        before = own + link
    return rows


def _before(last: AuditRow | None) -> bytes:
    return _fields(last) + last.link if last else b""


def _fields(row: AuditRow) -> bytes:
    return fields(row.number, row.seq, row.kind, row.at_ms, row.thread, row.digest)
