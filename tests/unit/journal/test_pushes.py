"""Deltas on their way into the file: together where they come together, alone where nothing follows, never lost."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from pathlib import Path

from quintet.domain import event as ev
from quintet.journal.codec import delta_sum, event_place, event_sum
from quintet.journal.sqlite import GATHERED
from tests.unit.journal.homes import opened
from tests.unit.journal.nouns import everything, started, text_delta


async def test_deltas_pushed_in_one_breath_are_one_commit(tmp_path: Path) -> None:
    journal = await opened(tmp_path)
    _, lease = await started(journal)
    heard: list[Sequence[ev.Event]] = []
    journal.listen(heard.append)
    for n in range(GATHERED):
        journal.push([text_delta("itm_1", n, "x")], lease)
    await journal.append([], lease=lease)
    assert [len(events) for events in heard] == [GATHERED]
    await journal.close()


async def test_a_delta_that_nothing_follows_is_committed_by_itself(tmp_path: Path) -> None:
    journal = await opened(tmp_path)
    _, lease = await started(journal)
    heard: asyncio.Queue[Sequence[ev.Event]] = asyncio.Queue()
    journal.listen(heard.put_nowait)
    for n in range(3):
        journal.push([text_delta("itm_1", n, "x")], lease)
        assert [e.payload for e in await asyncio.wait_for(heard.get(), 20)] == [ev.TextDelta("itm_1", n, "x")]
    await journal.close()


async def test_what_was_pushed_just_before_the_end_is_kept(tmp_path: Path) -> None:
    journal = await opened(tmp_path)
    thread, lease = await started(journal)
    journal.push([text_delta("itm_1", 0, "last words")], lease)
    await journal.close()
    again = await opened(tmp_path)
    assert ev.TextDelta("itm_1", 0, "last words") in [e.payload for e in await everything(again, thread.id)]
    await again.close()


def test_a_sum_covers_the_number_the_place_and_the_words() -> None:
    """In this very form: it is in every journal that there is."""
    said = b'["itm_1",0,"word"]'
    whole = b"7 1700000000000 text.delta thr_1 trn_1\n" + said
    wanted = int.from_bytes(hashlib.blake2b(whole, digest_size=8).digest(), "big", signed=True)
    assert event_sum(7, "text.delta", 1_700_000_000_000, "thr_1", "trn_1", said) == wanted
    assert delta_sum(7, event_place("text.delta", 1_700_000_000_000, "thr_1", "trn_1"), said) == wanted
