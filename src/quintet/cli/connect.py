"""connect: what to set in a client so that it talks to Quintet, and whether it would be answered: tried for real."""

from __future__ import annotations

import argparse
import os
import sys

import msgspec

from quintet.cli.event_json import encode_line
from quintet.cli.invoke import Invocation
from quintet.domain.errors import Invalid

VERSION = 1  # of the JSON
LATER = {"opencode": "the OpenCode adapter", "kaiak": "Kaiak", "cursorclaw": "CursorClaw"}


class Client(msgspec.Struct, frozen=True):
    """How one kind of client is pointed at Quintet. `program` is started by it; without one it finds the server."""

    settings: tuple[tuple[str, str], ...]  # which client, and what to set in it; {} stands for the program or address
    page: str
    program: str = ""
    words: tuple[str, ...] = ()
    hello: bytes = b""
    framed: bool = False  # by Content-Length, else by lines


CLIENTS = {
    "kimi": Client(
        (
            ("VS Code extension", '"kimi.executablePath": "{}"'),
            ("Node and Go SDK", "the executable: {}"),
            ("your own", "start: {} --wire"),
        ),
        "docs/protocols/wire.md",
        "quintet-kimi",
        ("--wire",),
        b'{"jsonrpc":"2.0","id":"1","method":"initialize","params":{"protocol_version":"1.10"}}',
    ),
    "kward": Client(
        (("Tauren (VS Code)", "its path to Kward: {}"), ("your own", "start: {} rpc")),
        "docs/protocols/kward.md",
        "quintet-kward",
        ("rpc",),
        b'{"jsonrpc":"2.0","id":1,"method":"initialize"}',
        framed=True,
    ),
    "knp": Client(
        (
            ("address", "{}"),
            (
                "each request",
                "Authorization: Bearer TOKEN   (server.json in the home has it; `quintet url` prints both)",
            ),
        ),
        "docs/protocols/knp.md",
    ),
}


def add_flags(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    parser.add_argument("client", choices=[*CLIENTS, *LATER], metavar="CLIENT", help=f"one of {', '.join(CLIENTS)}")


async def run(invocation: Invocation) -> int:
    from quintet.cli import handshake

    name = invocation.flags.client
    if name in LATER:
        known = ", ".join(CLIENTS)
        raise Invalid(f"This version does not serve {LATER[name]} yet.", next_step=f"Connect one of {known}.")
    client = CLIENTS[name]
    if client.program:
        where = _program(client.program)
        answered = await handshake.with_program([where, *client.words], client.hello, framed=client.framed)
    else:
        where, answered = await handshake.with_server(invocation.home)
    settings = [(who, what.replace("{}", where)) for who, what in client.settings]
    if invocation.json:
        said = {"client": name, "settings": dict(settings), "answered": answered, "page": client.page}
        invocation.screen.raw(encode_line({"v": VERSION, **said}))
        return 0
    wide = max(len(who) for who, _ in settings)
    for who, what in settings:
        invocation.screen.row(f"  {who:<{wide}}  ", what)
    invocation.screen.row(f"Tried: it answers, {answered}.")
    invocation.screen.row(f"More: {client.page}")
    return 0


def _program(name: str) -> str:
    """Its full path: beside the interpreter that runs this, where installing puts it."""
    path = os.path.join(os.path.dirname(os.path.abspath(sys.executable)), name)
    if not os.access(path, os.X_OK):
        words = f"{name} is not where it should be: {path}."
        raise Invalid(words, next_step="Install Quintet again with `pip install .`, or `make setup`.")
    return path
