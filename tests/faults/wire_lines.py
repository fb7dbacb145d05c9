"""Lines no Wire client should send, each with the answer it must get. The answers are known from how a line was made,
never from how the server reads it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any, NamedTuple

PARSE, INVALID, UNKNOWN, PARAMS = -32700, -32600, -32601, -32602


class Bad(NamedTuple):
    """A line and the codes one of which answers it: with id null, or with `id`. No codes: silence."""

    line: bytes
    codes: tuple[int, ...]
    id: Any = None


Make = Callable[[random.Random], Bad]
ANYTHING: list[Any] = [None, True, False, 0, -1, 1.5, 1e300, "", "x", [], [1], {}, {"a": 1}]

NOT_QUITE = (
    *("NaN", "Infinity", "-Infinity", "01", "1.", ".5", "+1", "0x10", "1e", "True", "None", "undefined", "'x'"),
    *("[1,]", '{"a":1,}', "{a:1}", '"\t"', '"\x01"', '"\\x41"', '"\\u12"', '"', "/*x*/1", "", "1 2", "tru", "nulll"),
)


def sent(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


def calls(rng: random.Random) -> dict[str, Any]:
    """The members of a sound request that starts no turn."""
    return rng.choice(
        [
            {"id": "a", "method": "initialize", "params": {"protocol_version": "1.10", "client": {"name": "é“”"}}},
            {"id": "b", "method": "steer", "params": {"user_input": 'look \\ " left'}},
            {"id": 7, "method": "cancel", "params": {}},
            {"id": "c", "method": "replay"},
            {"id": "d", "method": "nothing/like it", "params": [1, {"x": [None, 2.5]}]},
        ]
    )


def otherwise(rng: random.Random, *allowed: type) -> Any:
    return rng.choice([value for value in ANYTHING if type(value) not in allowed])


# --- not JSON ---------------------------------------------------------------------------------------------------------
def cut_off(rng: random.Random) -> Bad:
    whole = sent(**calls(rng))
    return Bad(whole[: rng.randrange(1, len(whole))], (PARSE,))


def blank(rng: random.Random) -> Bad:
    return Bad(rng.choice([b"", b" ", b"\t", b"\r", b"  \r", b"\x00", b"\x0b"]), (PARSE,))


def noise(rng: random.Random) -> Bad:
    first = rng.choice(b"abcdghijABCXYZ#/'<>()*\x00\x01\x7f\x80\xfe\xff")
    return Bad(bytes([first]) + rng.randbytes(rng.randrange(300)).replace(b"\n", b""), (PARSE,))


def bad_utf8(rng: random.Random) -> Bad:
    wrong = rng.choice([b"\xff", b"\xc3(", b"\xc0\x80", b"\xed\xa0\x80", b"\xf0\x9f\x98", b"\xf5\x80\x80\x80", b"\x80"])
    where = rng.choice(['"method": "{}"', '"id": "{}"', '"params": {"x": "{}"}', '"more": "{}"'])
    line = '{"jsonrpc": "2.0", "id": "a", "method": "x", ' + where + "}"
    return Bad(line.encode().replace(b"{}", wrong, 1), (PARSE,))


def not_quite(rng: random.Random) -> Bad:
    value = rng.choice(NOT_QUITE)
    return Bad(f'{{"jsonrpc":"2.0","id":"a","method":"initialize","params":{value}}}'.encode(), (PARSE,))


def around(rng: random.Random) -> Bad:
    whole = sent(**calls(rng))
    before, after = rng.choice(
        [(b"\xef\xbb\xbf", b""), (b"", b"}"), (b"", whole), (b",", b""), (b"", b"\x00"), (b"]", b"")]
    )
    return Bad(before + whole + after, (PARSE,))


def utf16(rng: random.Random) -> Bad:
    return Bad(sent(**calls(rng)).decode().encode(rng.choice(["utf-16", "utf-16-le", "utf-32"])), (PARSE,))


def lone_surrogate(rng: random.Random) -> Bad:
    half = rng.choice(["\\ud800", "\\udc00", "\\udfff\\ud800", "x\\ud83d"])
    word, where = rng.choice([("prompt", "user_input"), ("steer", "user_input"), ("initialize", "protocol_version")])
    line = f'{{"jsonrpc":"2.0","id":"p1","method":"{word}","params":{{"{where}":"{half}"}}}}'
    return Bad(line.encode(), (PARAMS,), "p1")


# --- JSON, but no message ---------------------------------------------------------------------------------------------
def batch(rng: random.Random) -> Bad:
    items = [{"jsonrpc": "2.0", **calls(rng)} for _ in range(rng.randrange(4))]
    return Bad(json.dumps(rng.choice([items, [items], [1, None], ["x"]])).encode(), (INVALID,))


def no_object(rng: random.Random) -> Bad:
    return Bad(json.dumps(otherwise(rng, dict, list)).encode(), (INVALID,))


def version(rng: random.Random) -> Bad:
    members = {"jsonrpc": rng.choice([*ANYTHING, "1.0", "2", 2.0, 2, "2.0 ", "２.0"]), **calls(rng)}
    if rng.random() < 0.3:
        del members["jsonrpc"]
    return Bad(json.dumps(members).encode(), (INVALID,))


def method(rng: random.Random) -> Bad:
    members = calls(rng) | {"method": otherwise(rng, str) if rng.random() < 0.8 else ""}
    return Bad(sent(**members), (INVALID,))


def odd_id(rng: random.Random) -> Bad:
    return Bad(sent(**calls(rng) | {"id": rng.choice([None, True, 1.5, [], ["a"], {}, {"a": 1}, 1e300])}), (INVALID,))


def lacking(rng: random.Random) -> Bad:
    members: dict[str, Any] = rng.choice(
        [
            *({}, {"id": "x"}, {"id": 3, "params": {}}, {"params": {}}, {"result": 1}),
            {"error": {"code": 1, "message": ""}},
            {"id": "x", "result": 1, "error": {"code": 1, "message": "m"}},
        ]
    )
    return Bad(sent(**members), (INVALID,))


def deep(rng: random.Random) -> Bad:
    levels = rng.choice([70, 100, 500, 1000, 5000, 100_000])
    opened, closed = rng.choice([("[", "]"), ('{"a":', "}")])
    inner = opened * levels + "1" + closed * levels
    line = rng.choice([inner, f'{{"jsonrpc":"2.0","id":"a","method":"initialize","params":{inner}}}'])
    return Bad(line.encode(), (INVALID,))


def deep_and_open(rng: random.Random) -> Bad:
    return Bad(rng.choice([b"[", b'{"a":', b'[{"a":']) * rng.choice([70, 5000, 100_000]), (PARSE, INVALID))


# --- messages that cannot be served -----------------------------------------------------------------------------------
def params(rng: random.Random) -> Bad:
    word = rng.choice(["prompt", "initialize", "steer", "set_plan_mode"])
    given: Any
    match word:
        case "initialize":
            given = rng.choice(
                [
                    {"protocol_version": otherwise(rng, str)},
                    {"protocol_version": "1.10", "client": otherwise(rng, dict, type(None))},
                    {"protocol_version": "1.10", "client": {"name": otherwise(rng, str)}},
                    {"protocol_version": "1.10", "external_tools": otherwise(rng, list, type(None))},
                    {"protocol_version": "1.10", "external_tools": [otherwise(rng)]},
                    {"protocol_version": "1.10", "capabilities": {"supports_question": otherwise(rng, bool)}},
                    {"protocol_version": "1.10", "hooks": [{"id": "h", "event": "Stop", "timeout": "soon"}]},
                ]
            )
        case "set_plan_mode":
            given = {"enabled": otherwise(rng, bool)}
        case _:
            part = {"type": rng.choice(["text", "image_url", "smell", "", 5, None]), "txt": otherwise(rng)}
            given = {"user_input": rng.choice([otherwise(rng, str, list), [part], [otherwise(rng)]])}
    if rng.random() < 0.3:
        given = rng.choice([{}, [], [1], 5, "x", True, None])
    return Bad(sent(id="p1", method=word, params=given), (PARAMS,), "p1")


def unknown(rng: random.Random) -> Bad:
    word = rng.choice(["event", "request", "Prompt", "prompt ", "rpc.discover", "\u2028", "🜁", "x" * 5000, "é\n"])
    id = rng.choice(["u1", 12, "", "🜁", -3, "x" * 3000])
    return Bad(sent(id=id, method=word, params=rng.choice(ANYTHING)), (UNKNOWN,), id)


def unheard(rng: random.Random) -> Bad:
    """Answers nobody waits for, and calls that want none."""
    members: dict[str, Any] = rng.choice(
        [
            {"id": "nobody", "result": rng.choice(ANYTHING)},
            {"id": 99, "error": rng.choice([{"code": 1, "message": "m"}, {}, "x", 5, [1]])},
            {"method": rng.choice(["event", "nothing", "x" * 100]), "params": rng.choice(ANYTHING)},
            {"method": "prompt", "params": rng.choice([{"user_input": "go"}, {}, 5])},
        ]
    )
    return Bad(sent(**members), ())


KINDS: tuple[Make, ...] = (
    *(cut_off, blank, noise, bad_utf8, not_quite, around, utf16, batch, no_object, version, method, odd_id, lacking),
    *(deep, deep_and_open, params, lone_surrogate, unknown, unheard),
)


def flipped(rng: random.Random) -> bytes:
    """A sound line with some bytes changed: what it is now, nobody knows."""
    members = calls(rng)
    while members["method"] == "replay":  # nothing may be running when the next request comes
        members = calls(rng)
    line = bytearray(sent(**members))
    for _ in range(rng.randrange(1, 6)):
        line[rng.randrange(len(line))] = rng.choice(b'"{}[],:\\ 0e-x\x00\xff')
    return bytes(line)
