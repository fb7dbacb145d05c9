"""Clients' idempotency keys: the same key and body mean the same thing for a day. Inside one transaction with what they
name."""

from __future__ import annotations

from quintet.domain.errors import Conflict
from quintet.domain.turn import ClientKey
from quintet.journal.rows import KeyRow
from quintet.journal.transaction import Transaction

KEY_LIFE_MS = 24 * 3600 * 1000


def known_key(tx: Transaction, key: ClientKey) -> KeyRow | None:
    """What an earlier request with this key made; Conflict when that was another request."""
    row = tx.rows.key(key.scope, key.key)
    if row is None or tx.now_ms - row.at_ms >= KEY_LIFE_MS:
        return None
    if row.digest != key.digest:
        raise Conflict("This idempotency key was used for another request.", turn=row.turn)
    return row


def keep_key(tx: Transaction, key: ClientKey, thread: str, turn: str = "") -> None:
    tx.rows.put_key(KeyRow(key.scope, key.key, key.digest, turn, thread, tx.now_ms))
