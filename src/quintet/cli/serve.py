"""serve: the server in the foreground. It can be found through server.json and answers /health."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from quintet.cli.invoke import Invocation, directory
from quintet.domain.errors import Invalid
from quintet.workspace.server_lock import ServerLock

if TYPE_CHECKING:
    from quintet.serving.server import Serving, Wish

OFF = "off"
LATER = {"opencode": "the OpenCode adapter", "cursorclaw": "the CursorClaw gateway"}
ANY_NETWORK = "--no-auth-on-any-network"
WARN_EVERY_S = 60.0


def add_flags(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on, 127.0.0.1 unless said")
    parser.add_argument("--knp-port", type=_port, default=4096, metavar="PORT", help="0: any free one; off: none")
    parser.add_argument("--opencode-port", type=_port, metavar="PORT", help="not served yet")
    parser.add_argument("--cursorclaw-port", type=_port, metavar="PORT", help="not served yet")
    parser.add_argument("--socket", default="", metavar="PATH", help="serve KNP on this Unix socket too")
    parser.add_argument("--only", type=_protocols, default=(), metavar="NAMES", help="knp, the only one until now")
    parser.add_argument("--project", action="append", default=[], metavar="DIR", help="a root to work in; repeatable")
    parser.add_argument("--ready-file", type=Path, help="written once the server answers")
    parser.add_argument("--no-auth", action="store_true", help="ask nobody for the token; on loopback only")
    parser.add_argument(
        ANY_NETWORK, action="store_true", help="the same on any address: whoever reaches it has a shell"
    )


def _port(text: str) -> int | str:
    if text == OFF:
        return OFF
    try:
        number = int(text)
    except ValueError:
        number = -1
    if not 0 <= number <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: 1 to 65535, 0 for any free one, or off")
    return number


def _protocols(text: str) -> tuple[str, ...]:
    names = tuple(filter(None, text.split(",")))
    if unknown := [name for name in names if name not in ("knp", *LATER)]:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of knp, {', '.join(LATER)}")
    return names


async def run(invocation: Invocation) -> int:
    flags = invocation.flags
    wish = _wish(flags)
    async with invocation.open("serve", starts_turns=True) as app:
        from quintet.serving.server import serving

        with ServerLock(app.home) as lock:
            stop = asyncio.Event()
            loop = asyncio.get_running_loop()
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, stop.set)
            async with serving(app, wish, dict(os.environ)) as server:

                def rotate() -> None:
                    server.rotate()
                    lock.announce(server.facts(), flags.ready_file)

                lock.announce(server.facts(), flags.ready_file)
                loop.add_signal_handler(signal.SIGHUP, rotate)
                _tell(invocation, server, lock.discovery)
                warning = asyncio.create_task(_warn(invocation, wish))
                try:
                    await stop.wait()
                finally:
                    warning.cancel()
    return 0


def _wish(flags: argparse.Namespace) -> Wish:
    from quintet.rpc.http.guards import is_loopback
    from quintet.serving.server import Wish

    unauthenticated = flags.no_auth or flags.no_auth_on_any_network
    if flags.no_auth and not is_loopback(flags.host) and not flags.no_auth_on_any_network:
        raise Invalid("--no-auth works on loopback only.", next_step="Leave out --no-auth, or --host.")
    if flags.only and "knp" not in flags.only:
        named = " and ".join(LATER[name] for name in flags.only)
        raise Invalid(f"This version does not serve {named} yet.", next_step="Leave out --only, or name knp.")
    port = None if flags.knp_port == OFF else flags.knp_port
    if port is None and not flags.socket:
        raise Invalid("That leaves nothing to serve.", next_step="Give --knp-port a port, or name a --socket.")
    return Wish(
        host=flags.host,
        knp_port=port,
        socket=os.path.abspath(flags.socket) if flags.socket else "",
        auth=not unauthenticated,
        roots=tuple(directory(given) for given in flags.project),
    )


def _tell(invocation: Invocation, server: Serving, discovery: Path) -> None:
    flags, say = invocation.flags, invocation.screen.line
    asked = {"opencode": flags.opencode_port, "cursorclaw": flags.cursorclaw_port}
    for name, words in LATER.items():
        if name in flags.only or asked[name] not in (None, OFF):
            say(f"Not served yet: {words}.")
    if server.url:
        say(f"KNP listens on {server.url} (health: {server.url}/health)")
    if flags.socket:
        say(f"KNP listens on the socket {flags.socket}")
    if server.token:
        say(f"Token: {server.token} (kept with the addresses in {discovery})")
        say("Next: quintet attach   (watch from another terminal; Ctrl-C stops the server)")
    else:
        say("No token is asked for: every program of every user of this machine can use this server.")
        say("Next: quintet attach   (watch from another terminal; Ctrl-C stops the server)")


async def _warn(invocation: Invocation, wish: Wish) -> None:
    """Whoever left the door open to a network is reminded of it."""
    from quintet.rpc.http.guards import is_loopback

    while not wish.auth and not is_loopback(wish.host):
        words = f"quintet: anybody who reaches {wish.host} can run commands here; restart without {ANY_NETWORK}."
        invocation.screen.note(words)
        await asyncio.sleep(WARN_EVERY_S)
