"""Identifiers: a prefix that names the noun, then 26 characters that sort by the time they were made.

Pure but for the clock and the random source; knows nothing of what the ids stand for.
"""

from __future__ import annotations

import os
import threading
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_RANDOM_BITS = 80
_lock = threading.Lock()
_last = 0

PREFIXES = frozenset(
    {
        "thr",
        "trn",
        "itm",
        "evt",
        "int",
        "grt",
        "job",
        "prj",
        "prf",
        "agt",
        "stp",
        "chk",
        "cmd",
        "own",
        "cal",
        "ntc",
        "asd",
    }
)


def new_id(prefix: str) -> str:
    """A fresh id. Ids made by one process ascend even within one millisecond and when the clock steps back."""
    global _last
    if prefix not in PREFIXES:
        raise ValueError(f"unknown id prefix: {prefix!r}")
    fresh = (time.time_ns() // 1_000_000) << _RANDOM_BITS | int.from_bytes(os.urandom(10), "big")
    with _lock:
        # Adding to the last id, instead of drawing anew, keeps the order when two ids share a millisecond.
        value = fresh if fresh > _last else _last + 1 + (fresh & 0xFFFF)
        _last = value
    return f"{prefix}_{_base32(value)}"


def has_prefix(text: str, prefix: str) -> bool:
    """Whether the text has the form of an id of that noun (it need not exist)."""
    head, _, tail = text.partition("_")
    return head == prefix and len(tail) == 26 and all(c in _ALPHABET for c in tail)


def number_of(id: str) -> int:
    """What stands behind the prefix, as a number: for a wire that wants ids of another form."""
    value = 0
    for character in id.partition("_")[2]:
        value = value << 5 | _ALPHABET.index(character)
    return value


def from_number(prefix: str, number: int) -> str:
    return f"{prefix}_{_base32(number)}"


def event_id(seq: int) -> str:
    """An event is named by its number: unique in its store, never reused, sorted by commit order, nothing to keep."""
    return f"evt_{seq:013x}"


def _base32(value: int) -> str:
    out = []
    for _ in range(26):
        out.append(_ALPHABET[value & 31])
        value >>= 5
    return "".join(reversed(out))
