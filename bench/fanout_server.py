"""`python -m bench.fanout_server ours|bare HOME COUNT EVENTS`: many streams, one event at a time to all of them.

Both sides wait until an event has gone out to everybody before the next one, so that nothing is saved by joining. Says
its port, waits until all are there, and then how many frames it delivered in a second; `ours` says its memory before
and after they came, too.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from bench.measure import rss_mib


def say(**words: Any) -> None:
    print(json.dumps(words), flush=True)


async def ours(home: Path, count: int, events: int) -> None:
    from quintet.app import open_app
    from quintet.domain.event import Draft, ThreadUpdated
    from quintet.domain.thread import ThreadSettings
    from quintet.serving.server import Wish, serving

    async with (
        open_app(str(home), "serve") as app,
        serving(app, Wish(knp_port=0, roots=(str(home.parent),)), dict(os.environ)) as server,
    ):
        face = server.faces["knp"]
        thread = await app.threads.create(ThreadSettings(str(home.parent)))
        await app.threads.rename(thread.id, "first")
        before = rss_mib()
        say(port=int(server.url.rpartition(":")[2]), token=server.token)
        await _until(lambda: len(face.streams) == count)
        await asyncio.sleep(1.0)
        say(idle_mib=rss_mib() - before)
        began = time.perf_counter()
        for n in range(events):
            sent = sum(stream.sent for stream in face.streams)
            await app.feed.append([Draft(ThreadUpdated(title=f"title {n}"), thread.id)])
            while sum(stream.sent for stream in face.streams) < sent + count:
                await asyncio.sleep(0)
        say(per_s=count * events / (time.perf_counter() - began))


async def bare(count: int, events: int) -> None:
    import uvicorn

    frame = b"id: 1234\ndata: " + b"x" * 400 + b"\n\n"
    waiting: list[asyncio.Future[None]] = []
    sent = 0

    async def app(scope: Any, receive: Any, send: Any) -> None:
        nonlocal sent
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        await send({"type": "http.response.body", "body": b": hello\n\n", "more_body": True})
        for _ in range(events):
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            waiting.append(future)
            await future
            await send({"type": "http.response.body", "body": frame, "more_body": True})
            sent += 1

    config = uvicorn.Config(
        app, port=0, http="httptools", lifespan="off", log_config=None, access_log=False, log_level="critical"
    )
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    await _until(lambda: server.started)
    say(port=server.servers[0].sockets[0].getsockname()[1], token="")
    await _until(lambda: len(waiting) == count)
    say(idle_mib=0.0)
    began = time.perf_counter()
    for n in range(events):
        ready = waiting[:]
        waiting.clear()
        for future in ready:
            future.set_result(None)
        while sent < (n + 1) * count:
            await asyncio.sleep(0)
    say(per_s=count * events / (time.perf_counter() - began))
    server.should_exit = server.force_exit = True
    await serving


async def _until(check: Any) -> None:
    async with asyncio.timeout(60):
        while not check():
            await asyncio.sleep(0.01)


if __name__ == "__main__":
    kind, place, number, many = sys.argv[1:]
    asyncio.run(ours(Path(place), int(number), int(many)) if kind == "ours" else bare(int(number), int(many)))
