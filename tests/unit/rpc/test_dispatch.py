import asyncio
from typing import Any

import msgspec
import pytest

from quintet.rpc.call import Call, Reply
from quintet.rpc.dispatch import Dispatcher, Lanes
from quintet.rpc.messages import WireError
from quintet.rpc.rows import Family, Table

from .conftest import connected, within


class Work(msgspec.Struct):
    name: str
    thread: str | None = None


class Stage:
    """Handlers that wait until they are let go, and note when they begin and end."""

    def __init__(self, family: Family) -> None:
        self.notes: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}
        self.begun: dict[str, asyncio.Event] = {}

        @family.method("work", summary="Wait.", params=Work, scope=lambda p: p.thread, form="either")
        async def work(call: Call[Any], params: Work) -> str:
            self.notes.append(f"begin {params.name}")
            self.event(self.begun, params.name).set()
            await self.event(self.gates, params.name).wait()
            self.notes.append(f"end {params.name}")
            return params.name

        @family.method("cancel", summary="Cancel by id.", params=dict, urgent=True)
        async def cancel(call: Call[Any], params: dict[str, Any]) -> bool:
            found = call.connection.find(params["id"])
            if found is not None:
                found.cancel()
            return found is not None

    @staticmethod
    def event(events: dict[str, asyncio.Event], name: str) -> asyncio.Event:
        return events.setdefault(name, asyncio.Event())

    def let(self, name: str) -> None:
        self.event(self.gates, name).set()

    async def begins(self, name: str) -> None:
        await within(self.event(self.begun, name).wait())


@pytest.fixture
def stage(family: Family) -> Stage:
    return Stage(family)


async def test_a_waiting_call_blocks_neither_the_reader_nor_other_calls(family: Family, stage: Stage) -> None:
    async with connected(family) as client:
        await client.send(id=1, method="work", params={"name": "slow"})
        await client.send(id=2, method="work", params={"name": "quick"})
        stage.let("quick")
        assert (await client.receive())["id"] == 2
        stage.let("slow")
        assert (await client.receive())["id"] == 1


async def test_calls_of_one_scope_run_one_after_the_other_in_the_order_read(family: Family, stage: Stage) -> None:
    async with connected(family) as client:
        for number, name in enumerate("abc"):
            await client.send(id=number, method="work", params={"name": name, "thread": "t1"})
        await client.send(id=9, method="work", params={"name": "other", "thread": "t2"})
        await stage.begins("other")
        for name in "cba":
            stage.let(name)
        assert [(await client.receive())["id"] for _ in range(3)] == [0, 1, 2]
    assert [note for note in stage.notes if "other" not in note] == [
        "begin a", "end a", "begin b", "end b", "begin c", "end c",
    ]  # fmt: skip


async def test_a_call_cancelled_in_the_queue_does_not_let_the_next_one_overtake(family: Family, stage: Stage) -> None:
    async with connected(family) as client:
        for number, name in enumerate("abc"):
            await client.send(id=number, method="work", params={"name": name, "thread": "t"})
        await stage.begins("a")
        await client.send(id=7, method="cancel", params={"id": 1})
        replies = [await client.receive(), await client.receive()]
        assert {reply["id"] for reply in replies} == {1, 7}
        stage.let("c")
        await client.ask(id=8, method="cancel", params={"id": "nobody"})
        assert stage.notes == ["begin a"]
        stage.let("a")
        assert [(await client.receive())["id"] for _ in range(2)] == [0, 2]


async def test_a_cancelled_call_is_answered_through_the_error_map(family: Family, stage: Stage) -> None:
    async with connected(family) as client:
        await client.send(id=1, method="work", params={"name": "a"})
        await stage.begins("a")
        await client.send(id=2, method="cancel", params={"id": 1})
        replies = {reply["id"]: reply for reply in [await client.receive(), await client.receive()]}
        assert replies[2]["result"] is True
        assert replies[1]["error"]["code"] == -32800


async def test_a_cancelled_call_may_still_give_its_own_result(family: Family, stage: Stage) -> None:
    @family.method("run", summary="Ends as cancelled.")
    async def run(call: Call[Any], params: Any) -> str:
        stage.event(stage.begun, "run").set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "cancelled"
        return "never"

    async with connected(family) as client:
        await client.send(id=1, method="run")
        await stage.begins("run")
        await client.send(id=2, method="cancel", params={"id": 1})
        replies = {reply["id"]: reply for reply in [await client.receive(), await client.receive()]}
        assert replies[1]["result"] == "cancelled"


async def test_ids_of_different_type_are_different_calls(family: Family, stage: Stage) -> None:
    async with connected(family) as client:
        await client.send(id=1, method="work", params={"name": "a"})
        await stage.begins("a")
        assert (await client.ask(id=2, method="cancel", params={"id": "1"}))["result"] is False


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"method": "nope"}, -32601),
        ({"method": "work"}, -32602),
        ({"method": "work", "params": None}, -32602),
        ({"method": "work", "params": []}, -32602),
        ({"method": "work", "params": {"name": 7}}, -32602),
        ({"method": "fails"}, -32603),
    ],
)
async def test_every_failure_has_the_protocols_own_code(
    family: Family, stage: Stage, message: dict[str, Any], code: int
) -> None:
    @family.method("fails", summary="Fails.")
    async def fails(call: Call[Any], params: Any) -> None:
        raise RuntimeError("inside")

    async with connected(family) as client:
        reply = await client.ask(id="x", **message)
        assert reply["id"] == "x"
        assert reply["error"]["code"] == code
        assert reply["error"]["message"].startswith(message["method"])


async def test_a_map_that_fails_itself_still_leaves_nobody_waiting() -> None:
    def broken(failure: BaseException, method: str) -> WireError:
        raise KeyError("not total")

    assert Dispatcher(Table(), broken).error(ValueError(), "m").code == -32603


async def test_a_result_that_cannot_be_encoded_is_an_internal_error(family: Family) -> None:
    @family.method("odd", summary="Odd.")
    async def odd(call: Call[Any], params: Any) -> object:
        return object()

    async with connected(family) as client:
        assert (await client.ask(id=1, method="odd"))["error"]["code"] == -32603


async def test_notifications_are_never_answered_and_their_errors_are_only_logged(family: Family, stage: Stage) -> None:
    log: list[str] = []
    async with connected(family, log=lambda what, about: log.append(f"{what}: {about}")) as client:
        await client.send(method="nope")
        await client.send(method="work", params={"name": 3})
        await client.send(method="cancel", params={"id": 1})  # a request-only row is not run without an id
        assert (await client.ask(id=5, method="cancel", params={"id": 1}))["id"] == 5
    assert [line.split(":")[0] for line in log] == ["dropped notification"] * 3


async def test_a_notification_only_row_is_unknown_as_a_request(family: Family) -> None:
    @family.method("note", summary="Note.", form="notification")
    async def note(call: Call[Any], params: Any) -> None: ...

    async with connected(family) as client:
        assert (await client.ask(id=1, method="note"))["error"]["code"] == -32601


async def test_too_many_calls_at_once_are_refused_but_urgent_ones_run(family: Family, stage: Stage) -> None:
    async with connected(family, max_calls=3) as client:
        for number in range(3):
            await client.send(id=number, method="work", params={"name": f"w{number}"})
        await stage.begins("w2")
        assert (await client.ask(id=3, method="work", params={"name": "w3"}))["error"]["code"] == -32005
        await client.send(id=4, method="cancel", params={"id": 0})
        assert {(await client.receive())["id"] for _ in range(2)} == {0, 4}
        stage.let("w3")
        assert (await client.ask(id=5, method="work", params={"name": "w3"}))["result"] == "w3"


async def test_a_burst_of_quick_calls_is_no_overload(family: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quintet.rpc.connection._PATIENCE_S", 20.0)  # a loaded machine may take long for a moment

    @family.method("quick", summary="Quick.")
    async def quick(call: Call[Any], params: Any) -> int:
        await asyncio.sleep(0)
        return 1

    async with connected(family, max_calls=4) as client:
        sending = asyncio.create_task(client.raw(b'{"jsonrpc":"2.0","id":1,"method":"quick"}\n' * 2000))
        assert all([(await client.receive()).get("result") == 1 for _ in range(2000)])
        await within(sending)


async def test_the_guard_is_asked_before_the_params_are_looked_at(family: Family) -> None:
    @family.method("secret", summary="For the owner.", params=Work, who=["owner"])
    async def secret(call: Call[Any], params: Work) -> str:
        return params.name

    async with connected(family, role="guest") as client:
        assert (await client.ask(id=1, method="secret", params={}))["error"]["code"] == -32001
    async with connected(family, role="owner") as client:
        assert (await client.ask(id=1, method="secret", params={"name": "n"}))["result"] == "n"


async def test_the_reply_goes_out_before_anything_its_turn_sends(family: Family) -> None:
    @family.method("start", summary="Start.", scope=lambda p: "t")
    async def start(call: Call[Any], params: Any) -> Reply[str]:
        async def turn() -> None:
            for number in range(3):
                assert call.offer("event", {"n": number})
                await call.notify("noted", {"n": number})

        return Reply("started", then=turn)

    async with connected(family, max_calls=64) as client:
        for number in range(50):
            await client.send(id=number, method="start")
        seen: dict[str, int] = {"events": 0, "replies": 0}
        for _ in range(50 * 7):
            got = await client.receive()
            if "id" in got:
                seen["replies"] += 1
            else:
                seen["events"] += 1
            assert seen["events"] <= 6 * seen["replies"]


async def test_the_reply_comes_first_even_when_it_has_to_wait_for_room(family: Family) -> None:
    @family.method("start", summary="Start.")
    async def start(call: Call[Any], params: Any) -> Reply[str]:
        async def turn() -> None:
            await call.notify("event")

        return Reply("started", then=turn)

    async with connected(family) as client:
        filled = 0
        while client.connection.offer("fill", "." * 5000):
            filled += 1
        await client.send(id=1, method="start")
        got = [await client.receive() for _ in range(filled + 2)]
        assert [message.get("method", "reply") for message in got[-2:]] == ["reply", "event"]


async def test_what_follows_a_reply_is_cancelled_with_the_connection_and_its_failure_is_logged(
    family: Family,
) -> None:
    cancelled = asyncio.Event()
    log: list[str] = []

    @family.method("start", summary="Start.", params=dict)
    async def start(call: Call[Any], params: dict[str, Any]) -> Reply[None]:
        async def turn() -> None:
            if params.get("fail"):
                raise RuntimeError("turn failed")
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()

        return Reply(None, then=turn)

    async with connected(family, log=lambda what, about: log.append(what)) as client:
        await client.ask(id=1, method="start")
        await client.ask(id=2, method="start", params={"fail": True})
        client.hang_up()
        await client.ended()
    assert cancelled.is_set()
    assert log == ["failed after reply"]


async def test_lanes_are_forgotten_once_they_are_empty() -> None:
    lanes = Lanes()
    first, second = lanes.enter("k"), lanes.enter("k")
    await first.wait()
    first.leave()
    await within(second.wait())
    second.leave()
    await asyncio.sleep(0)
    assert len(lanes) == 0
