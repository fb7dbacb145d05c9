"""Homes with a journal in them, made, opened and looked into by tests."""

from __future__ import annotations

import os
from pathlib import Path

import apsw
import pytest

from quintet.domain import event as ev
from quintet.journal import StoredJournal, open_journal
from tests.unit.journal.nouns import (
    DONE,
    a_request,
    a_thread,
    asked,
    everything,
    said,
    started,
    text_delta,
    yes,
)


def database(home: Path) -> apsw.Connection:
    return apsw.Connection(str(home / "quintet.db"))


async def opened(home: Path, **how: object) -> StoredJournal:
    return await open_journal(home, protocol="test", **how)  # type: ignore[arg-type]


async def filled(home: Path, turns: int = 3) -> list[ev.Event]:
    """A closed journal with some turns in it."""
    journal = await opened(home)
    for n in range(turns):
        _, lease = await started(journal, text=f"question {n}")
        journal.push([text_delta("itm_1", k, f"word{k} ") for k in range(5)], lease)
        request = a_request()
        await journal.append([asked(request), said(f"answer {n}")], lease=lease)
        await journal.resolve(request.id, yes())
        await journal.finish(lease, DONE)
    found = await everything(journal)
    await journal.close()
    return found


def first_with(raw: apsw.Connection, text: str) -> list[int]:
    found = raw.execute("SELECT min(seq) FROM events WHERE instr(CAST(body AS TEXT), ?)", (text,)).fetchall()
    return [row[0] for row in found]


async def with_log(home: Path, commits: int) -> tuple[bytes, bytes]:
    """(main file, log) as a killed process leaves them: that many commits, none of them folded in."""
    journal = await opened(home)
    await journal.create_thread(a_thread())
    await journal.close()
    journal = await opened(home)
    for _ in range(commits):
        await journal.create_thread(a_thread())
    pair = (home / "quintet.db").read_bytes(), (home / "quintet.db-wal").read_bytes()
    await journal.close()
    return pair


def watch_syncs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of everything that is synced from now on, by Quintet itself."""
    synced: list[str] = []
    real = os.fsync

    def fsync(fd: int) -> None:
        real(fd)
        synced.append(os.readlink(f"/proc/self/fd/{fd}"))

    monkeypatch.setattr(os, "fsync", fsync)
    return synced


def put(home: Path, main: bytes, log: bytes) -> None:
    (home / "quintet.db").write_bytes(main)
    (home / "quintet.db-wal").write_bytes(log)
    (home / "quintet.db-shm").unlink(missing_ok=True)
