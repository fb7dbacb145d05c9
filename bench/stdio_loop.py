"""The smallest stdio server on the real engine: opens the home, answers `initialize` with the number of threads."""

from __future__ import annotations

import asyncio
import sys

from quintet.app import App, open_app
from quintet.domain.thread import ThreadQuery
from quintet.rpc.call import Call
from quintet.rpc.connection import Connection
from quintet.rpc.dialect import Dialect
from quintet.rpc.dispatch import Dispatcher
from quintet.rpc.framing import LineDecoder, encode_line
from quintet.rpc.messages import WireError
from quintet.rpc.rows import Family, NoParams, Table
from quintet.rpc.stdio import claim

family = Family("bench")


@family.method("initialize", summary="Say how many threads there are.")
async def initialize(call: Call[App], params: NoParams) -> dict[str, int]:
    return {"threads": len(await call.state.threads.page(ThreadQuery(limit=1)))}


async def main(home: str) -> None:
    source, sink = claim()
    dispatcher = Dispatcher(Table(family), lambda error, method: WireError(-32603, str(error)))
    dialect = Dialect(decoder=lambda: LineDecoder(), encode=encode_line, bad=lambda problem: None)
    async with open_app(home, "bench") as app:
        await Connection(source, sink, dispatcher, dialect, state=app).serve()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
