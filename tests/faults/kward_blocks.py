"""Blocks no Kward client should send, each with what must come back. That is known from how a block was made, never
from how the server reads it."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Any, NamedTuple

PARSE, INVALID, UNKNOWN, PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603
ANYTHING: list[Any] = [None, True, False, 0, -1, 1.5, 1e300, "", "x", [], [1], {}, {"a": 1}]
NOT_QUITE = ["NaN", "01", "1.", "+1", "0x10", "True", "'x'", "[1,]", '{"a":1,}', "{a:1}", '"\t"', '"\\u12"', "1 2", ""]
METHODS = ["sessions/create", "sessions/fork", "turns/start", "turns/events", "runtime/state", "ui/answerQuestion"]


class Bad(NamedTuple):
    """Bytes, the codes one of which answers them, and the id of the answer. No codes: silence."""

    data: bytes
    codes: tuple[int, ...]
    id: Any = None


Make = Callable[[random.Random], Bad]


def block(body: bytes, *, header: bytes = b"Content-Length: %d\r\n\r\n") -> bytes:
    return header % len(body) + body


def sent(**members: Any) -> bytes:
    return block(json.dumps({"jsonrpc": "2.0", **members}).encode())


def call(rng: random.Random) -> bytes:
    members = {"id": rng.choice(["a", 7]), "method": rng.choice(METHODS), "params": {"sessionId": 'é“”\\ "'}}
    return json.dumps({"jsonrpc": "2.0", **members}, ensure_ascii=rng.random() < 0.5).encode()


# --- bodies -----------------------------------------------------------------------------------------------------------
def cut_off(rng: random.Random) -> Bad:
    whole = call(rng)
    return Bad(block(whole[: rng.randrange(1, len(whole))]), (PARSE,))


def noise(rng: random.Random) -> Bad:
    return Bad(block(b"#" + rng.randbytes(rng.randrange(300))), (PARSE,))


def empty(rng: random.Random) -> Bad:
    return Bad(block(rng.choice([b"", b" ", b"\n", b"\x00"])), (PARSE,))


def not_quite(rng: random.Random) -> Bad:
    value = rng.choice(NOT_QUITE)
    return Bad(block(f'{{"jsonrpc":"2.0","id":"a","method":"initialize","params":{value}}}'.encode()), (PARSE,))


def bad_utf8(rng: random.Random) -> Bad:
    wrong = rng.choice([b"\xff", b"\xc3(", b"\xc0\x80", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\x80"])
    return Bad(block(b'{"jsonrpc":"2.0","id":"a","method":"x","params":{"y":"%b"}}' % wrong), (PARSE,))


def too_deep(rng: random.Random) -> Bad:
    depth = rng.randrange(70, 5000)
    return Bad(
        block(b'{"jsonrpc":"2.0","id":"a","method":"x","params":' + b"[" * depth + b"]" * depth + b"}"), (PARSE,)
    )


def no_object(rng: random.Random) -> Bad:
    value = rng.choice([v for v in ANYTHING if not isinstance(v, dict)])
    return Bad(block(json.dumps(value).encode()), (INVALID,))


def version(rng: random.Random) -> Bad:
    value = rng.choice([v for v in [*ANYTHING, "1.0", 2.0, "2"] if v != "2.0"])
    return Bad(block(json.dumps({"jsonrpc": value, "id": 5, "method": "initialize"}).encode()), (INVALID,), 5)


def method(rng: random.Random) -> Bad:
    value = rng.choice([v for v in ANYTHING if not (isinstance(v, str) and v)])
    if rng.random() < 0.5:
        return Bad(block(json.dumps({"jsonrpc": "2.0", "method": value}).encode()), ())
    return Bad(block(json.dumps({"jsonrpc": "2.0", "id": "m", "method": value}).encode()), (INVALID,), "m")


def odd_id(rng: random.Random) -> Bad:
    value = rng.choice([True, False, 1.5, [], {}, [1], None])
    return Bad(block(json.dumps({"jsonrpc": "2.0", "id": value, "method": "initialize"}).encode()), (INVALID,))


def params(rng: random.Random) -> Bad:
    value = rng.choice([v for v in ANYTHING if v is not None and not isinstance(v, dict)])
    name = rng.choice(METHODS)
    return Bad(sent(id="p", method=name, params=value), (PARAMS, INTERNAL), "p")


def typed(rng: random.Random) -> Bad:
    wrong = rng.choice([v for v in ANYTHING if not isinstance(v, str)])
    given = {"sessionId": wrong, "turnId": wrong, "workspaceRoot": [wrong], "entryId": wrong, "input": wrong}
    return Bad(sent(id=9, method=rng.choice(METHODS), params=given), (PARAMS, INTERNAL), 9)


def unknown(rng: random.Random) -> Bad:
    name = "".join(chr(rng.randrange(1, 0xD000)) for _ in range(rng.randrange(1, 40)))
    if rng.random() < 0.3:
        return Bad(sent(method=name), ())
    return Bad(sent(id="u", method=name, params=rng.choice(ANYTHING)), (UNKNOWN,), "u")


def stray_answer(rng: random.Random) -> Bad:
    return Bad(sent(id=rng.choice([1, "x"]), result=rng.choice(ANYTHING)), ())


# --- headers ----------------------------------------------------------------------------------------------------------
def no_length(rng: random.Random) -> Bad:
    name = rng.choice([b"Content-Type: application/json", b"X-Content-Length: 5", b"A: b"])
    return Bad(name + b"\r\n\r\n", (INVALID,))


def bad_header(rng: random.Random) -> Bad:
    line = rng.choice([b"nonsense", b": 5", b"Content Length: 5", b"\xff\xfe", b"{}", b"Content-Length 5"])
    return Bad(line + b"\r\n", (INVALID,))


def bad_length(rng: random.Random) -> Bad:
    value = rng.choice([b"x", b"-1", b"1.5", b"", b"0x10", b"1e3", b"9" * 40, b"1 2"])
    return Bad(b"Content-Length: " + value + b"\r\n\r\n", (INVALID,))


def twice(rng: random.Random) -> Bad:
    return Bad(b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", (INVALID,))


def large_header(rng: random.Random) -> Bad:
    return Bad(b"X: " + b"y" * rng.randrange(8200, 20000) + b"\r\n\r\n", (INVALID,))


def large_body(rng: random.Random) -> Bad:
    return Bad(b"Content-Length: %d\r\n\r\n" % rng.choice([10**12, 10**14]), (INVALID,))


KINDS: tuple[Make, ...] = (
    *(cut_off, noise, empty, not_quite, bad_utf8, too_deep, no_object, version, method, odd_id, params, typed, unknown),
    *(stray_answer, no_length, bad_header, bad_length, twice, large_header, large_body),
)


def flipped(rng: random.Random) -> bytes:
    """A sound block with some of its bytes changed, added or gone, header and length included; one that claims to hold
    more than a thousand bytes would only be waited for."""
    while True:
        data = bytearray(block(call(rng)))
        for _ in range(rng.randrange(1, 6)):
            at = rng.randrange(len(data))
            match rng.randrange(3):
                case 0:
                    data[at] = rng.randrange(256)
                case 1:
                    data.insert(at, rng.randrange(256))
                case 2:
                    del data[at]
        if not re.search(rb"[0-9]{4}", data):
            return bytes(data)
