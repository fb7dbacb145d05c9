"""Fan-out: one reading of the feed for everybody who watches; who was told that something is missing hears no more."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from quintet.domain.event import Draft, Event, ThreadUpdated
from quintet.engine.fanout import Fanout, Numbered
from tests.fakes.engine import Process
from tests.fakes.waiting import soon


async def say(process: Process, thread: str, title: str) -> None:
    await process.feed.append([Draft(ThreadUpdated(title=title), thread)])


class Watcher:
    def __init__(self, fanout: Fanout[str]) -> None:
        self.heard: asyncio.Queue[str] = asyncio.Queue()
        self.ended = asyncio.Event()
        self.leave = fanout.join("all", _titles, self._deliver, self.ended.set)

    def _deliver(self, titles: list[str]) -> None:
        for title in titles:
            self.heard.put_nowait(title)


def _titles(frames: Numbered[str]) -> list[str] | None:
    return [frame for _, frame in frames] or None


async def titles(events: Sequence[Event]) -> list[list[str]]:
    found = [e.payload.title or "" if isinstance(e.payload, ThreadUpdated) else "" for e in events]
    if "bad" in found:
        raise ValueError("cannot be projected")
    return [[title] if title else [] for title in found]


async def test_watchers_of_the_same_hear_the_same_and_whoever_left_hears_nothing(lone: Process) -> None:
    thread = await lone.thread()
    fanout = Fanout(lone.feed, titles)
    one, other = Watcher(fanout), Watcher(fanout)
    await say(lone, thread, "a")
    assert [await soon(w.heard.get()) for w in (one, other)] == ["a", "a"]
    one.leave()
    await say(lone, thread, "b")
    assert await soon(other.heard.get()) == "b"
    assert one.heard.empty()
    await fanout.close()
    assert other.ended.is_set()


async def test_whoever_comes_after_a_failure_is_told_what_happens_though_the_others_have_not_left_yet(
    lone: Process,
) -> None:
    thread = await lone.thread()
    defects: list[BaseException] = []
    fanout = Fanout(lone.feed, titles, defects.append)
    early = Watcher(fanout)
    await say(lone, thread, "bad")
    await soon(early.ended.wait())
    late = Watcher(fanout)
    await say(lone, thread, "good")
    assert await soon(late.heard.get()) == "good"
    assert early.heard.empty(), "it was told that something is missing, and heard what comes after that"
    early.leave()
    await say(lone, thread, "still")
    assert await soon(late.heard.get()) == "still"
    assert [str(defect) for defect in defects] == ["cannot be projected"]
    await fanout.close()
