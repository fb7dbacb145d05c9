"""Health, and which protocol is spoken here: the one route that needs no credential."""

from __future__ import annotations

from typing import Any

import msgspec

from quintet.protocols.knp.errors import ErrorAnswer
from quintet.protocols.knp.house import House
from quintet.rpc.http.call import Answer, HttpCall
from quintet.rpc.http.openapi import document
from quintet.rpc.http.routes import HOLDER, PUBLIC, NoParams, Routes

HEALTH = Routes("health", who=PUBLIC, since="0.1")
OPENAPI = Routes("health", who=HOLDER)
VERSION = "0.1"


class ProtocolName(msgspec.Struct, frozen=True):
    id: str
    version: str


class Health(msgspec.Struct, frozen=True):
    ok: bool
    version: str
    protocol: ProtocolName


@HEALTH.get("/health", summary="whether the server keeps up, and which protocol it speaks", result=Health)
async def health(call: HttpCall[House], params: NoParams, body: None) -> Answer:
    house = call.state
    said = Health(not house.lag.wedged, house.version, ProtocolName("knp", VERSION))
    return Answer(said, 200 if said.ok else 503)


@OPENAPI.get("/openapi.json", summary="this interface, described for programs", result=dict[str, Any])
async def openapi(call: HttpCall[House], params: NoParams, body: None) -> dict[str, Any]:
    return document(call.table, title="Popcorn KNP", version=VERSION, error=ErrorAnswer)
