"""The events of one project, read without those of the others."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from quintet.domain.event import Event
from quintet.domain.thread import ThreadSettings
from quintet.journal import reading
from tests.fakes.engine import ME, House, Process


@pytest.fixture(params=["memory", "file"])
async def process(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Process]:
    house = House(request.param, tmp_path / "home")
    yield await house.process()
    await house.close()


async def threads(process: Process, *directories: str) -> list[str]:
    made = [await process.threads.create(ThreadSettings(d), project=d) for d in directories]
    return [thread.id for thread in made]


async def all_of(process: Process, project: str, limit: int) -> list[Event]:
    found: list[Event] = []
    after, more = 0, True
    while more:
        page = await process.journal.events_of(project, after, limit=limit)
        assert page.through > after or not page.more, "it gets on"
        found += page.events
        after, more = page.through, page.more
    return found


@pytest.mark.parametrize("limit", [1, 3, 500])
@pytest.mark.parametrize("looked", [1, 7, 50_000])
async def test_pages_hold_what_is_of_the_project_or_of_nobody_and_all_of_it(
    process: Process, limit: int, looked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MOST_LOOKED_THROUGH", looked)
    one, two, again = await threads(process, "/one", "/two", "/one")
    for thread in (one, two, again, two):
        await process.run(thread)
    await process.threads.delete(again, ME)
    every = await process.events()
    projects = {thread: await process.journal.project_of(thread) for thread in (one, two, again)}
    assert projects[one] == projects[again] != projects[two]
    for project in (projects[one], projects[two]):
        wanted = [event for event in every if not event.root or projects[event.root] == project]
        assert 0 < len(wanted) < len(every)
        assert await all_of(process, project, limit) == wanted


async def test_a_project_without_events_has_those_of_nobody(process: Process) -> None:
    await process.run((await threads(process, "/one"))[0])
    page = await process.journal.events_of("prj_of_nobody", 0)
    assert {event.root for event in page.events} <= {""}
    assert (page.through, page.more) == ((await process.journal.marks()).last, False)
