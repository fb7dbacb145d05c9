"""Serving one client on a pair of streams, from the first line to an orderly end."""

from __future__ import annotations

from typing import Any

from quintet.protocols.wire.client import Client
from quintet.protocols.wire.errors import bad, errors
from quintet.protocols.wire.gate import Gate
from quintet.protocols.wire.handshake import HANDSHAKE
from quintet.protocols.wire.house import House
from quintet.protocols.wire.lines import encode_line
from quintet.rpc.call import Call
from quintet.rpc.connection import Connection, Source
from quintet.rpc.dialect import Dialect
from quintet.rpc.dispatch import Dispatcher, guard_by_role
from quintet.rpc.framing import MIB, LineDecoder
from quintet.rpc.rows import Family, LateTable, Row
from quintet.rpc.writer import Sink


def _turns() -> list[Family]:
    from quintet.protocols.wire.turns import TURNS

    return [TURNS]


def _replay() -> list[Family]:
    from quintet.protocols.wire.replay import REPLAY

    return [REPLAY]


# Of what comes behind the greeting, by the name of each method.
LATE = {**dict.fromkeys(("prompt", "cancel", "steer", "set_plan_mode"), _turns), "replay": _replay}
TABLE = LateTable(HANDSHAKE, late=LATE)
LONGEST_LINE = 100 * MIB
GRACE_S = 1.5  # for the turn that is cancelled when the client leaves; whoever stops us may wait three seconds


def connect(source: Source, sink: Sink, house: House, *, gate: Gate | None = None) -> Connection[Client]:
    """Ready to `serve`; `end` lets it come to its end as the end of the input does."""
    dialect = Dialect(
        decoder=lambda: LineDecoder(limit=LONGEST_LINE),
        encode=encode_line,
        bad=bad,
        on_end=leave,
        grace_s=GRACE_S,
        log=lambda what, about: house.log(f"wire: {what}: {about!r:.500}"),
    )

    def seen(call: Call[Any], row: Row) -> None:
        house.trace(f"wire: {row.name} has come")
        guard_by_role(call, row)

    dispatcher = Dispatcher(TABLE, errors, guard=seen)
    return Connection(source, sink, dispatcher, dialect, state=Client(house, gate or Gate()))


async def leave(connection: Connection[Any]) -> None:
    """Nobody speaks any more."""
    if connection.state.running is not None:
        from quintet.protocols.wire.leaving import leave as leave_turn

        await leave_turn(connection)
