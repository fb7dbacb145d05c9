"""A session file as items: what Kward itself, or a client, wrote. Data from outside: every line is looked at.

Nothing in it is executed, granted or sent anywhere by reading it. Lines that cannot be read are passed over, as Kward
does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from quintet.domain import item as it
from quintet.domain.ids import new_id
from quintet.domain.view import Mark, View
from quintet.protocols.kward.message_import import bodies
from quintet.protocols.kward.messages import Message, messages
from quintet.protocols.kward.times import ms_of

LARGEST = 256 * 1024 * 1024
Record = dict[str, Any]
_ENTRIES = ("message", "compaction", "branch_summary")


class Read(Struct, frozen=True):
    """What a file says."""

    id: str
    cwd: str
    created_ms: int
    name: str
    parent_id: str
    parent_path: str
    said: tuple[tuple[int, it.Body], ...]  # (when, what)
    marks: tuple[Mark, ...]

    def items(self) -> list[it.Item]:
        return [it.Item(new_id("itm"), "", "", n, at, body) for n, (at, body) in enumerate(self.said, start=1)]

    def messages(self) -> list[Message]:
        return messages(self.items())

    def view(self) -> View:
        return View(marks=self.marks)


def read(data: bytes) -> Read | None:
    """None for what is no session file."""
    if len(data) > LARGEST:
        return None
    found = list(records(data))
    head = found[0] if found else {}
    if head.get("type") != "session" or not isinstance(head.get("id"), str) or not head["id"]:
        return None
    named = [record.get("name") for record in found if record.get("type") == "session_info" and "name" in record]
    telling = _Telling(found)
    for record in branch(found):
        telling.take(record)
    return Read(
        head["id"],
        _text(head, "cwd"),
        ms_of(head.get("timestamp")),
        str(named[-1] or "") if named else "",
        _text(head, "parentId"),
        _text(head, "parentPath"),
        tuple(telling.said),
        tuple(telling.marks),
    )


def records(data: bytes) -> Iterator[Record]:
    for text in data.split(b"\n"):
        if text.strip():
            try:
                record = msgspec.json.decode(text)
            except (msgspec.DecodeError, RecursionError):
                continue
            if isinstance(record, dict):
                yield record


def branch(found: list[Record]) -> list[Record]:
    """The entries of the conversation: in file order without ids, else back from where the file last stood. One that
    names no id, or an entry that cannot be read, follows what stands before it: nothing is lost for a damaged line."""
    entries: list[Record] = []
    places: dict[Any, int] = {}  # by id
    before: list[int] = []  # of each entry; none is -1
    here = -1
    for record in found:
        if record.get("type") == "leaf":
            target = record.get("targetId")
            here = places.get(target, here) if isinstance(target, str) else -1
        elif record.get("type") in _ENTRIES:
            before.append(_before(record, here, len(entries) - 1, places))
            here = len(entries)
            entries.append(record)
            if isinstance(record.get("id"), str):
                places[record["id"]] = here
    way: list[Record] = []
    while here >= 0:
        way.append(entries[here])
        here = before[here]
    return way[::-1]


def _before(record: Record, here: int, last: int, places: dict[Any, int]) -> int:
    if not isinstance(record.get("id"), str):
        return here
    parent = record.get("parentId")
    return places.get(parent, last) if isinstance(parent, str) else -1


class _Telling:
    """Entry by entry: items, and where compactions left off."""

    def __init__(self, found: list[Record]) -> None:
        ends = [record for record in found if record.get("type") == "tool_execution_end"]
        self._ends = {record.get("toolCallId"): record for record in ends}
        self._names: dict[str, str] = {}
        self._first: dict[str, int] = {}  # by record: the ordinal of its first item
        self._live: list[int] = []  # the same of each message that the model still reads
        self.said: list[tuple[int, it.Body]] = []
        self.marks: list[Mark] = []

    def take(self, record: Record) -> None:
        message = record.get("message")
        at_ms = ms_of(record.get("timestamp"))
        if record["type"] == "branch_summary":
            message = {"role": "user", "content": _text(record, "summary")}
        if not isinstance(message, dict):
            return
        if message.get("role") == "compactionSummary":
            self._compaction(message, at_ms)
            return
        place = len(self.said) + 1
        made = bodies(message, self._names, self._ends)
        self.said += [(at_ms, body) for body in made]
        if made:
            self._live.append(place)
            if isinstance(record.get("id"), str):
                self._first[record["id"]] = place

    def _compaction(self, message: Record, at_ms: int) -> None:
        self.said.append((at_ms, it.Summary(_text(message, "summary"))))
        here = len(self.said)
        first = self._kept(message.get("first_kept_entry_id"), here + 1)
        self.marks.append(Mark(here, first, here))
        self._live = [here, *(place for place in self._live if place >= first)]

    def _kept(self, entry: Any, otherwise: int) -> int:
        """Where the kept part begins: named by its record, or counted in what the model read then."""
        if not isinstance(entry, str):
            return otherwise
        if entry in self._first:
            return self._first[entry]
        number = entry.removeprefix("message:")
        if entry.startswith("message:") and number.isascii() and number.isdigit() and int(number) < len(self._live):
            return self._live[int(number)]
        return otherwise


def _text(record: Record, name: str) -> str:
    value = record.get(name)
    return value if isinstance(value, str) else ""
