"""R7 on Kward: whatever comes in, each block gets its own answer and the next request is served."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.engine import House
from tests.fakes.kward_peer import Message, Peer, payloads
from tests.faults.kward_blocks import KINDS, flipped, sent
from tests.faults.tiers import figure, limit_s, seeded

AT_ONCE = 50
CASES = max(10_000, figure("R7"))


@pytest.fixture
async def peer(tmp_path: Path) -> AsyncIterator[Peer]:
    house = House("memory", tmp_path / "home")
    made = Peer(await house.process(), tmp_path)
    yield made
    await made.close()
    await house.close()


def sound(number: int) -> bytes:
    return sent(id=f"sound-{number}", method="no/such")


async def until_sound(peer: Peer, number: int) -> list[Message]:
    """What came before the answer to the sound request behind the bad block."""
    heard = await peer.until(lambda m: m.get("id") == f"sound-{number}")
    assert heard[-1]["error"]["code"] == -32601
    peer.seen.clear()
    return heard[:-1]


async def gone_well(peer: Peer) -> None:
    """It plays a turn and leaves as if nothing had been."""
    session = await peer.session()
    assert payloads(await peer.turn(session["id"]), "answer") == [{"content": "hello"}]
    peer.hang_up()
    assert await peer.next() is None


@pytest.mark.fault
@pytest.mark.req("reliability:R7", "kward:5", "kward:6", "kward:7", "kward:8", "kward:9", "kward:10", "kward:15")
@pytest.mark.timeout(limit_s(180))
async def test_each_malformed_block_gets_its_answer_and_the_next_request_is_served(peer: Peer) -> None:
    rng = seeded("kward")
    for first in range(0, CASES, AT_ONCE):
        numbers = range(first, first + AT_ONCE)
        bad = {number: KINDS[number % len(KINDS)](rng) for number in numbers}
        await peer.raw(b"".join(bad[number].data + sound(number) for number in numbers))
        answers = [m for number in numbers for m in await until_sound(peer, number) if "id" in m]
        # Answers of calls may come behind the next one's: only their number and kind is certain.
        wanted = [b for b in bad.values() if b.codes]
        late = len(wanted) - len(answers)
        answers += [await_ for _ in range(late) if (await_ := await peer.next()) is not None]
        for message in answers:
            fits = [b for b in wanted if b.id == message["id"] and message["error"]["code"] in b.codes]
            assert fits, message
            assert message["error"]["message"]
            wanted.remove(fits[0])
        assert not wanted
    await gone_well(peer)


@pytest.mark.fault
@pytest.mark.req("reliability:R7")
@pytest.mark.timeout(limit_s(180))
async def test_a_block_with_flipped_bytes_costs_at_most_what_it_claims_to_hold(peer: Peer) -> None:
    """Its length may be wrong, so that it swallows what follows; with enough behind it serving goes on."""
    rng = seeded("kward-flip")
    for number in range(CASES // 10):
        await peer.raw(flipped(rng) + b"\r\n\r\n" + b" " * 1000 + sound(number))
        heard = await until_sound(peer, number)  # calls that were sound after all may be answered later
        unnamed = [m for m in heard if "id" in m and m["id"] is None]
        assert len(unnamed) <= 4, unnamed  # its header, its body, and what was put behind it
    await gone_well(peer)
