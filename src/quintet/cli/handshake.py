"""Handshakes: the first words of a client, said to what a client would really meet; nothing is left of them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from typing import Any

from quintet.domain.errors import InternalFailure, TimedOut

WITHIN_S = 20.0
ENDS_WITHIN_S = 5.0


async def with_program(argv: Sequence[str], hello: bytes, *, framed: bool) -> str:
    """What the program says of its protocol. It runs on a home of its own, which is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="quintet-connect-") as place:
        kept = {"QUINTET_HOME": "home", "KIMI_SHARE_DIR": "kimi", "KWARD_CONFIG_PATH": "kward/config.json"}
        environment = os.environ | {name: os.path.join(place, path) for name, path in kept.items()}
        process = await asyncio.create_subprocess_exec(
            *argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, cwd=place
        )
        try:
            async with asyncio.timeout(WITHIN_S):
                return _version(await _answer(process, hello, framed=framed))
        except TimeoutError:
            raise TimedOut(f"{argv[0]} did not answer within {WITHIN_S:.0f} s.", next_step="quintet doctor") from None
        finally:
            await _end(process)


async def with_server(home: str | None) -> tuple[str, str]:
    """The server's address, and what it says of its protocol to somebody with its token."""
    from quintet.client import Client, find_server

    address = find_server(home)
    async with Client.local(home) as client:
        said = await client.health()
        await client.approvals()  # unlike health this asks for the token
    return address.socket or address.url, f"{said['protocol']['id']} {said['protocol']['version']}, and takes the token"


async def _answer(process: asyncio.subprocess.Process, hello: bytes, *, framed: bool) -> Any:
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(ConnectionError):  # it has ended; what it said tells why
        process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(hello), hello) if framed else hello + b"\n")
        await process.stdin.drain()
    try:
        if framed:
            head = await process.stdout.readuntil(b"\r\n\r\n")
            body = await process.stdout.readexactly(int(head.partition(b":")[2]))
        else:
            body = await process.stdout.readuntil(b"\n")
        return json.loads(body)
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError) as error:
        raise InternalFailure(f"The program did not answer as its clients expect ({type(error).__name__}).") from error


def _version(answer: Any) -> str:
    result = answer.get("result") if isinstance(answer, dict) else None
    told = result if isinstance(result, dict) else {}
    found = told.get("protocol_version") or told.get("protocolVersion")
    if not found:
        raise InternalFailure(f"The program's answer has no version: {str(answer)[:200]}.")
    return f"protocol version {found}"


async def _end(process: asyncio.subprocess.Process) -> None:
    """As a client leaves: by ending its input; where that does not do, by force."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        await asyncio.wait_for(process.communicate(), ENDS_WITHIN_S)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
