"""All routes of KNP, and the face they are served as."""

from __future__ import annotations

from typing import Any

from quintet.protocols.knp.errors import errors
from quintet.protocols.knp.health import HEALTH
from quintet.protocols.knp.house import House
from quintet.protocols.knp.threads import THREADS
from quintet.protocols.knp.watching import EVENTS
from quintet.rpc.http.face import Face
from quintet.rpc.http.routes import RouteTable

TABLE = RouteTable(HEALTH, EVENTS, THREADS)
OWN_HEADERS = ("x-kernl-namespace", "x-kernl-protocol")


def face(house: House, **more: Any) -> Face[House]:
    return Face("knp", TABLE, errors, house, own_headers=OWN_HEADERS, **more)
