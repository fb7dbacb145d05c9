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
LARGEST_FILE = 1024 * 1024 * 1024
LARGEST_ORDINAL = 1_000_000  # what a model is sent is found by walking them
MOST_CHANGES = 1_000  # hidden ranges, and marks; each is looked at for every ordinal
MOST_LOOKS = 100_000_000  # ordinals times changes
LATEST_MS = 253_402_300_799_999  # the year 9999 ends
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


async def import_thread(threads: Threads, lines: Iterable[bytes], *, cwd: str) -> Thread:
    """A new thread from an exported file; the whole file is checked before anything is written.

    Where it works is said by whoever imports it: a file must not choose the workspace.
    """
    rows = iter(lines)
    head = _decode(next(rows, b""), Head, 1)
    if head.format != FORMAT:
        raise Invalid("This file is not an exported thread.", next_step="Make one with `quintet threads export`.")
    if head.version > VERSION:
        raise Invalid(
            f"This file has format version {head.version}, newer than {VERSION}.", next_step="Upgrade Quintet."
        )
    items = _items(head, rows)
    _check_order(items)
    _check_view(head.view, items[-1].ordinal if items else 0)
    fresh = [msgspec.structs.replace(i, id=new_id("itm"), origin=i.id) for i in items]
    settings = msgspec.structs.replace(head.settings, cwd=cwd, directories=())
    return await threads.create(
        settings, title=head.title, title_final=head.title_final, items=fresh, view=head.view, forked_from=head.id
    )


def _items(head: Head, rows: Iterator[bytes]) -> list[Item]:
    """As many as the head announces, no more; read one by one, so that an endless file ends here too."""
    if not 0 <= head.items <= LARGEST_ORDINAL:
        raise Invalid(f"The file announces {head.items} items; at most {LARGEST_ORDINAL} can be taken.")
    items: list[Item] = []
    size = 0
    for number, line in enumerate(rows, start=2):
        size += len(line)
        if size > LARGEST_FILE:
            raise Invalid(f"The file is larger than {LARGEST_FILE} bytes.")
        if line.strip():
            items.append(_decode(line, Item, number))
        if len(items) > head.items:
            raise Invalid(f"The file announces {head.items} items and holds more.", next_step="Export it again.")
    if len(items) != head.items:
        raise Invalid(f"The file announces {head.items} items and holds {len(items)}.", next_step="Export it again.")
    return items


def _check_order(items: Sequence[Item]) -> None:
    """The view speaks of ordinals, so they must come back as they were: ascending; a fork's may have gaps."""
    last = 0
    for number, item in enumerate(items, start=2):
        if not last < item.ordinal <= LARGEST_ORDINAL:
            raise Invalid(f"Line {number} is out of order (item {item.ordinal}).", next_step="Export it again.")
        if not 0 <= item.at_ms <= LATEST_MS:
            raise Invalid(f"Line {number} has no possible time ({item.at_ms}).", next_step="Export it again.")
        last = item.ordinal


def _check_view(view: View, last: int) -> None:
    """Everything the view speaks of must be there: ranges of items, and marks between the first and what comes next."""
    changes = max(len(view.hidden), len(view.marks))
    if changes > MOST_CHANGES or last * changes > MOST_LOOKS:
        raise Invalid(f"The view of this file has too many changes ({changes}).", next_step="Fork it, then export it.")
    ranges = view.hidden if view.reverted is None else (*view.hidden, view.reverted)
    within = all(1 <= low <= high <= last for low, high in ranges) and all(
        0 <= mark.at <= last and 1 <= mark.first <= last + 1 and 0 <= mark.summary <= last for mark in view.marks
    )
    if not within:
        raise Invalid(f"The view of this file goes beyond its items (1 to {last}).", next_step="Export it again.")


def _decode(line: bytes, kind: type[T], number: int) -> T:
    if len(line) > LARGEST_LINE:
        raise Invalid(f"Line {number} is larger than {LARGEST_LINE} bytes.")
    try:
        made: T = decode(line, kind)
        return made
    except msgspec.DecodeError as error:
        raise Invalid(f"Line {number} cannot be read: {error}.", next_step="Export the thread again.") from None
