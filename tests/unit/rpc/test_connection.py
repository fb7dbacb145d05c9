import asyncio
import os
import random
from typing import Any

import pytest

from quintet.rpc.blocks import BlockDecoder, encode_block
from quintet.rpc.call import Call, Reply
from quintet.rpc.connection import Connection
from quintet.rpc.descriptor import sink_of, source_of
from quintet.rpc.dialect import Dialect
from quintet.rpc.dispatch import Dispatcher
from quintet.rpc.faults import BadReply, Ended, Remote
from quintet.rpc.framing import LineDecoder, encode_line
from quintet.rpc.messages import encode_request
from quintet.rpc.rows import Family, Table

from .conftest import WAIT_S, Client, bad, connected, errors, within


@pytest.fixture
def echo(family: Family) -> Family:
    @family.method("echo", summary="Echo.", params=dict)
    async def echo(call: Call[Any], params: dict[str, Any]) -> dict[str, Any]:
        return params

    return family


# Questions asked back


class Asking:
    """A handler that asks the client and notes how it went."""

    def __init__(self, family: Family, **options: Any) -> None:
        self.outcome: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        @family.method("start", summary="Ask back.")
        async def start(call: Call[Any], params: Any) -> str:
            try:
                self.outcome.set_result(await call.connection.ask("question", {"q": 1}, **options))
            except Exception as why:
                self.outcome.set_result(why)
            return "done"


async def asked(client: Client) -> Any:
    await client.send(id=1, method="start")
    question = await client.receive()
    assert question["method"] == "question"
    assert question["params"] == {"q": 1}
    return question["id"]


async def test_a_question_is_answered_while_its_handler_waits(family: Family) -> None:
    asking = Asking(family)
    async with connected(family) as client:
        await client.send(id=await asked(client), result={"a": 2})
        assert await within(asking.outcome) == {"a": 2}
        assert (await client.receive())["result"] == "done"


async def test_an_error_answer_reaches_the_asker_as_remote(family: Family) -> None:
    asking = Asking(family)
    async with connected(family) as client:
        await client.send(id=await asked(client), error={"code": 5, "message": "no"})
        why = await within(asking.outcome)
        assert isinstance(why, Remote)
        assert (why.error.code, why.error.message) == (5, "no")


async def test_an_answer_of_another_shape_is_a_bad_reply(family: Family) -> None:
    asking = Asking(family, result=dict[str, int])
    async with connected(family) as client:
        await client.send(id=await asked(client), result={"a": "text"})
        assert isinstance(await within(asking.outcome), BadReply)


async def test_an_unanswered_question_times_out_and_its_late_answer_is_ignored(family: Family, echo: Family) -> None:
    log: list[str] = []
    asking = Asking(family, timeout_s=0.02)
    async with connected(family, log=lambda what, about: log.append(what)) as client:
        id_ = await asked(client)
        assert isinstance(await within(asking.outcome), TimeoutError)
        assert (await client.receive())["result"] == "done"
        await client.send(id=id_, result=1)
        await client.send(id="never asked", result=1)
        await client.send(id=99, error={"code": 1, "message": "m"})
        assert (await client.ask(id=2, method="echo", params={"b": 1}))["result"] == {"b": 1}
        assert len(client.connection._questions) == 0
    assert log == ["answer nobody waits for"] * 3


async def test_a_question_may_carry_an_id_of_the_protocols_choice(family: Family) -> None:
    Asking(family, id="int_7")
    async with connected(family) as client:
        assert await asked(client) == "int_7"


async def test_the_end_of_input_ends_open_questions_and_their_calls_are_still_answered(
    family: Family,
) -> None:
    asking = Asking(family)
    async with connected(family) as client:
        await asked(client)
        client.hang_up()
        assert isinstance(await within(asking.outcome), Ended)
        assert (await client.receive())["result"] == "done"
        assert await client.receive() is None
        await client.ended()
        with pytest.raises(Ended):
            await client.connection.ask("question")


# Beginning and end


async def test_requests_read_before_the_end_of_input_are_answered(echo: Family) -> None:
    async with connected(echo) as client:
        for number in range(10):
            await client.send(id=number, method="echo")
        client.hang_up()
        assert [(await client.receive())["id"] for _ in range(10)] == list(range(10))
        await client.ended()


async def test_the_protocol_is_told_of_the_end_while_calls_still_run(family: Family) -> None:
    stop = asyncio.Event()

    @family.method("prompt", summary="Until stopped.")
    async def prompt(call: Call[Any], params: Any) -> str:
        await stop.wait()
        return "stopped"

    async def on_end(connection: Connection[Any]) -> None:
        stop.set()

    async with connected(family, on_end=on_end) as client:
        await client.send(id=1, method="prompt")
        client.hang_up()
        assert (await client.receive())["result"] == "stopped"
        await client.ended()


async def test_calls_that_do_not_end_are_cancelled_after_the_grace_and_not_answered(family: Family) -> None:
    cancelled = asyncio.Event()

    @family.method("stuck", summary="Stuck.")
    async def stuck(call: Call[Any], params: Any) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async with connected(family, grace_s=0.05) as client:
        await client.send(id=1, method="stuck")
        client.hang_up()
        await within(client.ended(), 2)
        assert await client.receive() is None
    assert cancelled.is_set()


async def test_shutdown_is_answered_first_and_ends_the_connection_then(family: Family) -> None:
    @family.method("shutdown", summary="End.")
    async def shutdown(call: Call[Any], params: Any) -> Reply[dict[str, bool]]:
        async def end() -> None:
            call.connection.end()

        return Reply({"ok": True}, then=end)

    async with connected(family) as client:
        assert (await client.ask(id=1, method="shutdown"))["result"] == {"ok": True}
        assert await client.receive() is None
        await client.ended()


async def test_a_client_that_vanishes_ends_the_connection_quietly(echo: Family) -> None:
    async with connected(echo) as client:
        await client.send(id=1, method="echo", params={"x": "." * 1000})
        client.sock.close()
        await client.ended()


async def test_an_array_goes_to_the_protocols_hook_where_it_has_one(echo: Family) -> None:
    async def batch(connection: Connection[Any], body: bytes) -> None:
        await connection.notify("batch", {"size": len(body)})

    async with connected(echo, batch=batch) as client:
        await client.raw(b"[1,2]\n")
        assert (await client.receive())["params"] == {"size": 5}
    async with connected(echo) as client:
        await client.raw(b"[1,2]\n")
        assert (await client.receive())["error"] == {"code": -32600, "message": "batch"}


async def test_a_fatal_frame_is_answered_and_then_the_connection_ends(echo: Family) -> None:
    async with connected(echo, decoder=lambda: BlockDecoder(recover=False)) as client:
        await client.raw(b"nonsense\r\n")
        assert (await client.receive())["error"]["message"] == "bad_header"
        assert await client.receive() is None


# Slow readers


@pytest.mark.req("reliability:R6")
async def test_a_full_pipe_is_no_deadlock_requests_are_read_on_and_answered_once_it_is_read(
    echo: Family,
) -> None:
    (in_read, in_write), (out_read, out_write) = os.pipe(), os.pipe()
    dialect = Dialect(decoder=LineDecoder, encode=encode_line, bad=bad)
    dispatcher = Dispatcher(Table(echo), errors, max_calls=300)
    connection = Connection(source_of(in_read), sink_of(out_write), dispatcher, dialect, state=None)
    serving = asyncio.create_task(connection.serve())
    request = encode_line(encode_request(1, "echo", {"x": "." * 10_000}))
    for _ in range(200):  # 2 MB in and nobody reads the 2 MB that come back
        await within(asyncio.to_thread(os.write, in_write, request))
    await within(asyncio.to_thread(os.write, in_write, encode_line(b"bad")))
    assert connection.writer.held[0] <= 1024 * 1024
    os.close(in_write)
    got = bytearray()
    async with asyncio.timeout(WAIT_S):
        while chunk := await asyncio.to_thread(os.read, out_read, 1 << 20):
            got += chunk
    await within(serving)
    os.close(out_read)
    lines = bytes(got).splitlines()
    assert len(lines) == 201
    assert sum(b'"result"' in line for line in lines) == 200


@pytest.mark.req("reliability:R6")
async def test_what_is_owed_to_a_reader_that_takes_nothing_is_bounded(echo: Family) -> None:
    async with connected(echo, max_calls=8, grace_s=0.05) as client:
        filled = 0
        while client.connection.offer("fill", "." * 5000):
            filled += 1
        flood = asyncio.create_task(client.raw(b"bad\n" * 200_000))
        for _ in range(300):
            await asyncio.sleep(0)
            assert len(client.connection._owed) + len(client.connection._calls) <= 16
        assert not flood.done()
        assert client.connection.writer.held[0] <= 1024 * 1024
        flood.cancel()
        await asyncio.wait([flood])


@pytest.mark.req("reliability:R6")
async def test_a_stuck_reader_delays_no_other(echo: Family) -> None:
    async with connected(echo, grace_s=0.05) as stuck, connected(echo) as healthy:
        while stuck.connection.offer("event", "." * 5000):
            pass
        for number in range(20):
            await stuck.send(id=number, method="echo")
            assert (await healthy.ask(id=number, method="echo"))["id"] == number


# Malformed input against a whole connection

VALID = {"jsonrpc": "2.0", "id": "ok", "method": "echo"}
BODIES = [
    b"", b"{", b"[1]", b"null", b"NaN", b'"\\ud800"', b"\xff", b"[" * 500, b'{"jsonrpc":"2.0"}',
    b'{"jsonrpc":"2.0","id":{},"method":"echo"}', b'{"jsonrpc":"1.0","id":1,"method":"echo"}',
    b'{"jsonrpc":"2.0","id":1,"method":"echo","params":7}', b'{"jsonrpc":"2.0","id":1,"method":"nope"}',
    b'{"jsonrpc":"2.0","id":1,"result":1}', b'{"jsonrpc":"2.0","id":1,"method":"echo"}'[:-1],
    b'{"jsonrpc":"2.0","id":1,"method":"echo","params":' + b"[" * 90 + b"]" * 90 + b"}",
    b"x" * 3000,
]  # fmt: skip
HEADS = [
    b"\r\n", b"Content-Length: -1\r\n\r\n", b"Content-Length: 9\r\nContent-Length: 9\r\n\r\n",
    b"X: y\r\n\r\n", b"Content-Length: 99999999999\r\n\r\n", b"Content-Length: 1e3\r\n\r\n", b"garbage\r\n",
    b"a" * 9000 + b"\r\n",
    b"Content-Length: 5000\r\n\r\n" + b"x" * 5000,
]  # fmt: skip


def damaged(rng: random.Random) -> bytes:
    body = bytearray(rng.choice(BODIES))
    for _ in range(rng.randrange(3)):
        if body:
            body[rng.randrange(len(body))] = rng.randrange(256)
    return bytes(body)


@pytest.mark.req("reliability:R7")
@pytest.mark.parametrize("framing", ["lines", "blocks"])
async def test_after_thousands_of_malformed_inputs_each_next_valid_request_is_answered(
    echo: Family, framing: str
) -> None:
    rng = random.Random(20_26)
    lines = framing == "lines"
    frame = encode_line if lines else encode_block
    valid = frame(encode_request("ok", "echo"))
    decoder = (lambda: LineDecoder(limit=2000)) if lines else (lambda: BlockDecoder(limit=2000))
    async with connected(echo, decoder=decoder) as client:
        for _ in range(3000):
            junk = frame(damaged(rng)) if lines or rng.random() < 0.5 else rng.choice(HEADS)
            stream = junk + valid
            cut = rng.randrange(len(stream))
            await client.raw(stream[:cut])
            await client.raw(stream[cut:])
            while (got := await client.receive())["id"] != "ok":
                assert "error" in got or got["id"] == 1
            assert got == {"jsonrpc": "2.0", "id": "ok", "result": {}}


# Many at once


@pytest.mark.parametrize("size", [1, 3_000], ids=["small", "large"])
async def test_notifications_that_are_sent_together_arrive_one_by_one_in_their_order(family: Family, size: int) -> None:
    words = [f"{n} " + "x" * size for n in range(60)]
    words[7] = "half a character: \ud800"

    @family.method("start", summary="Tell much.")
    async def start(call: Call[Any], params: Any) -> str:
        await call.connection.notify("said", {"w": "first"})
        await call.connection.notify_all("said", [{"w": each} for each in words])
        await call.connection.notify_all("said", [])
        await call.connection.notify("said", {"w": "last"})
        return "done"

    async with connected(family) as client:
        await client.send(id=1, method="start")
        heard = [await client.receive() for _ in range(len(words) + 2)]
        assert (await client.receive())["result"] == "done"
    words[7] = "half a character: \N{REPLACEMENT CHARACTER}"
    assert [m["params"]["w"] for m in heard] == ["first", *words, "last"]
    assert {m["method"] for m in heard} == {"said"}
