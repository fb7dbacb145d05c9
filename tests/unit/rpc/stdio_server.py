"""A small line server on stdio, run by the tests as a process. It does what careless programs do."""

import asyncio
import ctypes
import os
import subprocess
import sys
import warnings
from typing import Any

from quintet.rpc.stdio import claim

STDIO = claim()

from quintet.rpc.call import Call  # noqa: E402
from quintet.rpc.connection import Connection  # noqa: E402
from quintet.rpc.dialect import Dialect  # noqa: E402
from quintet.rpc.dispatch import Dispatcher  # noqa: E402
from quintet.rpc.framing import LineDecoder, encode_line  # noqa: E402
from quintet.rpc.messages import ErrorResponse, WireError  # noqa: E402
from quintet.rpc.rows import Family, Table  # noqa: E402

family = Family("test")


@family.method("echo", summary="Echo.", params=dict)
async def echo(call: Call[None], params: dict[str, Any]) -> dict[str, Any]:
    return params


@family.method("pollute", summary="Write to stdout in every way there is.")
async def pollute(call: Call[None], params: Any) -> str:
    print("STRAY print", flush=True)
    os.write(1, b"STRAY write\n")
    sys.__stdout__.write("STRAY original\n")  # type: ignore[union-attr]
    warnings.warn("STRAY warning", stacklevel=1)
    ctypes.CDLL(None).puts(b"STRAY from C")
    subprocess.run(["sh", "-c", "echo STRAY child; echo STRAY child >&2; cat"], check=True, timeout=5)
    # close_fds=False: a careless start, which only the descriptors' own close-on-exec makes harmless.
    look = ["ls", "-1", "/proc/self/fd"]
    held = subprocess.run(look, capture_output=True, text=True, check=True, timeout=5, close_fds=False)
    return held.stdout


async def main() -> None:
    asyncio.get_running_loop().slow_callback_duration = 60  # a loaded machine is slow, which is no fault of ours
    dialect = Dialect(
        decoder=LineDecoder,
        encode=encode_line,
        bad=lambda problem: ErrorResponse(None, WireError(-32700, problem.reason)),
    )
    dispatcher = Dispatcher(Table(family), lambda failure, method: WireError(-32603, repr(failure)))
    STDIO.serves()
    await Connection(STDIO.source, STDIO.sink, dispatcher, dialect, state=None).serve()


if __name__ == "__main__":
    asyncio.run(main())
