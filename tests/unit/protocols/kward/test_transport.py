"""Blocks in, blocks out: framing, ids, codes, redaction."""

from __future__ import annotations

import json
from typing import Any

import pytest

from quintet.domain.errors import all_error_classes
from quintet.protocols.kward.errors import errors
from quintet.protocols.kward.redaction import MASK, body, redacted
from tests.unit.protocols.kward.conftest import Connect


def block(message: Any) -> bytes:
    data = json.dumps({"jsonrpc": "2.0", **message}).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(data), data)


ASK = {"id": 1, "method": "workspace/validate"}


@pytest.mark.req("kward:1")
async def test_the_length_counts_bytes(connect: Connect) -> None:
    peer = connect()
    (peer.work / "é").mkdir()
    await peer.send(id=1, method="workspace/info", params={"workspaceRoot": "é"})
    assert (await peer.reply(1))["result"]["basename"] == "é"  # the peer takes the header at its word


@pytest.mark.req("kward:2")
async def test_header_names_are_in_any_case_with_others_beside_them_and_bare_newlines(connect: Connect) -> None:
    peer = connect()
    data = json.dumps({"jsonrpc": "2.0", **ASK}).encode()
    await peer.raw(b"X-Other: 1\ncontent-length: %d\ncontent-type: application/json\n\n%b" % (len(data), data))
    assert "result" in await peer.reply(1)


@pytest.mark.req("kward:3")
async def test_two_requests_in_one_write_get_two_replies(connect: Connect) -> None:
    peer = connect()
    await peer.raw(block(ASK) + block(ASK | {"id": 2}))
    assert "result" in await peer.reply(1)
    assert "result" in await peer.reply(2)


@pytest.mark.req("kward:4")
async def test_a_request_split_at_any_byte_is_answered_once_it_is_whole(connect: Connect) -> None:
    peer = connect()
    for cut in range(1, len(block(ASK))):
        whole = block(ASK | {"id": cut})
        await peer.raw(whole[:cut])
        await peer.raw(whole[cut:])
        assert "result" in await peer.reply(cut)


@pytest.mark.req("kward:5")
async def test_a_body_that_is_no_json_is_a_parse_error_and_the_next_request_works(connect: Connect) -> None:
    peer = connect()
    await peer.body(b"{nonsense")
    error = await peer.next()
    assert error is not None
    assert (error["id"], error["error"]["code"], error["error"]["message"]) == (None, -32700, "Parse error")
    assert await peer.ok("workspace/validate")


@pytest.mark.req("kward:6")
async def test_another_version_of_json_rpc_is_invalid_with_the_id(connect: Connect) -> None:
    peer = connect()
    await peer.body(b'{"jsonrpc":"1.0","id":7,"method":"initialize"}')
    error = await peer.reply(7)
    assert (error["error"]["code"], error["error"]["message"]) == (-32600, "Invalid Request")


@pytest.mark.req("kward:7")
async def test_an_array_is_invalid_without_an_id(connect: Connect) -> None:
    peer = connect()
    await peer.body(b"[1,2]")
    error = await peer.next()
    assert error is not None
    assert (error["id"], error["error"]["code"]) == (None, -32600)


@pytest.mark.req("kward:8")
async def test_an_empty_method_is_invalid_with_an_id_and_silence_without(connect: Connect) -> None:
    peer = connect()
    await peer.body(b'{"jsonrpc":"2.0","method":""}')
    await peer.body(b'{"jsonrpc":"2.0","id":"x","method":""}')
    error = await peer.next()
    assert error is not None
    assert (error["id"], error["error"]["code"]) == ("x", -32600)


@pytest.mark.req("kward:9", "kward:10")
async def test_an_unknown_method_is_named_with_an_id_and_silence_without(connect: Connect) -> None:
    peer = connect()
    await peer.send(method="no/such")
    assert await peer.fails("no/such") == (-32601, "Method not found: no/such")
    assert len(peer.seen) == 1


@pytest.mark.req("kward:11")
async def test_ids_come_back_as_they_were_sent(connect: Connect) -> None:
    peer = connect()
    for id in ("one", 1, -7, "1", 2**53):
        await peer.send(id=id, method="workspace/validate")
        reply = await peer.next()
        assert reply is not None
        assert reply["id"] == id
        assert type(reply["id"]) is type(id)


@pytest.mark.req("kward:15")
async def test_a_missing_param_is_named(connect: Connect) -> None:
    peer = connect()
    assert await peer.fails("sessions/close") == (-32603, 'key not found: "sessionId"')
    assert await peer.fails("sessions/fork", sessionId="x") == (-32603, 'key not found: "entryId"')


@pytest.mark.req("kward:16")
async def test_an_error_carries_data_without_secrets(connect: Connect) -> None:
    peer = connect()
    error = (await peer.call("sessions/close", sessionId="sk-abcdefgh1234"))["error"]
    assert error["message"] == "Unknown session: [REDACTED]"
    assert set(error["data"]) == {"code", "message", "backtrace"}
    assert error["data"]["backtrace"] == []
    assert "abcdefgh" not in json.dumps(error)


async def test_trouble_with_a_header_is_told_and_the_next_block_works(connect: Connect) -> None:
    peer = connect()
    await peer.raw(b"Content-Type: x\r\n\r\n")
    error = await peer.next()
    assert error is not None
    assert (error["id"], error["error"]["message"]) == (None, "Missing Content-Length header")
    await peer.raw(b"\xff\xfe nonsense\r\n")
    await peer.raw(block(ASK))
    assert "result" in await peer.reply(1)


def test_every_error_of_the_engine_has_a_code() -> None:
    for kind in all_error_classes():
        made = errors(kind("words"), "turns/start")
        assert made.code in (-32602, -32603)
        assert made.message.startswith("words")


# --- redaction --------------------------------------------------------------------------------------------------------
@pytest.mark.req("kward:115")
@pytest.mark.parametrize(
    "key",
    ["token", "accessToken", "client_secret", "api_key", "openrouterApiKey", "Authorization", "password", "credential"],
)
def test_what_stands_under_a_secret_name_is_masked_at_any_depth(key: str) -> None:
    assert redacted({"a": [{key: "value"}]}) == {"a": [{key: MASK}]}
    assert redacted({key: {"inner": ["value", 5]}}) == {key: {"inner": [MASK, 5]}}


@pytest.mark.req("kward:116")
@pytest.mark.parametrize("text", ["Authorization: Bearer xyz", "use sk-12345678 now", "bearer  abc.def"])
def test_what_has_a_secrets_shape_is_masked_in_any_text(text: str) -> None:
    sent = body(json.dumps({"method": "turn/event", "params": {"delta": text}}).encode(), set())
    assert MASK in sent.decode()
    assert not any(word in sent.decode() for word in ("xyz", "12345678", "abc.def"))


@pytest.mark.req("kward:116")
async def test_a_secret_in_a_delta_is_masked_on_its_way_out_and_kept_in_the_file(connect: Connect) -> None:
    peer = connect('text: "key sk-12345678 end"')
    session = await peer.session()
    events = await peer.turn(session["id"])
    assert "sk-12345678" not in json.dumps(events)
    assert MASK in json.dumps(events)
    assert "sk-12345678" in json.dumps(peer.records(session))


@pytest.mark.req("kward:117")
def test_what_only_sounds_secret_stays_readable() -> None:
    told = {
        "input_tokens": 5,
        "tokensBefore": 7,
        "contextUsage": {"tokens": 9},
        "apiKeyProviders": ["openrouter"],
        "storedCredentialType": "oauth",
        "authorizationUrl": "https://example.org/authorize?code_challenge=x",
        "openrouterApiKey": True,
        "openaiAccessToken": False,
        "totalTokens": None,
    }
    assert redacted(told) == told


def test_arguments_written_as_a_text_are_looked_into() -> None:
    call = {"function": {"name": "x", "arguments": '{"password":"hunter22","path":"a"}'}}
    assert redacted(call)["function"]["arguments"] == '{"password":"[REDACTED]","path":"a"}'
    same = {"function": {"arguments": '{"path": "a"}'}}
    assert redacted(same) == same
