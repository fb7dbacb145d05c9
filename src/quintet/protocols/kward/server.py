"""Serving one client on a pair of streams, from the first block to an orderly end."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from quintet.protocols.kward.client import Client
from quintet.protocols.kward.errors import bad, errors
from quintet.protocols.kward.handshake import HANDSHAKE
from quintet.protocols.kward.house import House
from quintet.protocols.kward.redaction import body
from quintet.rpc.blocks import BlockDecoder, encode_block
from quintet.rpc.connection import Connection, Source
from quintet.rpc.dialect import Dialect
from quintet.rpc.dispatch import Dispatcher
from quintet.rpc.framing import MIB
from quintet.rpc.rows import Family, LateTable
from quintet.rpc.writer import Sink

# By the beginning of a method's name: the modules it lies in, and what its rows are called there.
FAMILIES: dict[str, tuple[tuple[str, str], ...]] = {
    "workspace": (("workspace", "WORKSPACE"),),
    "sessions": (
        ("sessions", "SESSIONS"),
        ("branching", "BRANCHING"),
        ("compacting", "COMPACTING"),
        ("exporting", "EXPORTING"),
    ),
    "turns": (("turns", "TURNS"),),
    "ui": (("questions", "QUESTIONS"),),
    "runtime": (("runtime", "RUNTIME"),),
    "tools": (("commands", "COMMANDS"),),
    "commands": (("commands", "COMMANDS"),),
    "resources": (("commands", "COMMANDS"),),
    "prompts": (("prompts", "PROMPTS"),),
    "memory": (("memory", "MEMORY"),),
    "logging": (("logging", "LOGGING"),),
    "models": (("choosing", "CHOOSING"),),
    "openrouter": (("choosing", "CHOOSING"),),
    "reasoning": (("choosing", "CHOOSING"),),
    "config": (("configuration", "CONFIG"),),
    "auth": (("auth", "AUTH"),),
}


def _loading(modules: tuple[tuple[str, str], ...]) -> Callable[[], list[Family]]:
    def load() -> list[Family]:
        return [getattr(import_module(f"{__package__}.{module}"), name) for module, name in modules]

    return load


TABLE = LateTable(HANDSHAKE, late={beginning: _loading(modules) for beginning, modules in FAMILIES.items()})
LONGEST_BODY = 100 * MIB  # one turn may carry several images
GRACE_S = 1.0  # for turns that are cancelled when the client leaves: the process is to be gone two seconds later


def connect(source: Source, sink: Sink, house: House) -> Connection[Client]:
    """Ready to `serve`; `end` lets it come to its end as the end of the input does."""
    client = Client(house)
    dialect = Dialect(
        decoder=lambda: BlockDecoder(limit=LONGEST_BODY, known=None, bare_lf=True),
        encode=lambda message: encode_block(body(message, client.unmasked)),
        bad=bad,
        on_end=leave,
        grace_s=GRACE_S,
        log=lambda what, about: house.log(f"kward: {what}: {about!r:.500}"),
    )
    return Connection(source, sink, Dispatcher(TABLE, errors), dialect, state=client)


async def leave(connection: Connection[Any]) -> None:
    """Nobody speaks any more: what runs is cancelled, what was never used goes, and no login is waited for."""
    await connection.state.house.keeping.accounts.close()
    if connection.state.sessions:
        from quintet.protocols.kward.sessions import close_all

        await close_all(connection.state)
