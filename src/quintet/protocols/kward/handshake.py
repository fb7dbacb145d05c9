"""initialize and shutdown: what the server can do, and its end. Neither needs the other."""

from __future__ import annotations

from quintet.protocols.kward import models as wire
from quintet.protocols.kward.capabilities import capabilities
from quintet.protocols.kward.client import Client
from quintet.rpc.call import Call, Reply
from quintet.rpc.rows import Family, NoParams

HANDSHAKE = Family("handshake", form="either")


@HANDSHAKE.method(
    "initialize",
    result=wire.InitializeResult,
    summary="What this server can do; may be asked again at any time.",
)
async def initialize(call: Call[Client], params: NoParams) -> wire.InitializeResult:
    return wire.InitializeResult(wire.VERSION, wire.NAME, True, capabilities(call.state.house))


@HANDSHAKE.method("shutdown", result=wire.Ok, summary="End the process, once this has been answered.")
async def shutdown(call: Call[Client], params: NoParams) -> Reply[wire.Ok]:
    async def end() -> None:
        call.connection.end()

    return Reply(wire.Ok(), then=end)
