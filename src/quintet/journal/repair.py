"""Repair: look at a damaged journal, keep a copy of it as it is, and put in its place what can be salvaged.

Nothing is destroyed: the old files are copied and synced before the first of them is touched.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import struct
import time
from pathlib import Path

import apsw
import msgspec

from quintet.domain.errors import Busy, QuintetError, StorageDamaged, VersionMismatch
from quintet.journal import owners
from quintet.journal.checking import Found, Progress, look_at
from quintet.journal.faults import as_storage_error
from quintet.journal.home import Home, private_directory, this_boot
from quintet.journal.migration import APPLICATION_ID, CURRENT, bring_up
from quintet.journal.opening import connect, escaped, open_journal
from quintet.journal.pages import MAGIC, Pages
from quintet.journal.repair_files import (
    Scratch,
    check_room,
    exchange,
    finish_exchange,
    keep_copy,
    need,
    private_file,
    sync,
)
from quintet.journal.salvage import Salvaged, salvage

_ANEW = "Begin with an empty journal with `quintet repair --start-anew`; the old files are kept in backups/."


class Report(msgspec.Struct):
    """What repair found and did. `outcome`: healthy, repaired, unchanged (nothing more can be salvaged), started-anew;
    in a dry run what it would have been."""

    outcome: str
    dry_run: bool = False
    why: str = ""
    kept: dict[str, int] = {}
    lost: dict[str, int] = {}
    damaged_events: int = 0
    damaged_items: int = 0
    recovered_threads: int = 0
    unnamed_threads: int = 0
    unreadable_pages: int = 0
    lost_frames: int = 0
    copied_to: str = ""


async def repair(
    home: Path, *, dry_run: bool = False, start_anew: bool = False, progress: Progress = lambda _, __, ___: None
) -> Report:
    """Whoever calls holds the server's lock. Raises Busy while anybody else uses the home."""
    place = Home(home)
    try:
        return await asyncio.to_thread(_repair, place, progress, dry_run=dry_run, start_anew=start_anew)
    except (apsw.Error, OSError, UnicodeDecodeError) as error:
        raise as_storage_error(error) from error


def _repair(place: Home, progress: Progress, *, dry_run: bool, start_anew: bool) -> Report:
    if not os.path.isdir(place.path):
        raise StorageDamaged(f"There is no journal in {place.path}.", next_step="Name its home with `--home`.")
    private_directory(place.run)
    with owners.Gate(place.run), Scratch(place) as scratch:
        _refuse_the_living(place)
        finish_exchange(place)
        pages = Pages(place.database, place.log)
        try:
            before = _before(place, pages, scratch, progress)
            if before.whole and not pages.walked.lost:
                return Report("healthy", dry_run, kept=before.rows)
            check_room(place)
            found, after = _rebuilt(pages, scratch.new, progress)
        finally:
            pages.close()
        if not found.read:
            return _anew(place, before, dry_run=dry_run, start_anew=start_anew)
        report = _told(before, found, after, pages, dry_run=dry_run)
        if report.outcome == "repaired" and not dry_run:
            _prove(place, scratch.new)
            report.copied_to = keep_copy(place)
            exchange(place, scratch.new, report.copied_to)
        return report


def _refuse_the_living(place: Home) -> None:
    living = owners.living(place.run)
    if living:
        who = ", ".join(f"{o.protocol or 'quintet'} (pid {o.pid})" for o in living)
        raise Busy(
            f"The journal cannot be repaired while other processes use it: {who}.",
            next_step="End them, then run `quintet repair` again.",
            owners=[o.id for o in living],
        )


def _before(place: Home, pages: Pages, scratch: Scratch, progress: Progress) -> Found:
    """What the journal is like now. SQLite must not fold the log in yet, so it reads a file that has it already."""
    if pages.count == 0:
        return Found(wrong="There is no journal." if not os.path.exists(place.database) else "The file is empty.")
    if pages.page(1)[:16] != MAGIC:
        return Found(wrong="The file does not begin as a database does.")
    if pages.short:
        return Found(wrong="The file ends too early.")
    path = place.database
    try:
        if pages.laid_over:
            need(place, pages.count * pages.size)
            path = scratch.image
            with open(private_file(path), "wb") as image:
                for number in range(1, pages.count + 1):
                    image.write(pages.page(number).ljust(pages.size, b"\0"))
        connection = connect(f"file:{escaped(path)}?immutable=1", apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    except apsw.Error as error:
        return Found(wrong=str(error))
    try:
        _refuse_newer(pages.page(1)[:100])
        found = look_at(connection, progress)
        head = struct.unpack(">I", pages.page(1)[68:72])
        if head != (APPLICATION_ID,) and not found.wrong:
            found.wrong = "The file does not say that it is Quintet's journal."
        return found
    finally:
        connection.close()


def _refuse_newer(head: bytes) -> None:
    version, application = struct.unpack(">I", head[60:64])[0], struct.unpack(">I", head[68:72])[0]
    if head[:16] == MAGIC and application == APPLICATION_ID and version > CURRENT.version:
        raise VersionMismatch(f"The journal was written by a newer Quintet (format {version}).", found=version)


def _rebuilt(pages: Pages, path: str, progress: Progress) -> tuple[Salvaged, Found]:
    os.close(private_file(path))
    new = connect(path)
    try:
        new.execute("PRAGMA secure_delete = ON").fetchall()
        new.execute("PRAGMA synchronous = OFF")  # synced as a whole, before it gets its name
        bring_up(new, Home(Path(os.path.dirname(path))), CURRENT, [], this_boot())
        found = salvage(pages, new, time.time_ns() // 1_000_000, progress)
        after = look_at(new, progress)
        if found.read and after.wrong:
            raise StorageDamaged(f"What was salvaged is no whole journal: {after.wrong}", next_step="Keep the files.")
        new.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        new.close()
    sync(path)
    return found, after


def _told(before: Found, found: Salvaged, after: Found, pages: Pages, *, dry_run: bool) -> Report:
    gains = before.wrong or before.undecoded or before.misfits or found.recovered_threads or pages.walked.lost
    same = (before.damaged_events, before.damaged_items) == (after.damaged_events, after.damaged_items)
    return Report(
        "repaired" if gains or not same else "unchanged",
        dry_run,
        before.wrong or _why(before, pages),
        {t: n for t, n in after.rows.items() if t != "counter"},
        found.lost,
        after.damaged_events,
        after.damaged_items,
        found.recovered_threads,
        found.unnamed_threads,
        found.unreadable_pages,
        pages.walked.lost,
    )


def _why(before: Found, pages: Pages) -> str:
    if pages.walked.lost:
        return "The log has a bad frame."
    if before.damaged_events or before.damaged_items or before.undecoded or not before.misfits:
        return "Some rows do not match their checksums."
    return "The search words do not fit the items."


def _anew(place: Home, before: Found, *, dry_run: bool, start_anew: bool) -> Report:
    if not start_anew:
        raise StorageDamaged(f"Nothing can be salvaged from {place.database}: {before.wrong}", next_step=_ANEW)
    report = Report("started-anew", dry_run, before.wrong)
    if not dry_run:
        report.copied_to = keep_copy(place)
        exchange(place, "", report.copied_to)
    return report


def _prove(place: Home, new: str) -> None:
    """Open it as everybody will, in a place of its own, before anything is exchanged."""
    trial = Path(place.run) / "repair-trial"
    shutil.rmtree(trial, ignore_errors=True)
    private_directory(str(trial))
    try:
        os.link(new, trial / "quintet.db")
        asyncio.run(_opens(trial))
        sync(new)  # opening has written to it
    except (QuintetError, apsw.Error, OSError) as error:
        raise StorageDamaged(
            f"What was salvaged does not open ({as_storage_error(error).message}); nothing was changed.",
            next_step="Keep the files and report this.",
        ) from error
    finally:
        shutil.rmtree(trial, ignore_errors=True)


async def _opens(home: Path) -> None:
    journal = await open_journal(home, protocol="repair")
    try:
        await journal.marks()
        if journal.report.read_only:
            raise StorageDamaged("The new journal can only be read.")
    finally:
        await journal.close()
