"""Work on the disk, seen from the event loop."""

from __future__ import annotations

import asyncio
import threading

import pytest

from quintet.workspace.files import on_disk

WITHIN_S = 30


@pytest.mark.parametrize("cancels", [1, 2, 3])
async def test_however_often_it_is_cancelled_the_work_has_ended_when_the_caller_hears_of_it(cancels):
    begun, go_on, over = threading.Event(), threading.Event(), []

    def work() -> None:
        begun.set()
        go_on.wait(WITHIN_S)
        over.append(True)

    task = asyncio.ensure_future(on_disk(work))
    while not begun.is_set():
        await asyncio.sleep(0)
    for _ in range(cancels):
        task.cancel()
        for _ in range(5):
            await asyncio.sleep(0)
        assert not task.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, WITHIN_S)
    assert over == [True]


async def test_what_the_work_gives_or_raises_comes_back():
    assert await on_disk(int, "7") == 7
    with pytest.raises(ValueError, match="invalid literal"):
        await on_disk(int, "x")
