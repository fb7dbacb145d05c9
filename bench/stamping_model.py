"""`python -m bench.stamping_model`: a model whose every piece says when it was sent, to tell how late a client has it.

`burst` in the last message gives 2,000 pieces at once, `pace` 200 of them 5 ms apart. Calls without tools, which ask
for titles and the like, get a word.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

BURST, PACED, EVERY_S = 2_000, 200, 0.005


def piece(text: str | None, finish: str | None = None) -> bytes:
    delta = {"content": text} if text is not None else {}
    body = {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "stamping",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }
    data = b"data: " + json.dumps(body).encode() + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(data), data)


def stamp() -> bytes:
    return piece(f"@{time.time():.6f} ")


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            length = next((int(h.split(b":")[1]) for h in head.lower().split(b"\r\n") if b"content-length" in h), 0)
            asked = json.loads(await reader.readexactly(length)) if length else {}
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
            await speak(asked, writer)
            usage = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
            last = json.dumps({"id": "c1", "object": "chat.completion.chunk", "choices": [], "usage": usage}).encode()
            tail = b"data: " + last + b"\n\ndata: [DONE]\n\n"
            writer.write(piece(None, "stop") + b"%x\r\n%b\r\n0\r\n\r\n" % (len(tail), tail))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def speak(asked: dict[str, Any], writer: asyncio.StreamWriter) -> None:
    said = [json.dumps(m.get("content")) for m in asked.get("messages", []) if m.get("role") == "user"]
    words = said[-1] if said and asked.get("tools") else ""
    if "burst" in words:
        writer.write(b"".join(stamp() for _ in range(BURST)))
    elif "pace" in words:
        for _ in range(PACED):
            await asyncio.sleep(EVERY_S)
            writer.write(stamp())
    else:
        writer.write(piece("well"))


async def main() -> None:
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(json.dumps({"url": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"}), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
