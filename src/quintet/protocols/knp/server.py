"""All routes of KNP, and the face they are served as."""

from __future__ import annotations

import re
from typing import Any

from quintet.domain.errors import Invalid
from quintet.protocols.knp.approvals import APPROVALS
from quintet.protocols.knp.catalog import CATALOG
from quintet.protocols.knp.errors import errors
from quintet.protocols.knp.files import FILES
from quintet.protocols.knp.health import HEALTH, OPENAPI, VERSION
from quintet.protocols.knp.house import House
from quintet.protocols.knp.runs import RUNS
from quintet.protocols.knp.threads import THREADS
from quintet.protocols.knp.watching import EVENTS
from quintet.rpc.http.call import HttpCall
from quintet.rpc.http.face import Face
from quintet.rpc.http.routes import RouteTable

TABLE = RouteTable(HEALTH, OPENAPI, EVENTS, THREADS, RUNS, APPROVALS, CATALOG, FILES)
OWN_HEADERS = ("x-kernl-namespace", "x-kernl-protocol")


_SPOKEN = re.compile(r"knp/0(\.[0-9]+)?")


def face(house: House, **more: Any) -> Face[House]:
    return Face("knp", TABLE, errors, house, own_headers=OWN_HEADERS, before=speaks_our_version, **more)


def speaks_our_version(call: HttpCall[House]) -> None:
    """A client that names another major version would misread what it gets; one that names none takes the newest."""
    wanted = call.header("x-kernl-protocol")
    if wanted and not _SPOKEN.fullmatch(wanted.strip()):
        raise Invalid("This protocol version is not spoken here.", next_step="", supported=[f"knp/{VERSION}"])
