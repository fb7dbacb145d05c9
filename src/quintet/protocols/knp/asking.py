"""What a request says of itself besides its body: the namespace it means and the version it speaks. Pure."""

from __future__ import annotations

import re

import msgspec

from quintet.domain.errors import Invalid
from quintet.domain.project import DEFAULT
from quintet.rpc.http.call import HttpCall

PROTOCOL, VERSION = "knp", "0.1"
SUPPORTED = (f"{PROTOCOL}/{VERSION}",)
_SPOKEN = re.compile(r"knp/(\d{1,4})\.(\d{1,4})")


class Asked(msgspec.Struct, frozen=True):
    namespace: str


def asked(call: HttpCall[object], query: str = "", body: str = "") -> Asked:
    """Query before header before body; a version of another major is refused."""
    check_version(call.header("x-kernl-protocol"))
    return Asked(query or call.header("x-kernl-namespace") or body or DEFAULT)


def check_version(spoken: str) -> None:
    """Minor versions only add, so any minor of ours is understood; none at all means the newest."""
    if not spoken:
        return
    found = _SPOKEN.fullmatch(spoken.strip())
    if found is None or found[1] != VERSION.partition(".")[0]:
        raise Invalid(
            f"This version of the protocol is not spoken here. Supported: {', '.join(SUPPORTED)}.",
            next_step="Send x-kernl-protocol with one of these, or leave it out.",
            supported=list(SUPPORTED),
        )
