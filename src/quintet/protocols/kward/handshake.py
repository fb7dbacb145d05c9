"""initialize and shutdown: what the server can do, and its end. Neither needs the other."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from quintet.protocols.kward.capabilities import capabilities
from quintet.protocols.kward.client import Client
from quintet.rpc.call import Call, Reply
from quintet.rpc.rows import Family, NoParams

VERSION = 1
NAME = "kward"


class InitializeResult(Struct, frozen=True, rename="camel"):
    protocol_version: int
    server_name: str
    experimental: bool
    capabilities: dict[str, Any]


class ShutdownResult(Struct, frozen=True):
    ok: bool = True


HANDSHAKE = Family("handshake", form="either")


@HANDSHAKE.method(
    "initialize",
    result=InitializeResult,
    summary="What this server can do; may be asked again at any time.",
)
async def initialize(call: Call[Client], params: NoParams) -> InitializeResult:
    return InitializeResult(VERSION, NAME, True, capabilities(call.state.house))


@HANDSHAKE.method("shutdown", result=ShutdownResult, summary="End the process, once this has been answered.")
async def shutdown(call: Call[Client], params: NoParams) -> Reply[ShutdownResult]:
    async def end() -> None:
        call.connection.end()

    return Reply(ShutdownResult(), then=end)
