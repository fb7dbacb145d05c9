"""wire: Kimi Wire on stdin and stdout, with the flags that Kimi's clients pass."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
from typing import Any

from quintet.app import App, WireFlags, open_app, wire_house
from quintet.cli.invoke import Invocation, directory, positive
from quintet.rpc.connection import Connection
from quintet.rpc.stdio import Stdio, claim

GONE_WITHIN_S = 2.7  # after a signal: clients kill after three seconds
LEFT_WITHIN_S = 4.5  # after the end of the input


def add_flags(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    parser.add_argument("--wire", action="store_true", help="accepted, since Kimi's clients say it")
    parser.add_argument("--work-dir", "-w", default="", metavar="DIR", help="working directory (else the current one)")
    parser.add_argument(
        "--session", "-S", default="", metavar="ID", help="the thread of this name; a new one if none is"
    )
    parser.add_argument("--yolo", "--auto-approve", "-y", action="store_true", help="ask for nothing")
    parser.add_argument("--model", "-m", default="", help="provider/model")
    parser.add_argument("--max-steps-per-turn", type=positive, metavar="N", help="model calls at most")
    parser.add_argument("--thinking", action=argparse.BooleanOptionalAction, help="accepted; the model decides")
    parser.add_argument(
        "--every-event", action="store_true", help="also events newer than the version the client declares"
    )


async def run(invocation: Invocation) -> int:
    stdio = claim()  # before anything else: from here on nothing but the protocol reaches stdout
    flags = invocation.flags
    given = WireFlags(
        work_dir=directory(flags.work_dir),
        share_dir=_share_dir(),
        session=flags.session,
        yolo=flags.yolo,
        model=flags.model,
        max_steps=flags.max_steps_per_turn,
    )
    async with open_app(invocation.home, "wire") as app:
        await _serve(app, given, stdio, gated=not flags.every_event)
    return 0


def _share_dir() -> str:
    return os.environ.get("KIMI_SHARE_DIR") or os.path.expanduser("~/.kimi")


async def _serve(app: App, given: WireFlags, stdio: Stdio, *, gated: bool) -> None:
    from quintet.protocols.wire.gate import Gate
    from quintet.protocols.wire.server import connect

    connection = connect(stdio.source, stdio.sink, wire_house(app, given), gate=Gate(shut=gated))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, _stop, connection)
    try:
        await connection.serve()
    finally:
        if not signal.getitimer(signal.ITIMER_REAL)[0]:
            signal.setitimer(signal.ITIMER_REAL, LEFT_WITHIN_S)


def _stop(connection: Connection[Any]) -> None:
    """Whatever holds up the end is cut off by the alarm: a client that waits kills, and harder."""
    signal.setitimer(signal.ITIMER_REAL, GONE_WITHIN_S)
    connection.end()
