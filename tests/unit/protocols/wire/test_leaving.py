"""A client that leaves in a turn is answered, however long what the turn waits for takes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from quintet.domain.event import TextDelta
from quintet.domain.turn import TurnState
from quintet.protocols.wire.events import Projection
from tests.fakes.engine import Process
from tests.fakes.providers import Gate, GatedProvider, text
from tests.fakes.waiting import soon
from tests.fakes.wire_client import kinds, spoken
from tests.unit.protocols.wire.conftest import Connect

CANCELLED = {"status": "cancelled"}


class Stuck:
    """Something the engine waits for: a disk that does not answer, say."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.free = asyncio.Event()

    async def __call__(self, *given: Any, **more: Any) -> Any:
        self.reached.set()
        await self.free.wait()


@pytest.fixture
def stuck() -> Stuck:
    return Stuck()


@pytest.mark.req("wire:S98", "wire:S99")
@pytest.mark.parametrize("how", ["input", "signal"])
async def test_a_turn_that_cannot_end_is_answered_all_the_same(
    connect: Connect, process: Process, stuck: Stuck, how: str
) -> None:
    process.feed.mirror = stuck  # before its end is told, the files that clients read are brought up to date
    peer = connect(GatedProvider([*text("begin "), Gate()]))
    await peer.begin()
    await peer.hears("ContentPart")
    if how == "input":
        peer.hang_up()
    else:
        peer.connection.end()
    heard = await peer.rest()
    assert kinds(heard) == ["TurnEnd", "reply"]
    assert heard[-1]["result"] == CANCELLED
    await soon(peer.serving)
    assert any("the client left" in line for line in peer.log)
    await soon(stuck.reached.wait())
    stuck.free.set()
    (turn,) = await process.journal.turns(peer.thread)
    assert (await process.ended(turn.id)).state is TurnState.CANCELLED


@pytest.mark.req("wire:S98")
async def test_a_turn_that_could_not_even_begin_is_told_as_one(
    connect: Connect, process: Process, stuck: Stuck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process.threads, "create", stuck)
    peer = connect()
    await peer.begin("first")
    await soon(stuck.reached.wait())
    peer.hang_up()
    heard = await peer.rest()
    assert kinds(heard) == ["TurnBegin", "TurnEnd", "reply"]
    assert heard[0]["params"]["payload"] == {"user_input": "first"}
    assert heard[-1]["result"] == CANCELLED
    await soon(peer.serving)


@pytest.mark.req("wire:S22", "wire:S98")
async def test_a_turn_that_ends_in_time_is_told_to_its_own_end(connect: Connect) -> None:
    peer = connect(GatedProvider([*text("begin "), Gate()]))
    await peer.begin()
    first = await peer.hears("ContentPart")
    peer.hang_up()
    heard = await peer.rest()
    assert kinds([*first, *heard]).count("TurnEnd") == 1
    assert spoken([*first, *heard]) == "begin "
    assert heard[-1]["result"] == CANCELLED


@pytest.mark.req("wire:S98")
async def test_when_nobody_reads_any_more_the_turn_ends_and_the_server_with_it(
    connect: Connect, process: Process
) -> None:
    gate = Gate()
    peer = connect(GatedProvider([*text("begin "), gate, *text("never ", "read")]))
    await peer.begin()
    await peer.hears("ContentPart")
    peer.vanish()
    gate.open()  # whatever the model says now cannot be sent
    await soon(peer.serving)
    (turn,) = await process.journal.turns(peer.thread)
    assert (await process.ended(turn.id)).state in (TurnState.CANCELLED, TurnState.DONE)


@pytest.mark.req("wire:S22", "wire:S46")
async def test_a_turn_that_can_be_told_no_further_is_ended_for_its_client_and_in_the_thread(
    connect: Connect, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Projection.rows[TextDelta]

    def fails(projection: Projection, said: TextDelta) -> list[Any]:
        if said.text == "unspeakable":
            raise RuntimeError("no words for it")
        return told(projection, said)

    monkeypatch.setitem(Projection.rows, TextDelta, fails)
    peer = connect(GatedProvider([*text("begin ", "unspeakable"), Gate()], text("again")))
    heard = await peer.prompt()
    assert kinds(heard)[-2:] == ["TurnEnd", "reply"]
    assert heard[-1]["error"]["code"] == -32603
    (turn,) = await process.journal.turns(peer.thread)
    assert (await process.ended(turn.id)).state is TurnState.CANCELLED
    assert spoken(await peer.prompt()) == "again"
