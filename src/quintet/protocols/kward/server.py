"""Serving one client on a pair of streams, from the first block to an orderly end."""

from __future__ import annotations

from typing import Any

from quintet.protocols.kward.auth import AUTH
from quintet.protocols.kward.branching import BRANCHING
from quintet.protocols.kward.choosing import CHOOSING
from quintet.protocols.kward.client import Client
from quintet.protocols.kward.commands import COMMANDS
from quintet.protocols.kward.compacting import COMPACTING
from quintet.protocols.kward.configuration import CONFIG
from quintet.protocols.kward.errors import bad, errors
from quintet.protocols.kward.exporting import EXPORTING
from quintet.protocols.kward.handshake import HANDSHAKE
from quintet.protocols.kward.house import House
from quintet.protocols.kward.logging import LOGGING
from quintet.protocols.kward.memory import MEMORY
from quintet.protocols.kward.prompts import PROMPTS
from quintet.protocols.kward.questions import QUESTIONS
from quintet.protocols.kward.redaction import body
from quintet.protocols.kward.runtime import RUNTIME
from quintet.protocols.kward.sessions import SESSIONS, close_all
from quintet.protocols.kward.turns import TURNS
from quintet.protocols.kward.workspace import WORKSPACE
from quintet.rpc.blocks import BlockDecoder, encode_block
from quintet.rpc.connection import Connection, Source
from quintet.rpc.dialect import Dialect
from quintet.rpc.dispatch import Dispatcher
from quintet.rpc.framing import MIB
from quintet.rpc.rows import Table
from quintet.rpc.writer import Sink

TABLE = Table(
    HANDSHAKE,
    WORKSPACE,
    SESSIONS,
    BRANCHING,
    COMPACTING,
    EXPORTING,
    TURNS,
    QUESTIONS,
    RUNTIME,
    COMMANDS,
    PROMPTS,
    MEMORY,
    LOGGING,
    CHOOSING,
    CONFIG,
    AUTH,
)
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
    await close_all(connection.state)
