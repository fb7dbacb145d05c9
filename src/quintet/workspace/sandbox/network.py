"""An allow-list's way through the wall: the proxy outside, its socket shown inside, a forwarder before the command and
the variables by which programs find it.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache

import msgspec

from quintet.workspace.sandbox.mounts import Kind, Mount
from quintet.workspace.sandbox.proxy import SOCKET, Told, allowing
from quintet.workspace.web.addresses import Refusing, why_not_public
from quintet.workspace.web.resolving import Resolve, system_resolve

PLACE = "/run/quintet-network"  # inside; what is there outside does not matter
PORT = 3128  # the sandbox has a loopback of its own, so any port is free
LONGEST = 107  # of a socket's path, by the kernel
_PROXY = f"http://127.0.0.1:{PORT}"
_NAMES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
ENVIRONMENT = {
    **{spelled: _PROXY for name in _NAMES for spelled in (name, name.lower())},
    **dict.fromkeys(("NO_PROXY", "no_proxy"), "localhost,127.0.0.1,::1"),
}


class WayOut(msgspec.Struct, frozen=True):
    mount: Mount
    words: tuple[str, ...]  # of the forwarder, for a bare interpreter
    environment: Mapping[str, str]


@asynccontextmanager
async def way_out(
    hosts: Sequence[str], room: str, *, resolve: Resolve | None, refuse: Refusing | None, refused: Told
) -> AsyncIterator[WayOut]:
    """Open until the way out. `room` is a private directory that commands do not see."""
    import shutil

    directory = _directory(room)
    try:
        names, table = resolve or system_resolve, refuse or why_not_public
        async with allowing(hosts, directory, resolve=names, refuse=table, refused=refused):
            words = ("-I", "-S", "-c", _forwarder(), f"{PLACE}/{SOCKET}", str(PORT))
            yield WayOut(Mount(PLACE, Kind.SHOW, directory), words, ENVIRONMENT)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _directory(room: str) -> str:
    import tempfile

    short = len(os.fsencode(os.path.join(room, "net-12345678", SOCKET))) <= LONGEST
    return tempfile.mkdtemp(prefix="net-" if short else "quintet-net-", dir=room if short else None)


@cache
def _forwarder() -> str:
    with open(os.path.join(os.path.dirname(__file__), "forwarder.py"), encoding="utf-8") as file:
        return file.read()
