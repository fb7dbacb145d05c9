"""Everything a model server can do wrong, one function a word. The package's first lines say what each does."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any

from tests.fakes.model_server.speech import event

if TYPE_CHECKING:
    from tests.fakes.model_server.server import Answer

    Way = Callable[[Answer, str, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

MEBIBYTE = 1024 * 1024


class Broken(Exception):
    """The connection is of no use any more."""


def plain(status: int, body: bytes, kind: str, *headers: str) -> bytes:
    head = [f"HTTP/1.1 {status} Whatever", f"content-type: {kind}", f"content-length: {len(body)}", *headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def status_answer(status: int, message: str, *headers: str) -> bytes:
    body = json.dumps({"error": {"type": f"kind_{status}", "message": message}}).encode()
    return plain(status, body, "application/json", *headers)


def _asked_to_wait(value: Callable[[str], str]) -> Way:
    async def way(answer: Answer, given: str, reader: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(status_answer(429, "slow down", f"retry-after: {value(given)}"))

    return way


def _date_in(seconds: str) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=float(seconds)), usegmt=True)


async def echo(answer: Answer, value: str, reader: Any, writer: asyncio.StreamWriter) -> None:
    headers = answer.request.headers
    key = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
    writer.write(status_answer(401, f"the key {key} is wrong"))


async def redirect(answer: Answer, value: str, reader: Any, writer: asyncio.StreamWriter) -> None:
    writer.write(plain(307, b"", "text/plain", f"location: {value}"))


async def refusal(answer: Answer, value: str, reader: Any, writer: Any) -> None:
    answer.frames(answer.speech.begin())
    answer.frames(answer.speech.refuse())
    await answer.end()


async def _half_a_chunk(answer: Answer) -> None:
    await answer.words()
    answer.raw(b"1000\r\ndata: {")
    await answer.flush()


def _abort(writer: asyncio.StreamWriter) -> None:
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def reset(answer: Answer, value: str, reader: Any, writer: asyncio.StreamWriter) -> None:
    await _half_a_chunk(answer)
    _abort(writer)
    raise Broken


async def half_close(answer: Answer, value: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await _half_a_chunk(answer)
    writer.write_eof()
    await _gone(reader)


async def close(answer: Answer, value: str, reader: Any, writer: Any) -> None:
    await answer.words()
    answer.close_body()


async def _gone(reader: asyncio.StreamReader) -> None:
    """Until the other side has gone."""
    while await reader.read(MEBIBYTE):
        pass
    raise Broken


async def stall(answer: Answer, value: str, reader: asyncio.StreamReader, writer: Any) -> None:
    await answer.words()
    await _gone(reader)


async def silent(answer: Answer, value: str, reader: asyncio.StreamReader, writer: Any) -> None:
    await _gone(reader)


async def mute(answer: Answer, value: str, reader: asyncio.StreamReader, writer: Any) -> None:
    answer.head()
    await answer.flush()
    await _gone(reader)


async def _whole(answer: Answer) -> bytes:
    """The bytes of the whole answer as a stream of events."""
    kept: list[bytes] = []
    answer.frames = lambda frame, times=1: kept.append(frame * times)  # type: ignore[method-assign]
    await answer.words()
    kept += answer.speech.end()
    del answer.frames  # type: ignore[method-assign]
    return b"".join(kept)


async def drip(answer: Answer, value: str, reader: Any, writer: Any) -> None:
    data = await _whole(answer)
    for place in range(0, len(data), 16):
        answer.frames(data[place : place + 16])
        await answer.flush()
        await asyncio.sleep(float(value or 0))
    answer.close_body()


async def comments(answer: Answer, value: str, reader: Any, writer: Any) -> None:
    for _ in range(20):
        answer.frames(b": still thinking\n\n")
        await answer.flush()
        await asyncio.sleep(float(value or 0))
    await answer.words()
    await answer.end()


async def html(answer: Answer, value: str, reader: Any, writer: asyncio.StreamWriter) -> None:
    writer.write(plain(200, b"<!doctype html><h1>Please log in</h1>", "text/html; charset=utf-8"))


async def empty(answer: Answer, value: str, reader: Any, writer: asyncio.StreamWriter) -> None:
    writer.write(plain(200, b"", "text/event-stream"))


async def garbage(answer: Answer, value: str, reader: Any, writer: Any) -> None:
    answer.frames(b"data: {this is \xff\xfe no JSON\n\ndata: [1, 2\n\n\x00\x01\x02")
    answer.close_body()


async def garbage_late(answer: Answer, value: str, reader: Any, writer: Any) -> None:
    await answer.words()
    answer.frames(b"data: {this is no JSON\n\n")
    answer.close_body()


async def shapes(answer: Answer, value: str, reader: Any, writer: Any) -> None:
    answer.frames(event({"choices": 7, "type": "content_block_delta", "delta": 7, "index": []}))
    answer.frames(event({"choices": ["x"], "type": "response.output_item.added", "item": 7}))
    answer.close_body()


async def split(answer: Answer, value: str, reader: Any, writer: Any) -> None:
    for byte in await _whole(answer):
        answer.frames(bytes([byte]))
    answer.close_body()


async def long_line(answer: Answer, value: str, reader: Any, writer: Any) -> None:
    answer.frames(answer.speech.begin())
    answer.frames(answer.speech.text("0123456789abcdef" * (10 * MEBIBYTE // 16)))
    await answer.end()


async def endless_line(answer: Answer, value: str, reader: Any, writer: Any) -> None:
    answer.frames(b"data: " + b"x" * (17 * MEBIBYTE))
    answer.close_body()


async def bad_json(answer: Answer, value: str, reader: Any, writer: Any) -> None:
    speech = answer.speech
    answer.frames(speech.begin())
    speech.calls["call_bad"] = 0
    answer.frames(speech.call("call_bad", answer.tool))
    answer.frames(speech.input("call_bad", '{"path": "a'))
    await answer.end()


async def same_ids(answer: Answer, value: str, reader: Any, writer: Any) -> None:
    speech = answer.speech
    answer.frames(speech.begin())
    for number in range(2):
        speech.calls["call_same"] = number
        frame = speech.call("call_same", answer.tool).replace(b'"index":0,"id"', b'"index":%d,"id"' % number)
        answer.frames(frame)
        answer.frames(speech.input("call_same", json.dumps({"number": number})))
    await answer.end()


async def odd_finish(answer: Answer, value: str, reader: Any, writer: Any) -> None:
    await answer.words()
    answer.speech.reason = "because"
    await answer.end()


async def no_usage(answer: Answer, value: str, reader: Any, writer: Any) -> None:
    answer.speech.usage = None
    await answer.words()
    answer.speech.usage = None
    await answer.end()


async def stay(answer: Answer, value: str, reader: asyncio.StreamReader, writer: Any) -> None:
    answer.frames(await _whole(answer))
    await answer.flush()
    await _gone(reader)


async def break_late(answer: Answer, value: str, reader: Any, writer: asyncio.StreamWriter) -> None:
    await answer.words()
    for frame in answer.speech.end()[:-1]:
        answer.frames(frame)
    await answer.flush()
    _abort(writer)
    raise Broken


async def whole(answer: Answer, value: str, reader: Any, writer: asyncio.StreamWriter) -> None:
    message = {"role": "assistant", "content": "all at\nonce"}
    body = {"choices": [{"message": message, "finish_reason": "stop"}], "usage": {"prompt_tokens": 3}}
    writer.write(plain(200, json.dumps(body, indent=2).encode(), "application/json"))


FAULTS: dict[str, Way] = {
    "429-seconds": _asked_to_wait(lambda given: given or "1"),
    "429-date": _asked_to_wait(lambda given: _date_in(given or "1")),
    "429-absurd": _asked_to_wait(lambda given: str(30 * 365 * 86_400)),
    "429-nonsense": _asked_to_wait(lambda given: "soon"),
    "echo": echo,
    "redirect": redirect,
    "refusal": refusal,
    "reset": reset,
    "half-close": half_close,
    "close": close,
    "stall": stall,
    "silent": silent,
    "mute": mute,
    "drip": drip,
    "comments": comments,
    "html": html,
    "empty": empty,
    "garbage": garbage,
    "garbage-late": garbage_late,
    "shapes": shapes,
    "split": split,
    "long-line": long_line,
    "endless-line": endless_line,
    "bad-json": bad_json,
    "same-ids": same_ids,
    "odd-finish": odd_finish,
    "no-usage": no_usage,
    "stay": stay,
    "break-late": break_late,
    "whole": whole,
}
