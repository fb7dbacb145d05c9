import asyncio
import os

import pytest

from quintet.rpc.descriptor import sink_of
from quintet.rpc.faults import Ended
from quintet.rpc.writer import MAX_BYTES, MAX_FRAMES, Writer

from .conftest import within


class Gate:
    """A sink that takes a write only when told."""

    def __init__(self, *, is_open: bool = False) -> None:
        self.writes: list[bytes] = []
        self.open = asyncio.Event()
        self.closed = False
        self.failure: OSError | None = None
        if is_open:
            self.open.set()

    async def write(self, data: bytes) -> None:
        await self.open.wait()
        if self.failure is not None:
            raise self.failure
        self.writes.append(data)

    async def close(self) -> None:
        self.closed = True


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_what_is_queued_leaves_as_one_write_in_order() -> None:
    sink = Gate()
    writer = Writer(sink)
    await writer.send(b"0")
    await settle()  # the first is on its way alone
    for number in range(1, 10):
        await writer.send(b"%d" % number)
    sink.open.set()
    await within(writer.drain())
    assert sink.writes == [b"0", b"123456789"]


@pytest.mark.req("reliability:R6")
async def test_at_most_a_thousand_frames_are_held_for_a_reader_that_does_not_read() -> None:
    writer = Writer(Gate())
    taken = sum(writer.offer(b"x") for _ in range(5000))
    await settle()
    assert taken == MAX_FRAMES
    assert writer.held == (MAX_FRAMES, MAX_FRAMES)
    assert await writer.close(0) is False


@pytest.mark.req("reliability:R6")
async def test_at_most_a_mebibyte_is_held_for_a_reader_that_does_not_read() -> None:
    writer = Writer(Gate())
    taken = sum(writer.offer(b"x" * 10_000) for _ in range(500))
    await settle()
    assert taken == MAX_BYTES // 10_000
    assert writer.held[0] <= MAX_BYTES
    await writer.close(0)


@pytest.mark.req("reliability:R6")
async def test_one_frame_larger_than_the_bound_is_still_sent_but_only_alone() -> None:
    sink = Gate()
    writer = Writer(sink)
    assert writer.offer(b"x" * (3 * MAX_BYTES))
    assert not writer.offer(b"y")
    sink.open.set()
    await within(writer.drain())
    assert [len(data) for data in sink.writes] == [3 * MAX_BYTES]


@pytest.mark.req("reliability:R6")
async def test_after_a_refused_offer_nothing_is_streamed_until_the_gap_is_marked() -> None:
    sink = Gate()
    writer = Writer(sink, max_frames=2)
    assert writer.offer(b"1")
    assert writer.offer(b"2")
    assert not writer.offer(b"3")
    assert writer.lagging
    cutting = asyncio.create_task(writer.cut(b"<gap>"))
    await settle()
    assert not writer.offer(b"4")  # no room for the marker yet, so nothing may follow
    sink.open.set()
    await within(cutting)
    assert not writer.lagging
    assert writer.offer(b"5")
    await within(writer.drain())
    assert b"".join(sink.writes) == b"12<gap>5"


async def test_waiting_sends_keep_their_order_and_offers_do_not_pass_them() -> None:
    sink = Gate()
    writer = Writer(sink, max_frames=1)
    await writer.send(b"1")
    waiting = [asyncio.create_task(writer.send(b"%d" % number)) for number in range(2, 6)]
    await settle()
    assert not writer.offer(b"x")
    assert not any(task.done() for task in waiting)
    sink.open.set()
    await within(asyncio.gather(*waiting))
    await within(writer.drain())
    assert b"".join(sink.writes) == b"12345"


async def test_a_small_frame_that_would_fit_does_not_pass_a_large_one_that_waits() -> None:
    sink = Gate()
    writer = Writer(sink, max_bytes=10)
    await writer.send(b"111111")
    waiting = [asyncio.create_task(writer.send(frame)) for frame in (b"22222222", b"3")]
    await settle()
    assert not writer.try_send(b"4")
    assert not any(task.done() for task in waiting)
    sink.open.set()
    await within(asyncio.gather(*waiting))
    await within(writer.drain())
    assert b"".join(sink.writes) == b"111111222222223"


async def test_a_small_offer_that_would_fit_is_refused_behind_an_unmarked_gap() -> None:
    writer = Writer(Gate(), max_bytes=10)
    assert writer.offer(b"111111")
    assert not writer.offer(b"22222222")
    assert not writer.offer(b"3")
    await writer.close(0)


async def test_a_send_cancelled_while_waiting_is_not_sent_and_holds_nobody_up() -> None:
    sink = Gate()
    writer = Writer(sink, max_frames=1)
    await writer.send(b"1")
    lost, kept = asyncio.create_task(writer.send(b"lost")), asyncio.create_task(writer.send(b"2"))
    await settle()
    lost.cancel()
    sink.open.set()
    await within(kept)
    await within(writer.drain())
    assert b"".join(sink.writes) == b"12"


async def test_closing_drains_what_is_queued() -> None:
    sink = Gate(is_open=True)
    writer = Writer(sink)
    await writer.send(b"last words")
    assert await within(writer.close(1))
    assert sink.writes == [b"last words"]
    assert sink.closed


async def test_closing_gives_up_on_a_stuck_reader_within_its_bound_and_releases_who_waits() -> None:
    sink = Gate()
    writer = Writer(sink, max_frames=1)
    await writer.send(b"1")
    waiting = asyncio.create_task(writer.send(b"2"))
    await settle()
    assert await within(writer.close(0.05), 1) is False
    assert sink.closed
    with pytest.raises(Ended):
        await within(waiting)
    with pytest.raises(Ended):
        await writer.send(b"3")
    assert not writer.offer(b"4")


async def test_a_broken_pipe_ends_the_writer_and_everyone_who_waits_for_it() -> None:
    sink = Gate()
    sink.failure = BrokenPipeError()
    writer = Writer(sink, max_frames=1)
    await writer.send(b"1")
    waiting = asyncio.create_task(writer.send(b"2"))
    await settle()
    sink.open.set()
    await within(writer.broken.wait())
    with pytest.raises(Ended):
        await within(waiting)
    with pytest.raises(Ended):
        await within(writer.drain())
    assert await within(writer.close(1)) is False


@pytest.mark.req("reliability:R6")
async def test_a_real_pipe_nobody_reads_fills_up_without_blocking_the_loop_and_loses_nothing_once_read() -> None:
    reading, writing = os.pipe()
    writer = Writer(sink_of(writing))
    sent = 0
    while writer.offer(b"%07d\n" % sent + b"." * 2000):
        sent += 1
        if sent % 50 == 0:
            await settle()
    got = bytearray()
    draining = asyncio.create_task(writer.drain())
    while not draining.done():
        got += await asyncio.to_thread(os.read, reading, 1 << 20)
        await settle()
    await within(writer.close(1))
    while chunk := os.read(reading, 1 << 20):
        got += chunk
    os.close(reading)
    assert bytes(got) == b"".join(b"%07d\n" % number + b"." * 2000 for number in range(sent))


@pytest.mark.req("reliability:R6")
async def test_frames_that_are_sent_together_count_each_and_wait_together() -> None:
    sink = Gate()
    writer = Writer(sink, max_frames=10)
    await writer.send(b"1234", 4)
    await writer.send(b"5678", 4)
    waiting = asyncio.create_task(writer.send(b"abc", 3))
    after = asyncio.create_task(writer.send(b"d"))
    await settle()
    assert writer.held == (8, 8)
    assert not waiting.done()
    sink.open.set()
    await within(asyncio.gather(waiting, after))
    await within(writer.drain())
    assert b"".join(sink.writes) == b"12345678abcd"
    assert writer.held == (0, 0)


@pytest.mark.req("reliability:R6")
async def test_more_frames_than_the_bound_are_sent_together_only_alone() -> None:
    sink = Gate()
    writer = Writer(sink, max_frames=10)
    await writer.send(b"x" * 11, 11)
    assert not writer.offer(b"y")
    sink.open.set()
    await within(writer.drain())
    assert sink.writes == [b"x" * 11]
