"""The server as a process of its own; the package says how it is called."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import os
import signal
import sys
from pathlib import Path

from tests.fakes.model_server.server import ModelServer, Request


async def main() -> None:
    flags = argparse.ArgumentParser(description="A fake model server for tests and benches.")
    flags.add_argument("--port", type=int, default=0)
    flags.add_argument("--script", default="")
    flags.add_argument("--mind", default="", help="module:function that makes the answers up")
    flags.add_argument("--fault", action="append", default=[])
    flags.add_argument("--record", default="")
    flags.add_argument("--packed", action="store_true", help="many events in one HTTP chunk, as some proxies send them")
    given = flags.parse_args()
    module, _, function = given.mind.partition(":")
    server = ModelServer(
        Path(given.script).read_text() if given.script else "",
        faults=given.fault,
        packed=given.packed,
        directory=os.path.dirname(given.script),
        mind=getattr(importlib.import_module(module), function) if module else None,
    )
    if given.record:
        server.on_request = lambda request: _record(given.record, request)
    await server.start(given.port)
    print(json.dumps({"url": server.url}), flush=True)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_reader(sys.stdin, lambda: None if sys.stdin.buffer.read1(65_536) else stop.set())
    await stop.wait()
    loop.remove_reader(sys.stdin)
    await server.close()


def _record(path: str, request: Request) -> None:
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(request._asdict()) + "\n")


if __name__ == "__main__":
    asyncio.run(main())
