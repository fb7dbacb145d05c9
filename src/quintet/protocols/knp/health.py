"""Health, and which protocol is spoken here: the one route that needs no credential."""

from __future__ import annotations

import msgspec

from quintet.protocols.knp.house import House
from quintet.rpc.http.call import HttpCall
from quintet.rpc.http.routes import PUBLIC, NoParams, Routes

HEALTH = Routes("health", who=PUBLIC, since="0.1")
VERSION = "0.1"


class ProtocolName(msgspec.Struct, frozen=True):
    id: str
    version: str


class Health(msgspec.Struct, frozen=True):
    ok: bool
    version: str
    protocol: ProtocolName


@HEALTH.get("/health", summary="whether the server keeps up, and which protocol it speaks", result=Health)
async def health(call: HttpCall[House], params: NoParams, body: None) -> Health:
    return Health(ok=True, version=call.state.version, protocol=ProtocolName("knp", VERSION))
