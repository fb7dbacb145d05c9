"""The audit chain: every tampering is found, an erasure breaks nothing, and no row carries a word of its event."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
from msgspec.structs import replace

from quintet.domain import event as ev
from quintet.domain.decoding import decode
from quintet.domain.errors import Invalid, NotFound
from quintet.domain.event import KINDS, Draft
from quintet.domain.grant import Scope
from quintet.domain.thread import Thread
from quintet.journal.audit import MOST_FLAWS
from quintet.journal.codec import encode
from quintet.journal.emitting import emit
from quintet.journal.opening import open_journal
from quintet.journal.packing import unpacked
from quintet.journal.repair import repair
from quintet.journal.stored import StoredJournal
from quintet.journal.transaction import Transaction
from tests.unit.journal.conftest import Processes
from tests.unit.journal.nouns import (
    DONE,
    a_call,
    a_grant,
    a_request,
    a_thread,
    a_turn,
    an_intent,
    asked,
    said,
    started,
    yes,
)

SECRET = "the words of zanzibar"
Tamper = Callable[[apsw.Connection], object]


async def filled(journal: StoredJournal, turns: int = 3) -> list[str]:
    threads = []
    for n in range(turns):
        thread = await journal.create_thread(a_thread())
        turn = (await journal.enqueue(a_turn(thread.id, f"{SECRET} {n}", runner=journal.owner))).turn
        lease = await journal.claim(turn.id, mode="ask", model="m/m")
        await journal.append([a_call("c1"), an_intent("c1", title=SECRET), said("answer")], lease=lease)
        await journal.append([Draft(ev.ToolFinished("c1", "shell", ev.ResultStatus.OK))], lease=lease)
        await journal.finish(lease, DONE)
        threads.append(thread.id)
    return threads


@pytest.mark.req("security:S53")
async def test_a_chain_nobody_touched_is_whole_and_names_every_audited_event(journal: StoredJournal) -> None:
    await filled(journal)
    found = await journal.verify_audit()
    assert found.flaws == ()
    rows = await journal.audit(limit=1000)
    audited = {kind.name for kind in KINDS if kind.audited}
    events = [e for e in await journal.events(0, limit=1000) if e.kind in audited]
    assert [(r.seq, r.kind, r.at_ms, r.thread) for r in rows[1:]] == [
        (e.seq, e.kind, e.at_ms, e.thread) for e in events
    ]
    assert (rows[0].kind, found.rows, found.head) == ("chain.begun", len(rows), rows[-1])
    assert len(events) == 18


@pytest.mark.req("security:S53")
async def test_erasing_a_thread_leaves_the_chain_whole_and_nothing_of_its_words_in_it(journal: StoredJournal) -> None:
    first, *_ = await filled(journal)
    before = await journal.audit(limit=1000)
    await journal.delete_thread(first)
    found = await journal.verify_audit()
    assert found.flaws == ()
    after = await journal.audit(limit=1000)
    assert after[: len(before)] == before
    assert after[-1].kind == "thread.deleted"
    for row in after:
        assert SECRET not in repr(row)


@pytest.mark.req("security:S53")
async def test_two_processes_write_one_chain(processes: Processes) -> None:
    here, there = await processes.another(), await processes.another()
    for _ in range(3):
        await filled(here, 1)
        await filled(there, 1)
    found = await here.verify_audit()
    assert (found.flaws, found.rows) == ((), 1 + 6 * 6)


@pytest.mark.req("security:S53")
async def test_what_is_taken_back_leaves_no_trace_in_the_chain(journal: StoredJournal) -> None:
    (thread,) = await filled(journal, 1)

    def half(tx: Transaction) -> None:
        emit(tx, ev.ThreadUpdated(title="never"), thread)
        tx.rows.audit(0, 1)  # whoever looks has it written first
        raise Invalid("half way")

    with pytest.raises(Invalid):
        await journal.store.write("append", half)
    await filled(journal, 1)
    found = await journal.verify_audit()
    assert (found.flaws, found.rows) == ((), 1 + 2 * 6)


@pytest.mark.req("security:S53")
async def test_a_head_noted_earlier_is_found_again_and_a_forged_chain_does_not_hold_it(journal: StoredJournal) -> None:
    await filled(journal)
    head = (await journal.verify_audit()).head
    assert head is not None
    await filled(journal)
    assert (await journal.verify_audit(head.name)).whole
    (flaw,) = (await journal.verify_audit(f"{head.number}:{'0' * 64}")).flaws
    assert "noted" in flaw.words


def _swap(raw: apsw.Connection) -> None:
    raw.execute("UPDATE audit SET number = -number WHERE number IN (5, 6)")
    raw.execute("UPDATE audit SET number = CASE number WHEN -5 THEN 6 ELSE 5 END WHERE number < 0")


def _without_a_thread(raw: apsw.Connection) -> None:
    """All that was said and done in the first thread, and that there was such a thread."""
    ((key,),) = raw.execute("SELECT min(key) FROM threads").fetchall()
    raw.execute("DELETE FROM events WHERE root = ?; DELETE FROM threads WHERE key = ?", (key, key))


def _marked_deleted(raw: apsw.Connection) -> None:
    ((key, body),) = raw.execute("SELECT key, body FROM threads ORDER BY key LIMIT 1").fetchall()
    gone = encode(replace(decode(unpacked(body), Thread), deleted_ms=1))
    raw.execute("UPDATE threads SET deleted_ms = 1, body = ? WHERE key = ?", (gone, key))
    raw.execute("DELETE FROM events WHERE root = ?", (key,))


TAMPERINGS: dict[str, tuple[Tamper, str]] = {
    "a digest": (lambda raw: raw.execute("UPDATE audit SET digest = zeroblob(32) WHERE number = 4"), "changed"),
    "a link": (lambda raw: raw.execute("UPDATE audit SET link = zeroblob(32) WHERE number = 4"), "changed"),
    "a kind": (lambda raw: raw.execute("UPDATE audit SET kind = 'grant.made' WHERE number = 4"), "changed"),
    "a time": (lambda raw: raw.execute("UPDATE audit SET at_ms = at_ms + 1 WHERE number = 4"), "changed"),
    "a thread": (lambda raw: raw.execute("UPDATE audit SET thread = 'thr_x' WHERE number = 4"), "changed"),
    "the newest row's time": (
        lambda raw: raw.execute("UPDATE audit SET at_ms = 1 WHERE number = (SELECT max(number) FROM audit)"),
        "changed",
    ),
    "one row gone": (lambda raw: raw.execute("DELETE FROM audit WHERE number = 4"), "missing"),
    "several rows gone": (lambda raw: raw.execute("DELETE FROM audit WHERE number IN (4, 5, 6)"), "missing"),
    "the first row gone": (lambda raw: raw.execute("DELETE FROM audit WHERE number = 1"), "missing"),
    "the end cut off": (lambda raw: raw.execute("DELETE FROM audit WHERE number > 9"), "should be in the chain"),
    "all rows gone": (lambda raw: raw.execute("DELETE FROM audit"), "gone"),
    "two rows exchanged": (_swap, "changed"),
    "its beginning moved": (lambda raw: raw.execute("UPDATE audit SET seq = 9 WHERE number = 1"), "changed"),
    "an event's words": (
        lambda raw: raw.execute(
            "UPDATE events SET body = replace(CAST(body AS TEXT), 'zanzibar', 'elsewhere') WHERE kind = "
            "(SELECT code FROM kinds WHERE name = 'tool.started')"
        ),
        "was changed",
    ),
    "an event gone": (
        lambda raw: raw.execute(
            "DELETE FROM events WHERE seq = (SELECT max(seq) FROM audit WHERE kind = 'tool.started')"
        ),
        "was removed",
    ),
    "a thread with all its events": (_without_a_thread, "6 events from row 2 on were removed with the thread"),
    "a thread that looks deleted": (_marked_deleted, "whose deletion is not in the chain"),
}


@pytest.mark.req("security:S53")
@pytest.mark.parametrize("name", TAMPERINGS)
async def test_every_tampering_is_found(files: Processes, name: str) -> None:
    tamper, words = TAMPERINGS[name]
    await filled(await files.another())
    await files.close()
    assert files.home is not None
    _change(files.home, tamper)
    found = await (await files.another()).verify_audit()
    assert any(words in flaw.words for flaw in found.flaws), found.flaws


@pytest.mark.req("security:S53")
async def test_of_many_flaws_the_first_are_listed_and_all_are_counted(files: Processes) -> None:
    await filled(await files.another(), turns=8)
    await files.close()
    assert files.home is not None
    _change(files.home, lambda raw: raw.execute("DELETE FROM audit WHERE number > 2"))
    journal = await files.another()
    found = await journal.verify_audit("9:noted")
    missing = list(await journal.store.read(lambda rows: list(rows.unaudited_events(0, 1 << 60))))
    assert len(missing) > MOST_FLAWS
    assert "noted" in found.flaws[0].words
    assert [flaw.words for flaw in found.flaws[1:3]] == [
        f"event {seq} should be in the chain and is not" for seq in missing[:2]
    ]
    assert len(found.flaws) == MOST_FLAWS
    assert found.more_flaws == len(missing) + 1 - MOST_FLAWS


def _change(home: Path, tamper: Tamper) -> None:
    raw = apsw.Connection(str(home / "quintet.db"))
    tamper(raw)
    raw.close()


@pytest.mark.req("security:S53")
async def test_any_flipped_bit_in_any_row_of_the_chain_is_found(files: Processes) -> None:
    await filled(await files.another())
    await files.close()
    assert files.home is not None
    raw = apsw.Connection(str(files.home / "quintet.db"))
    rows = [r for r in raw.execute("SELECT number, digest, link FROM audit").fetchall() if r[0] > 1]
    dice = random.Random(53)
    for number, digest, link in rows:
        column, value = dice.choice((("digest", digest), ("link", link)))
        flipped = bytearray(value)
        flipped[dice.randrange(32)] ^= 1 << dice.randrange(8)
        raw.execute(f"UPDATE audit SET {column} = ? WHERE number = ?", (bytes(flipped), number))
        journal = await files.another()
        assert not (await journal.verify_audit()).whole, (number, column)
        raw.execute(f"UPDATE audit SET {column} = ? WHERE number = ?", (value, number))
    raw.close()
    assert (await (await files.another()).verify_audit()).whole


@pytest.mark.req("security:S53", "reliability:R21")
async def test_a_home_of_schema_2_begins_its_chain_where_it_stands(files: Processes) -> None:
    await filled(await files.another())
    await files.close()
    assert files.home is not None
    _change(files.home, lambda raw: raw.execute("DROP TABLE audit; PRAGMA user_version = 2"))
    journal = await files.another()
    assert journal.report.migrated_from == 2
    (begun,) = await journal.audit()
    assert begun.seq == (await journal.marks()).last
    await filled(journal, 1)
    found = await journal.verify_audit()
    assert (found.flaws, found.rows) == ((), 7)


@pytest.mark.req("security:S53")
async def test_an_event_of_no_thread_cannot_be_removed_unseen(files: Processes) -> None:
    """A grant that holds everywhere outlives its thread, and so does the word that it was revoked."""
    journal = await files.another()
    _, lease = await started(journal)
    request = a_request()
    await journal.append([asked(request)], lease=lease)
    grant = a_grant(scope=Scope.ALWAYS)
    await journal.resolve(request.id, yes(), grant=grant)
    await journal.finish(lease, DONE)
    await journal.revoke_grant(grant.id)
    await files.close()
    assert files.home is not None
    _change(files.home, lambda raw: raw.execute("DELETE FROM events WHERE seq = (SELECT max(seq) FROM audit)"))
    found = await (await files.another()).verify_audit()
    assert [flaw.words for flaw in found.flaws] == [f"the event of row {found.rows} (grant.revoked) was removed"]


@pytest.mark.req("security:S53")
async def test_a_repaired_home_of_schema_2_begins_its_chain_too(files: Processes) -> None:
    await filled(await files.another())
    await files.close()
    assert files.home is not None
    damage = "UPDATE threads SET body = x'00' WHERE key = 1"
    _change(files.home, lambda raw: raw.execute(f"DROP TABLE audit; PRAGMA user_version = 2; {damage}"))
    assert (await repair(files.home)).outcome == "repaired"
    journal = await files.another()
    await filled(journal, 1)
    found = await journal.verify_audit()
    assert (found.flaws, found.rows) == ((), 7)


@pytest.mark.req("security:S53")
async def test_a_chain_that_a_repair_could_not_save_does_not_pass_for_whole(files: Processes) -> None:
    await filled(await files.another())
    await files.close()
    assert files.home is not None
    _change(files.home, lambda raw: raw.execute("DELETE FROM audit; UPDATE threads SET body = x'00' WHERE key = 1"))
    assert (await repair(files.home)).outcome == "repaired"
    assert not (await (await files.another()).verify_audit()).whole


async def test_a_home_of_schema_2_that_can_only_be_read_says_that_it_has_no_chain(files: Processes) -> None:
    await filled(await files.another())
    await files.close()
    assert files.home is not None
    _change(files.home, lambda raw: raw.execute("DROP TABLE audit; PRAGMA user_version = 2"))
    journal = await open_journal(files.home, protocol="test", read_only=True)
    for asking in (journal.verify_audit(), journal.audit()):
        with pytest.raises(NotFound, match="no audit chain yet"):
            await asking
    await journal.close()


async def test_many_audited_facts_of_one_commit_are_one_chain(journal: StoredJournal) -> None:
    """More than go into one statement, and one that is refused half way among them."""
    _, lease = await started(journal)
    many = [Draft(ev.ToolFinished(f"c{n}", "shell", ev.ResultStatus.OK)) for n in range(200)]
    refused = journal.append([*many, Draft(ev.ToolFinished("x", "x", ev.ResultStatus.OK), "thr_gone")], lease=lease)
    both = await asyncio.gather(journal.append(many, lease=lease), refused, return_exceptions=True)
    assert [isinstance(one, Exception) for one in both] == [False, True]
    found = await journal.verify_audit()
    assert (found.flaws, found.rows) == ((), 1 + 3 + 200)
