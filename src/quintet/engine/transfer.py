"""Transfer: a thread as one file, and back. JSON lines: a head, then one item a line; losing nothing people said.

The file is data from outside when it comes back: every line is checked, and nothing in it is executed or granted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import msgspec

from quintet.domain.decoding import decode
from quintet.domain.errors import Invalid
from quintet.domain.ids import new_id
from quintet.domain.item import Item
from quintet.domain.thread import Thread, ThreadSettings
from quintet.domain.view import View
from quintet.engine.threads import Threads

FORMAT = "quintet-thread"
VERSION = 1
LARGEST_LINE = 64 * 1024 * 1024
LARGEST_ORDINAL = 10_000_000  # what a model is sent is found by walking them
T = TypeVar("T", bound=msgspec.Struct)


class Head(msgspec.Struct, frozen=True):
    format: str
    version: int
    id: str
    title: str
    settings: ThreadSettings
    created_ms: int
    updated_ms: int
    items: int
    title_final: bool = False
    view: View = View()


async def export_thread(threads: Threads, thread: str) -> Iterator[bytes]:
    """The lines of the file, hidden items included."""
    found: Thread = (await threads.get(thread)).thread
    items = await threads.items(thread)
    head = Head(
        FORMAT,
        VERSION,
        found.id,
        found.title,
        found.settings,
        found.created_ms,
        found.updated_ms,
        len(items),
        found.title_final,
        found.view,
    )
    return (msgspec.json.encode(line) + b"\n" for line in (head, *items))


async def import_thread(threads: Threads, lines: Iterable[bytes], *, cwd: str = "") -> Thread:
    """A new thread from an exported file; the whole file is checked before anything is written."""
    rows = iter(lines)
    head = _decode(next(rows, b""), Head, 1)
    if head.format != FORMAT:
        raise Invalid("This file is not an exported thread.", next_step="Make one with `quintet threads export`.")
    if head.version > VERSION:
        raise Invalid(
            f"This file has format version {head.version}, newer than {VERSION}.", next_step="Upgrade Quintet."
        )
    items = [_decode(line, Item, number) for number, line in enumerate(rows, start=2) if line.strip()]
    if len(items) != head.items:
        raise Invalid(f"The file announces {head.items} items and holds {len(items)}.", next_step="Export it again.")
    _check_ordinals(items)
    fresh = [msgspec.structs.replace(i, id=new_id("itm"), origin=i.id) for i in items]
    settings = msgspec.structs.replace(head.settings, cwd=cwd) if cwd else head.settings
    return await threads.create(
        settings, title=head.title, title_final=head.title_final, items=fresh, view=head.view, forked_from=head.id
    )


def _check_ordinals(items: Sequence[Item]) -> None:
    """The view speaks of ordinals, so they must come back as they were: ascending; a fork's may have gaps."""
    last = 0
    for number, item in enumerate(items, start=2):
        if not last < item.ordinal <= LARGEST_ORDINAL:
            raise Invalid(f"Line {number} is out of order (item {item.ordinal}).", next_step="Export it again.")
        last = item.ordinal


def _decode(line: bytes, kind: type[T], number: int) -> T:
    if len(line) > LARGEST_LINE:
        raise Invalid(f"Line {number} is larger than {LARGEST_LINE} bytes.")
    try:
        made: T = decode(line, kind)
        return made
    except msgspec.DecodeError as error:
        raise Invalid(f"Line {number} cannot be read: {error}.", next_step="Export the thread again.") from None
