"""How payloads become bytes and how damage is noticed. Pure: knows no store.

Checksums are BLAKE2b cut to 64 bits: in the standard library, under a microsecond for a delta, and a real 64-bit hash
(crc32 has half the bits, adler32 hardly works on short texts). They cover where a row belongs as well as what it says,
so a row that wandered into another thread or turn is found too.
"""

from __future__ import annotations

from hashlib import blake2b
from struct import Struct

import msgspec

from quintet.domain.decoding import decode
from quintet.domain.event import KIND_BY_NAME, AnyPayload
from quintet.domain.item import Body, Damaged, Item
from quintet.journal.rows import EventRow, ItemRow

UNPAIRED = "A text holds characters that cannot be stored (unpaired surrogates)."
encode = msgspec.json.Encoder().encode
_EMPTY = blake2b(digest_size=8)
_SIGNED = Struct(">q")


def event_sum(seq: int, kind: str, at_ms: int, thread: str, turn: str, said: bytes) -> int:
    return text_sum(event_text(seq, kind, at_ms, thread, turn, said))


def event_text(seq: int, kind: str, at_ms: int, thread: str, turn: str, said: bytes) -> bytes:
    """All that an event's checksum covers."""
    return f"{seq} {at_ms} {kind} {thread} {turn}\n".encode() + said


def event_place(kind: str, at_ms: int, thread: str, turn: str) -> bytes:
    """What the sums of all events of a kind share that one commit writes for a turn; see `delta_sum`."""
    return f" {at_ms} {kind} {thread} {turn}\n".encode()


def delta_sum(seq: int, place: bytes, said: bytes) -> int:
    """The same as `event_sum`, for many events at one place."""
    return text_sum(b"%d%b%b" % (seq, place, said))


def item_sum(thread: str, ordinal: int, item: str, turn: str, at_ms: int, origin: str, body: bytes) -> int:
    return text_sum(f"{thread} {ordinal} {item} {turn} {at_ms} {origin}\n".encode() + body)


def text_sum(text: bytes) -> int:
    hashing = _EMPTY.copy()  # half the price of a new one
    hashing.update(text)
    value: int = _SIGNED.unpack(hashing.digest())[0]
    return value


def event_holds(row: EventRow, said: bytes) -> bool:
    return text_sum(event_text(row.seq, row.kind, row.at_ms, row.thread, row.turn, said)) == row.sum


def payload_of(row: EventRow) -> AnyPayload | None:
    """The payload kept in the row itself; None when it is damaged."""
    kind = KIND_BY_NAME.get(row.kind)
    if kind is None or not event_holds(row, row.body):
        return None
    try:
        payload: AnyPayload = decode(row.body, kind.payload)
    except msgspec.MsgspecError:
        return None
    return payload


def item_row(item: Item) -> ItemRow:
    body = encode(item.body)
    total = item_sum(item.thread, item.ordinal, item.id, item.turn, item.at_ms, item.origin, body)
    return ItemRow(item.thread, item.ordinal, item.id, item.turn, item.at_ms, item.origin, body, total)


def item_of(row: ItemRow) -> Item:
    """The item, or a marked stand-in that can be mistaken for nothing else when its row is damaged."""
    body: Body = Damaged()
    if item_sum(row.thread, row.ordinal, row.id, row.turn, row.at_ms, row.origin, row.body) == row.sum:
        try:
            body = decode(row.body, Body)
        except msgspec.MsgspecError:
            body = Damaged()
    return Item(row.id, row.thread, row.turn, row.ordinal, row.at_ms, body, row.origin)
