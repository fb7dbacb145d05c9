"""Which namespace a request means. Pure."""

from __future__ import annotations

from typing import Any

from quintet.domain.project import DEFAULT
from quintet.rpc.http.call import HttpCall


def namespace_asked(call: HttpCall[Any], query: str = "", body: str = "") -> str:
    """Query before header before body."""
    return query or call.header("x-kernl-namespace") or body or DEFAULT
