"""Power loss: every write and sync of SQLite is recorded, then each state the disk could be in is opened again.

The harshest disk is assumed: whatever was not synced is gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from quintet.domain.event import KIND_BY_NAME, Durability, Event
from quintet.journal import StoredJournal, open_journal
from tests.unit.journal.nouns import DONE, a_request, a_thread, asked, everything, said, started, text_delta, yes

Entry = tuple[str, str, int, bytes]  # (what, file, offset, data)


class Disk(apsw.VFS):
    def __init__(self, log: list[Entry]) -> None:
        self.log = log
        super().__init__("recording", "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> RecordedFile:
        return RecordedFile(name, flags, self.log)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        self.log.append(("delete", filename, 0, b""))
        super().xDelete(filename, syncdir)


class RecordedFile(apsw.VFSFile):
    def __init__(self, name: str | apsw.URIFilename | None, flags: list[int], log: list[Entry]) -> None:
        self.name = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        self.log = log
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        super().xWrite(data, offset)
        self.log.append(("write", self.name, offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:
        super().xTruncate(newsize)
        self.log.append(("truncate", self.name, newsize, b""))

    def xSync(self, flags: int) -> None:
        super().xSync(flags)
        self.log.append(("sync", self.name, 0, b""))


def apply(entry: Entry, files: dict[str, bytearray]) -> None:
    what, name, at, data = entry
    content = files.setdefault(name, bytearray())
    if what == "write":
        content.extend(b"\0" * (at + len(data) - len(content)))
        content[at : at + len(data)] = data
    elif what == "truncate":
        del content[at:]
    elif what == "delete":
        content.clear()


def states(log: list[Entry]) -> Iterator[tuple[int, dict[str, bytes]]]:
    """After each sync: (place in the log, what is surely on disk)."""
    running: dict[str, bytearray] = {}
    durable: dict[str, bytes] = {}
    for n, entry in enumerate(log):
        if entry[0] in ("write", "truncate", "delete"):
            apply(entry, running)
        if entry[0] in ("sync", "delete"):
            durable[entry[1]] = bytes(running.get(entry[1], b""))
            yield n, dict(durable)


async def work(journal: StoredJournal) -> None:
    for n in range(6):
        thread, lease = await started(journal, text=f"{n}")
        journal.push([text_delta("itm_1", k, "word ") for k in range(40)], lease)
        request = a_request()
        await journal.append([asked(request), said("x" * 3000)], lease=lease)
        journal.push([text_delta("itm_2", 0, "more")], lease)
        await journal.tail()
        await journal.resolve(request.id, yes())
        await journal.finish(lease, DONE)
        if n == 3:
            await journal.prune(now_ms=1 << 50)
            await journal.delete_thread(thread.id)


@pytest.mark.req("reliability:R1", "mechanisms:M1.facts", "mechanisms:M1.ceiling")
async def test_no_acknowledged_fact_is_lost_at_any_sync_boundary(tmp_path: Path) -> None:
    log: list[Entry] = []
    disk = Disk(log)
    heard: dict[int, Event] = {}

    def hear(events: object) -> None:
        for event in events:  # type: ignore[attr-defined]
            heard[event.seq] = event
            log.append(("heard", "", event.seq, b""))

    try:
        journal = await open_journal(tmp_path / "home", protocol="test", vfs="recording", boot_id="first")
        ready = len(log)
        journal.listen(hear)
        await asyncio.wait_for(work(journal), 30)
        erased = len(log)
        await journal.close()
    finally:
        disk.unregister()
    boundaries = [(n, files) for n, files in states(log) if n >= ready]
    assert len(boundaries) > 30
    for place, (at, files) in enumerate(boundaries):
        until = boundaries[place + 1][0] if place + 1 < len(boundaries) else len(log)
        promised = [heard[e[2]] for e in log[:until] if e[0] == "heard"]
        await check(tmp_path / f"state{place}", files, promised, home=tmp_path / "home", gone=at > erased)


async def check(place: Path, files: dict[str, bytes], promised: list[Event], *, home: Path, gone: bool) -> None:
    place.mkdir()
    for name, content in files.items():
        if content:
            (place / Path(name).relative_to(home)).write_bytes(content)
    journal = await open_journal(place, protocol="test", boot_id="second")
    try:
        assert not journal.report.damaged
        found = {e.seq: e for e in await everything(journal)}
        deleted = {e.thread for e in found.values() if e.kind == "thread.deleted"}
        for event in promised:
            fact = KIND_BY_NAME[event.kind].durability is Durability.FACT
            if fact and (event.thread not in deleted or event.kind == "thread.deleted"):
                assert found.get(event.seq) == event
        await journal.create_thread(a_thread())
        newest = (await journal.marks()).last
        assert newest > max((e.seq for e in promised), default=0)
    finally:
        await journal.close()
