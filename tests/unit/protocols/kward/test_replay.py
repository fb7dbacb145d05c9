"""Events that can be asked for again: the newest, within a bound on their number and one on their size."""

from __future__ import annotations

from typing import Any

import pytest

from quintet.protocols.kward import running
from quintet.protocols.kward.models import TurnEvent
from quintet.protocols.kward.replay import MIB, OF_A_TURN, Replay
from tests.fakes.kward_peer import payloads
from tests.fakes.providers import GatedProvider, text
from tests.unit.protocols.kward.conftest import Connect


def event(sequence: int, payload: Any) -> TurnEvent:
    return TurnEvent(sequence, "", "", "", "toolResult", payload)


@pytest.mark.parametrize("payload", [{"content": "x" * MIB}, {"delta": "x" * MIB}])
def test_large_events_push_the_oldest_out_and_that_is_counted(payload: Any) -> None:
    replay = Replay()
    for sequence in range(1, 21):
        replay.add(event(sequence, payload))
        assert replay.size <= OF_A_TURN
    kept = [frame.sequence for frame in replay.after(0)]
    assert kept == list(range(14, 21))
    assert (replay.missing(0), replay.missing(10), replay.missing(13)) == (13, 3, 0)


def test_one_event_that_is_larger_than_the_bound_is_kept() -> None:
    replay = Replay()
    replay.add(event(1, {}))
    replay.add(event(2, {"content": "x" * (OF_A_TURN + 1)}))
    assert [frame.sequence for frame in replay.after(0)] == [2]
    replay.add(event(3, {}))
    assert [frame.sequence for frame in replay.after(0)] == [3]


async def test_turns_that_ended_long_ago_go_when_all_of_them_grow_too_large(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "OF_A_CLIENT", 10_000)
    peer = connect(GatedProvider(*(text("x" * 1_000) for _ in range(6))))
    session = await peer.session()
    turns = [(await peer.turn(session["id"]))[0]["turnId"] for _ in range(6)]
    assert await peer.fails("turns/events", turnId=turns[0]) == (-32603, f"Unknown turn: {turns[0]}")
    told = await peer.ok("turns/events", turnId=turns[-1])
    assert payloads(told["events"], "answer") == [{"content": "x" * 1_000}]
    assert sum(turn.replay.size for turn in peer.connection.state.turns.values()) <= 10_000
