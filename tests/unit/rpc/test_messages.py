import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from quintet.rpc.depth import too_deep
from quintet.rpc.messages import (
    HALF,
    BadMessage,
    ErrorResponse,
    Notification,
    NullId,
    Request,
    Response,
    WireError,
    decode,
    encode_error,
    encode_notification,
    encode_request,
    encode_result,
)


def message(**members: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


def test_a_request_keeps_the_json_type_of_its_id() -> None:
    assert decode(message(id=7, method="m")).id == 7  # type: ignore[union-attr]
    assert decode(message(id="7", method="m")).id == "7"  # type: ignore[union-attr]
    assert decode(message(id=2**70, method="m")).id == 2**70  # type: ignore[union-attr]


def test_params_stay_raw_until_their_row_is_known() -> None:
    got = decode(message(id=1, method="m", params={"a": [1, 2]}))
    assert isinstance(got, Request)
    assert json.loads(bytes(got.params)) == {"a": [1, 2]}


def test_without_id_it_is_a_notification() -> None:
    assert isinstance(decode(message(method="m")), Notification)


@pytest.mark.parametrize(
    ("null_id", "kind"), [("refuse", BadMessage), ("request", Request), ("notification", Notification)]
)
def test_a_null_id_is_what_the_protocol_says(null_id: NullId, kind: type) -> None:
    assert isinstance(decode(message(id=None, method="m"), null_id=null_id), kind)


@pytest.mark.req("reliability:R7")
@pytest.mark.parametrize(
    ("body", "reason", "id", "has_id"),
    [
        (b"", "parse", None, False),
        (b"nope", "parse", None, False),
        (b'{"jsonrpc":"2.0"', "parse", None, False),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":NaN}', "parse", None, False),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":[Infinity]}', "parse", None, False),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":[-Infinity]}', "parse", None, False),
        (b'{"jsonrpc":"2.0","id":"\\ud800","method":"m"}', "id", None, True),
        (b'{"jsonrpc":"2.0","id":"\\ud800","result":{}}', "id", None, True),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":["\\ud800"', "parse", None, False),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":["\xff"]}', "parse", None, False),
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":["\xed\xa0\x80"]}', "parse", None, False),
        (b'{"jsonrpc":"2.0","id":1,"method":"m"} {}', "parse", None, False),
        (b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"m"}', "parse", None, False),
        (b"[1", "parse", None, False),
        (b"[]", "batch", None, False),
        (b' [{"jsonrpc":"2.0","id":1,"method":"m"}]', "batch", None, False),
        (b"3", "object", None, False),
        (b'"text"', "object", None, False),
        (b"null", "object", None, False),
        (b"{}", "version", None, False),
        (b'{"jsonrpc":"1.0","id":6,"method":"m"}', "version", 6, True),
        (b'{"jsonrpc":2.0,"id":"x","method":"m"}', "version", "x", True),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"m"}', "id", None, True),
        (b'{"jsonrpc":"2.0","id":true,"method":"m"}', "id", None, True),
        (b'{"jsonrpc":"2.0","id":{},"method":"m"}', "id", None, True),
        (b'{"jsonrpc":"2.0","id":3,"method":""}', "method", 3, True),
        (b'{"jsonrpc":"2.0","id":3,"method":7}', "method", 3, True),
        (b'{"jsonrpc":"2.0","method":null}', "method", None, False),
        (b'{"jsonrpc":"2.0","id":3}', "method", 3, True),
        (b'{"jsonrpc":"2.0"}', "method", None, False),
        (b'{"jsonrpc":"2.0","id":3,"result":1,"error":{"code":1,"message":"m"}}', "shape", 3, True),
    ],
)
def test_what_is_no_message_is_classified_precisely(body: bytes, reason: str, id: object, has_id: bool) -> None:
    got = decode(body)
    assert isinstance(got, BadMessage)
    assert (got.reason, got.id, got.has_id) == (reason, id, has_id)


@pytest.mark.req("reliability:R7")
@pytest.mark.parametrize("depth", [64, 200, 100_000, 5_000_000])
def test_json_nested_deeper_than_64_is_refused_without_falling_over(depth: int) -> None:
    got = decode(b'{"jsonrpc":"2.0","id":1,"method":"m","params":' + b"[" * depth + b"]" * depth + b"}")
    assert isinstance(got, BadMessage)
    assert got.reason == "depth"


def test_json_nested_63_under_the_object_is_accepted_whatever_its_strings_hold() -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"m","params":' + b"[" * 63 + b'"[[[[\\"{{{"' + b"]" * 63 + b"}"
    assert isinstance(decode(body), Request)


def height(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(height, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(height, value), default=0)
    return 0


@settings(max_examples=400, deadline=None)
@given(
    st.recursive(
        st.none() | st.text('"\\[]{}é', max_size=6),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text('"\\[{', max_size=3), inner, max_size=3),
        max_leaves=60,
    )
)
def test_depth_is_counted_as_a_parser_would(value: object) -> None:
    body = json.dumps(value).encode()
    for limit in range(9):
        assert too_deep(body, limit) == (height(value) > limit)


def test_answers_are_told_apart_and_a_null_twin_is_ignored() -> None:
    good = decode(message(id="a", result={"x": 1}, error=None))
    assert isinstance(good, Response)
    assert bytes(good.result).replace(b" ", b"") == b'{"x":1}'
    failed = decode(message(id=2, result=None, error={"code": 5, "message": "no", "data": [1]}))
    assert failed == ErrorResponse(2, WireError(5, "no", [1]))


def test_a_malformed_error_object_still_counts_as_a_failure() -> None:
    got = decode(message(id=2, error="broken"))
    assert isinstance(got, ErrorResponse)
    assert got.error.code == 0


def test_error_data_is_left_out_unless_given_and_null_when_given_as_none() -> None:
    assert "data" not in json.loads(encode_error(1, WireError(-1, "m")))["error"]
    assert json.loads(encode_error(None, WireError(-1, "m", None))) == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -1, "message": "m", "data": None},
    }


def test_outgoing_messages_are_one_line_of_utf_8() -> None:
    text = "a\nb\u2028é\r"
    line = encode_notification("m", {"t": text})
    assert b"\n" not in line
    assert json.loads(line) == {"jsonrpc": "2.0", "method": "m", "params": {"t": text}}
    assert json.loads(encode_request("r1", "m")) == {"jsonrpc": "2.0", "id": "r1", "method": "m"}


def test_lone_surrogates_in_output_become_replacement_characters_and_nothing_else_changes() -> None:
    result = {"bad\ud800": ["x\udcff", "😀", Raw(b'{"raw":1}'), 1.5]}
    assert json.loads(encode_result(1, result))["result"] == {"bad\ufffd": ["x\ufffd", "😀", {"raw": 1}, 1.5]}


def test_nan_never_reaches_the_wire() -> None:
    assert json.loads(encode_result(1, [float("nan"), float("inf")]))["result"] == [None, None]


@pytest.mark.req("reliability:R7")
@settings(max_examples=1000, deadline=None)
@given(st.binary(max_size=60), st.integers(0, 50), st.integers(0, 50))
def test_damaged_messages_never_raise(noise: bytes, at: int, cut: int) -> None:
    whole = b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":["\\u00e9",1e5]}}'
    decode(noise)
    decode(whole[:at] + noise + whole[at + cut :])


@pytest.mark.parametrize(
    "half", [r"\ud800", r"\udC00", r"\udc00\ud800", r"x\uD83d", r"\ud83d\ud83d\ude00", r"\\\ud800"]
)
def test_half_of_a_surrogate_pair_is_refused_under_the_id_of_whoever_sent_it(half: str) -> None:
    """JSON can write it, no text can hold it; an answer without the id would leave a client waiting."""
    request = decode(f'{{"jsonrpc":"2.0","id":"a","method":"m","params":["{half}"]}}'.encode())
    assert isinstance(request, Request)
    assert (request.id, request.method) == ("a", "m")
    with pytest.raises(msgspec.DecodeError):
        msgspec.json.decode(request.params)
    answer = decode(f'{{"jsonrpc":"2.0","id":"a","result":{{"x":"{half}"}}}}'.encode())
    assert isinstance(answer, ErrorResponse)
    assert (answer.id, answer.error.message) == ("a", HALF)
    assert isinstance(decode(f'{{"jsonrpc":"2.0","method":"m","params":["{half}"]}}'.encode()), Notification)


@pytest.mark.parametrize("whole", [r"\ud83d\ude00", r"\\ud800", r"\\\ud83d\ude00", r"\ufffd"])
def test_whole_pairs_and_words_that_look_like_halves_are_what_they_are(whole: str) -> None:
    body = f'{{"jsonrpc":"2.0","id":"a","method":"m","params":["{whole}"]}}'.encode()
    request = decode(body)
    assert isinstance(request, Request)
    assert msgspec.json.decode(request.params) == [json.loads(f'"{whole}"')]
