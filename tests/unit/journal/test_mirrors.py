"""Rows of mirrors, names that move to another thread, items put behind others: on both stores."""

from __future__ import annotations

import pytest

from quintet.domain.errors import Busy, Conflict
from quintet.domain.item import Item, user_text
from quintet.domain.mirror import Mirror
from quintet.domain.thread import Handle
from quintet.journal import StoredJournal
from quintet.journal.repair import repair
from tests.unit.journal.conftest import Processes
from tests.unit.journal.homes import database
from tests.unit.journal.nouns import DONE, a_thread, started

NAME = Handle("wire", "share\nwork", "s1")


@pytest.mark.req("mechanisms:M6.rows")
async def test_a_mirror_is_kept_by_its_path_and_goes_with_its_thread(journal: StoredJournal) -> None:
    thread = await journal.create_thread(a_thread(), handle=NAME)
    assert await journal.mirror("/a") is None
    await journal.put_mirror(Mirror("/a", "wire", thread.id, 7, 100, "f" * 64))
    await journal.put_mirror(Mirror("/b", "wire", thread.id))
    changed = Mirror("/a", "wire", thread.id, 9, 120, "e" * 64)
    await journal.put_mirror(changed)
    assert await journal.mirror("/a") == changed
    assert await journal.mirrors(thread.id) == [changed, Mirror("/b", "wire", thread.id)]
    await journal.delete_thread(thread.id)
    assert await journal.mirror("/a") is None
    assert await journal.mirrors(thread.id) == []


@pytest.mark.req("mechanisms:M6.rows", "reliability:R21")
async def test_a_home_of_schema_3_gets_its_mirrors_and_a_repair_keeps_them(files: Processes) -> None:
    journal = await files.another()
    thread = await journal.create_thread(a_thread(), handle=NAME)
    await files.close()
    assert files.home is not None
    with database(files.home) as raw:
        raw.execute("DROP TABLE mirrors; PRAGMA user_version = 3")
    journal = await files.another()
    assert journal.report.migrated_from == 3
    row = Mirror("/a", "wire", thread.id, 7, 100, "f" * 64)
    await journal.put_mirror(row)
    await files.close()
    await repair(files.home)
    journal = await files.another()
    assert await journal.mirror("/a") == row


@pytest.mark.req("mechanisms:M7.handles", "mechanisms:M6.foreign")
async def test_a_name_can_be_taken_by_a_new_thread_in_the_same_commit(journal: StoredJournal) -> None:
    first = await journal.create_thread(a_thread(), handle=NAME)
    with pytest.raises(Conflict):
        await journal.create_thread(a_thread(), handle=NAME)
    second = await journal.create_thread(a_thread(), handle=NAME, takes_name=True)
    assert await journal.handles(first.id) == []
    (found,) = await journal.handles(second.id)
    assert (found.thread, found.external_id, found.deleted_ms) == (second.id, "s1", 0)
    named = await journal.find_handle("wire", NAME.scope, "s1")
    assert named == found


@pytest.mark.req("mechanisms:M6.foreign")
async def test_items_are_put_behind_others_while_the_thread_rests(journal: StoredJournal) -> None:
    thread, lease = await started(journal)
    given = [Item(f"itm_{n}", thread.id, "", 0, 1, user_text(str(n))) for n in range(2)]
    with pytest.raises(Busy):
        await journal.add_items(thread.id, given)
    await journal.finish(lease, DONE)
    await journal.add_items(thread.id, given)
    assert [i.ordinal for i in await journal.items(thread.id)] == [1, 2, 3]
