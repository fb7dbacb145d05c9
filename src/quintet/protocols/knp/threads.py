"""Threads: list, create, read, rename, fork, delete."""

from __future__ import annotations

from typing import Any

import msgspec

from quintet.protocols.knp.house import House
from quintet.rpc.http.call import HttpCall
from quintet.rpc.http.routes import HOLDER, Routes

THREADS = Routes("threads", who=HOLDER, since="0.1")


class OneThread(msgspec.Struct, frozen=True):
    tid: str  # from the path
    namespace: str = ""  # from the query


@THREADS.get("/threads/{tid}", summary="one thread", params=OneThread, result=dict[str, Any])
async def read(call: HttpCall[House], params: OneThread, body: None) -> dict[str, Any]:
    thread = (await call.state.threads.get(params.tid)).thread
    return {"tid": thread.id, "title": thread.title}
