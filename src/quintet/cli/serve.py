"""serve: the server in the foreground. It can be found through server.json and answers /health."""

from __future__ import annotations

import argparse
import asyncio
import errno
import os
import signal
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from quintet.cli.invoke import Invocation
from quintet.domain.errors import Busy, Invalid
from quintet.workspace.server_lock import ServerLock

if TYPE_CHECKING:
    from quintet.app import App

OFF = "off"


def add_flags(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on; others than loopback need the token")
    parser.add_argument(
        "--knp-port", type=_port, default=4096, metavar="PORT", help="0 picks a free one, off: not at all"
    )
    parser.add_argument("--ready-file", type=Path, help="written once the server answers")
    parser.add_argument("--no-auth", action="store_true", help="ask nobody for the token; on loopback only")


def _port(text: str) -> int | str:
    if text == OFF:
        return OFF
    number = int(text)
    if not 0 <= number <= 65535:
        raise argparse.ArgumentTypeError("must be from 1 to 65535, 0 for any free one, or off")
    return number


async def run(invocation: Invocation) -> int:
    from quintet.rpc.http.guards import is_loopback

    flags = invocation.flags
    if flags.no_auth and not is_loopback(flags.host):
        raise Invalid("--no-auth works on loopback only.", next_step="Leave out --no-auth, or --host.")
    async with invocation.open("serve", starts_turns=True) as app:
        with ServerLock(app.home) as lock:
            listener = _listen(flags.host, flags.knp_port)
            await app.journal.recover()
            await _serve(invocation, app, lock, [listener])
    return 0


def _listen(host: str, port: int) -> socket.socket:
    from quintet.rpc.http.binding import bind

    try:
        return bind(host, port)
    except OSError as error:
        why = "is taken" if error.errno == errno.EADDRINUSE else f"cannot be used: {error.strerror}"
        raise Busy(
            f"Port {port} on {host} {why}.", next_step="Stop what listens there, or choose another with --knp-port."
        ) from None


async def _serve(invocation: Invocation, app: App, lock: ServerLock, sockets: list[socket.socket]) -> None:
    from quintet.protocols.knp.errors import errors
    from quintet.protocols.knp.server import face
    from quintet.rpc.http.guards import in_url
    from quintet.rpc.http.health import LoopLag
    from quintet.rpc.http.server import HttpServer, serve
    from quintet.serving.door import Door
    from quintet.serving.knp import knp_house

    door = Door(app.home, app.config.server, os.environ, auth=not invocation.flags.no_auth)
    host, port = sockets[0].getsockname()[:2]
    url = f"http://{in_url(host)}:{port}"
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    lag = LoopLag()
    knp = HttpServer(face(knp_house(app), on_defect=app.log.error, **door.for_face(sockets)), errors, sockets)

    def ready() -> None:
        facts = {"pid": os.getpid(), "token": door.token, "knp": {"url": url}}
        lock.announce(facts, invocation.flags.ready_file)
        invocation.screen.line(f"Quintet listens on {url} (health: {url}/health)")
        invocation.screen.line(f"Token: {door.token} (kept with the addresses in {lock.discovery})")
        invocation.screen.line('Next: quintet run "help"   (Ctrl-C stops the server)')

    tidying = asyncio.create_task(app.housekeeping.run())
    try:
        await serve([knp], lag, ready, stop)
    finally:
        tidying.cancel()
        door.access.flush()
        for listener in sockets:
            listener.close()
