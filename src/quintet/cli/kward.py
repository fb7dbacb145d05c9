"""kward: Kward RPC on stdin and stdout, for clients that start it."""

from __future__ import annotations

import argparse
import asyncio
import signal
from typing import Any

from quintet.app import open_app
from quintet.cli.invoke import Invocation, directory
from quintet.engine.housekeeping import ON_THE_WAY_OUT_S
from quintet.rpc.connection import Connection
from quintet.rpc.stdio import Stdio, claim

GONE_WITHIN_S = 4.5  # an orderly end takes a part of a second; whatever holds it up is cut off then


def add_flags(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    parser.add_argument("rpc", nargs="?", choices=["rpc"], help="accepted, since Kward's clients say it")


async def run(invocation: Invocation) -> int:
    stdio = claim()  # before anything else: from here on nothing but the protocol reaches stdout
    try:
        return await _run(invocation, stdio)
    except BaseException:
        stdio.failed()
        raise


async def _run(invocation: Invocation, stdio: Stdio) -> int:
    from quintet.protocols.kward.server import connect
    from quintet.serving.kward import kward_house
    from quintet.serving.kward_keeping import kward_keeping, opening

    cwd = directory("")
    async with open_app(invocation.home, "kward", **opening()) as app, kward_keeping(app) as keeping:
        connection = connect(stdio.source, stdio.sink, kward_house(app, cwd, keeping))
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, _stop, connection)
        tidying = asyncio.create_task(app.housekeeping.run())
        stdio.serves()
        try:
            await connection.serve()
        finally:
            tidying.cancel()
            hurried = signal.getitimer(signal.ITIMER_REAL)[0] > 0
            if not hurried:
                signal.setitimer(signal.ITIMER_REAL, GONE_WITHIN_S)
        if not hurried:
            await app.housekeeping.tidy(min(ON_THE_WAY_OUT_S, 0.3))
    return 0


def _stop(connection: Connection[Any]) -> None:
    """A client that waits kills, and harder."""
    signal.setitimer(signal.ITIMER_REAL, GONE_WITHIN_S)
    connection.end()
