"""serve: the server in the foreground. It can be found through server.json and answers /health."""

from __future__ import annotations

import argparse
import asyncio
import errno
import os
import secrets
import signal
import socket
from pathlib import Path

from quintet.app import App
from quintet.cli.invoke import Invocation
from quintet.domain.errors import Busy, Invalid
from quintet.workspace.server_lock import ServerLock

LOOPBACK = ("127.0.0.1", "::1", "localhost")


def add_flags(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on; only loopback in this version")
    parser.add_argument("--knp-port", type=int, default=4096, metavar="PORT", help="0 picks a free one")
    parser.add_argument("--ready-file", type=Path, help="written once the server answers")


async def run(invocation: Invocation) -> int:
    flags = invocation.flags
    if flags.host not in LOOPBACK:
        raise Invalid(f"This version listens on loopback only, not on {flags.host}.", next_step="Leave out --host.")
    async with invocation.open("serve", starts_turns=True) as app:
        with ServerLock(app.home) as lock:
            await app.journal.recover()
            await _serve(invocation, app, lock, _listen(flags.host, flags.knp_port))
    return 0


def _listen(host: str, port: int) -> socket.socket:
    from quintet.rpc.http import bind

    if not 0 <= port <= 65535:
        raise Invalid(f"{port} is not a port.", next_step="Choose one from 1 to 65535, or 0 for any free one.")
    try:
        return bind(host, port)
    except OSError as error:
        why = "is taken" if error.errno == errno.EADDRINUSE else f"cannot be used: {error.strerror}"
        raise Busy(
            f"Port {port} on {host} {why}.", next_step="Stop what listens there, or choose another with --knp-port."
        ) from None


async def _serve(invocation: Invocation, app: App, lock: ServerLock, listener: socket.socket) -> None:
    from quintet.rpc.http import HttpListener

    host, port = listener.getsockname()[:2]
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    token = secrets.token_urlsafe(32)
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)

    def ready() -> None:
        facts = {"pid": os.getpid(), "token": token, "knp": {"url": url}}
        lock.announce(facts, invocation.flags.ready_file)
        invocation.screen.line(f"Quintet listens on {url} (health: {url}/health)")
        invocation.screen.line(f"Token: {token} (kept with the addresses in {lock.discovery})")
        invocation.screen.line('Next: quintet run "help"   (Ctrl-C stops the server)')

    tidying = asyncio.create_task(app.housekeeping.run())
    try:
        await HttpListener(listener).run(ready, stop)
    finally:
        tidying.cancel()
        listener.close()
