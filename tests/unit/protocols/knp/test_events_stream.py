"""GET /events: numbered frames, replay then live without gap or duplicate, bounded and alive or closed."""

from __future__ import annotations

import asyncio
import random
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from quintet.domain.cursor import FRAMES_PER_EVENT, public_number
from quintet.domain.event import Draft, ThreadUpdated
from quintet.domain.item import TextPart
from quintet.domain.principal import local
from quintet.domain.thread import Thread, ThreadSettings
from quintet.domain.turn import Mode
from quintet.rpc.http import sse
from tests.fakes.knp_server import Running, Sse, knp_server, wait_for
from tests.faults.processes import quintet, write_home

DELTAS = 2_000


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    script = f"scope: turn\nrepeat: {DELTAS} text: w\n"
    with knp_server(write_home(tmp_path / "home", script)) as running:
        yield running


def new_thread(server: Running, cwd: Path) -> Thread:
    return server.call(server.app.threads.create(ThreadSettings(str(cwd)), title="a"))


def rename(server: Running, thread: Thread, title: str) -> None:
    server.call(server.app.threads.rename(thread.id, title))


def play(server: Running, thread: Thread) -> None:
    """One turn of the script, to its end."""

    async def run() -> None:
        starter = server.app.starter(local("test"), mode=Mode.ASK)
        started = await server.app.turns.start(thread.id, (TextPart("go"),), starter)
        await server.app.turns.wait(started.turn.id)

    server.call(run())


def last_number(server: Running) -> int:
    return public_number(server.call(server.app.journal.marks()).last, FRAMES_PER_EVENT - 1)


def numbers(stream: Sse) -> list[int]:
    return [frame["seq"] for frame in stream.frames if frame["sse_id"] is not None]


def read_to(stream: Sse, last: int) -> list[int]:
    """Every number up to this one."""
    while not numbers(stream) or numbers(stream)[-1] < last:
        assert stream.next() is not None, "the stream ended"
    return numbers(stream)


def newest_frame(server: Running) -> int:
    """The number of the newest frame there is."""
    with server.stream("/events?after=0") as stream:
        mark = stream.next()["data"]["seq"]
        found: list[int] = []

        async def look() -> list[Any]:
            events = await server.app.journal.events(0, limit=100_000)
            return list(await server.server._house.fanout.numbered(events))

        found = [number for number, frame in server.call(look()) if frame.namespace == "default"]
        assert found[-1] <= mark
        return found[-1]


@pytest.mark.req("knp:K10", "knp:K11")
def test_every_frame_has_its_number_and_none_has_an_event_line(server: Running, tmp_path: Path) -> None:
    thread = new_thread(server, tmp_path)
    with server.stream("/events?after=0") as stream:
        for n in range(3):
            rename(server, thread, f"title {n}")
        read_to(stream, newest_frame(server))
        first, *frames = stream.frames
        assert (first["kind"], first["sse_id"], first["seq"]) == ("connected", None, 0)
        assert first["data"]["seq"] % FRAMES_PER_EVENT == FRAMES_PER_EVENT - 1
        assert [f["sse_id"] for f in frames] == [f["seq"] for f in frames]
        assert sorted(set(numbers(stream))) == numbers(stream)
        assert all(f["sse_fields"] == [] for f in stream.frames)
        assert len({f["id"] for f in stream.frames}) == len(stream.frames)
    headers = {k.lower(): v for k, v in stream.answer.getheaders()}
    assert headers["content-type"].startswith("text/event-stream")
    assert headers["cache-control"] == "no-cache, no-transform"
    assert headers["x-accel-buffering"] == "no"
    assert "content-encoding" not in headers


@pytest.mark.req("knp:K10")
def test_numbers_go_on_after_a_restart(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home")
    with knp_server(home) as server:
        thread = new_thread(server, tmp_path)
        before = newest_frame(server)
    with knp_server(home) as server, server.stream("/events", last_event_id=str(before)) as stream:
        rename(server, thread, "after the restart")
        read_to(stream, newest_frame(server))
        assert numbers(stream)[0] > before


@pytest.mark.req("knp:K12")
def test_cursors_are_exclusive_and_the_header_wins(server: Running, tmp_path: Path) -> None:
    thread = new_thread(server, tmp_path)
    for n in range(5):
        rename(server, thread, f"title {n}")
    last = newest_frame(server)
    with server.stream("/events?after=0") as stream:
        everything = read_to(stream, last)
    for n in (0, 2, len(everything) - 2):
        with server.stream(f"/events?after={everything[n]}") as stream:
            assert read_to(stream, last) == everything[n + 1 :]
    with server.stream("/events?after=0", last_event_id=str(everything[2])) as stream:
        assert read_to(stream, last) == everything[3:]


@pytest.mark.req("knp:K13", "reliability:R4")
def test_ten_reconnects_in_a_long_run_give_what_one_reader_gets(server: Running, tmp_path: Path) -> None:
    thread = new_thread(server, tmp_path)
    turn = threading.Thread(target=play, args=(server, thread))
    whole: list[int] = []
    with server.stream("/events?after=0") as uninterrupted:
        reader = threading.Thread(target=lambda: whole.extend(read_until_end(uninterrupted)))
        reader.start()
        turn.start()
        pieces: list[int] = []
        dice = random.Random(13)
        for _ in range(10):
            cursor = pieces[-1] if pieces else 0
            with server.stream("/events", last_event_id=str(cursor)) as stream:
                for _ in range(dice.randint(1, 150)):
                    while (frame := stream.next()) is not None and frame["sse_id"] is None:
                        pass
                    assert frame is not None
                    pieces.append(frame["seq"])
        turn.join(30)
        reader.join(30)
    with server.stream("/events", last_event_id=str(pieces[-1])) as stream:
        pieces += read_to(stream, whole[-1])
    assert len(whole) > DELTAS
    assert pieces == whole


def read_until_end(stream: Sse) -> list[int]:
    """Up to the end of the turn that plays."""
    while frame := stream.next():
        if frame["kind"] in ("run.finished", "turn.finished"):
            return numbers(stream)
    raise AssertionError("the stream ended")


@pytest.mark.req("knp:K13")
def test_what_happens_between_the_last_page_and_going_live_is_not_lost(
    server: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread = new_thread(server, tmp_path)
    read = server.app.journal.events_of
    times = []

    async def then_something_happens(project: str, after: int, **more: Any) -> Any:
        page = await read(project, after, **more)
        if not times:
            times.append(after)
            await server.app.feed.append([Draft(ThreadUpdated(title="meanwhile"), thread.id)])
            members = [m for g in server.server._house.fanout._groups.values() for m, _ in g.members]
            async with asyncio.timeout(10):
                while not any(deliver.__self__._held for deliver in members):
                    await asyncio.sleep(0.001)
        return page

    monkeypatch.setattr(server.app.journal, "events_of", then_something_happens)
    with server.stream("/events?after=0") as stream:
        assert stream.until("thread.updated")["data"]["thread"]["title"] == "meanwhile"
        rename(server, thread, "later")
        assert stream.until("thread.updated")["data"]["thread"]["title"] == "later"
        got = numbers(stream)
    with server.stream("/events?after=0") as stream:
        assert read_to(stream, got[-1]) == got


@pytest.mark.req("knp:K13")
def test_a_cut_between_two_frames_of_one_event_goes_on_there(
    server: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever an event's frames are, each has its number: made to be three here."""
    project = server.server._house.fanout._project

    async def thrice(events: Any) -> Any:
        found = await project(events)
        return [[replace(f, data={"n": n}) for f in frames[:1] for n in range(3)] for frames in found]

    monkeypatch.setattr(server.server._house.fanout, "_project", thrice)
    thread = new_thread(server, tmp_path)
    rename(server, thread, "b")
    last = newest_frame(server)
    with server.stream("/events?after=0") as stream:
        everything = read_to(stream, last)
    inside = [n for n in everything if n % FRAMES_PER_EVENT in (0, 1)]
    assert inside
    for cursor in inside:
        with server.stream("/events", last_event_id=str(cursor)) as stream:
            assert read_to(stream, last) == [n for n in everything if n > cursor]


@pytest.mark.req("knp:K14")
def test_cursors_that_mean_nothing_are_told_so(server: Running, tmp_path: Path) -> None:
    thread = new_thread(server, tmp_path)
    for wrong in ("-1", "x", "1.5", "0x10", "1e3", "%20"):
        assert server.ask("GET", f"/events?after={wrong}").status == 400, wrong
        assert server.ask("GET", "/events", headers={"Last-Event-ID": wrong}).status == 400, wrong
    beyond = last_number(server) + 1
    assert server.ask("GET", f"/events?after={beyond}").status == 400
    with server.stream("/events", last_event_id=str(beyond)) as stream:
        assert stream.next()["kind"] == "connected"
        reset = stream.next()
        assert (reset["kind"], reset["sse_id"], reset["data"]) == ("replay.reset", None, {"seq": beyond - 1})
        rename(server, thread, "live after it")
        assert read_to(stream, newest_frame(server))[0] > beyond - 1


@pytest.mark.req("knp:K14", "knp:K15")
def test_a_cursor_older_than_what_is_kept_gets_one_gap_and_every_fact(server: Running, tmp_path: Path) -> None:
    thread = new_thread(server, tmp_path)
    play(server, thread)
    last = newest_frame(server)
    with server.stream("/events?after=0") as stream:
        read_to(stream, last)
        before = [f for f in stream.frames if f["sse_id"] is not None]

    async def prune() -> None:
        await server.app.journal.prune(now_ms=server.app.clock.now_ms() + 1, grace_s=0)

    server.call(prune())
    with server.stream("/events?after=0") as stream:
        read_to(stream, last)
        frames = stream.frames
    gaps = [f for f in frames if f["kind"] == "replay.gap"]
    assert [f["sse_id"] for f in gaps] == [None]
    assert 0 < gaps[0]["data"]["from"] <= gaps[0]["data"]["to"]
    kept = {f["seq"] for f in frames if f["sse_id"] is not None}
    gone = [f["kind"] for f in before if f["seq"] not in kept]
    assert len(gone) >= DELTAS
    assert set(gone) <= {"text.delta", "text.start"}


@pytest.mark.req("knp:K18", "reliability:R6")
def test_a_slow_reader_is_cut_off_and_others_hear_everything(
    server: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread = new_thread(server, tmp_path)
    with socket.socket() as slow, server.stream("/events?after=0") as healthy:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        slow.settimeout(30)
        slow.connect(("127.0.0.1", server.port))
        head = f"GET /events HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {server.token}\r\n\r\n"
        slow.sendall(head.encode())
        wait_for(lambda: len(server.server.faces["knp"].streams) == 2)
        words = "x" * 60_000

        async def much() -> None:
            for n in range(200):
                await server.app.feed.append([Draft(ThreadUpdated(agent=f"{n}{words}"), thread.id)])

        flood = threading.Thread(target=lambda: server.call(much()))
        flood.start()
        read_to(healthy, public_number(201))
        flood.join(30)
        wait_for(lambda: len(server.server.faces["knp"].streams) == 1)
        got = b""
        try:
            while chunk := slow.recv(1 << 20):
                got += chunk
        except ConnectionResetError:
            pass
        assert len(got) < 200 * 60_000, "it was given everything"


@pytest.mark.req("knp:K18")
async def test_a_queue_is_bounded_in_frames_and_in_bytes_and_one_larger_frame_still_goes() -> None:
    for chunk, most in ((b"x" * 10, sse.MOST_FRAMES), (b"x" * 1024 * 100, 10)):
        stream = sse.Stream(never, Wire(), beat_s=30)
        stream.overflow = lambda: b"overflow"
        taken = 0
        while stream.offer(chunk):
            taken += 1
        assert taken == most
        assert stream.closed
        written: list[bytes] = []
        stream._write = keeper(written)
        await stream.pump()
        assert written == [b"overflow"]
    large = sse.Stream(never, Wire(), beat_s=30)
    assert large.offer(b"x" * (sse.MOST_BYTES + 1))


@pytest.mark.req("knp:K13", "reliability:R4")
def test_a_reader_that_catches_up_slowly_while_much_happens_misses_nothing(server: Running, tmp_path: Path) -> None:
    """More comes meanwhile than is held for it: it goes on reading the store."""
    thread = new_thread(server, tmp_path)
    words = "x" * 30_000
    drafts = [Draft(ThreadUpdated(title=words), thread.id)]

    async def much(count: int) -> None:
        for _ in range(count):
            await server.app.feed.append(drafts)

    server.call(much(200))
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        slow.settimeout(30)
        slow.connect(("127.0.0.1", server.port))
        head = f"GET /events?after=0 HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
        slow.sendall(f"{head}Authorization: Bearer {server.token}\r\n\r\n".encode())
        wait_for(lambda: len(server.server.faces["knp"].streams) == 1)
        server.call(much(60))
        last = newest_frame(server)
        got = b""
        while b"id: %d\n" % last not in got[-100_000:]:
            chunk = slow.recv(1 << 20)
            assert chunk, "it was cut off"
            got += chunk
    numbers = [int(n) for n in re.findall(rb"\nid: (\d+)\n", got)]
    assert numbers == sorted(set(numbers))
    assert len(numbers) >= 260


@pytest.mark.req("knp:K18")
def test_a_defect_in_the_projection_ends_the_streams_and_later_ones_live(
    server: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread = new_thread(server, tmp_path)
    fanout = server.server._house.fanout

    async def broken(events: Any) -> Any:
        raise RuntimeError("a defect")

    with server.stream("/events") as stream:
        stream.next()
        with monkeypatch.context() as patch:
            patch.setattr(fanout, "_project", broken)
            rename(server, thread, "unspeakable")
            assert stream.next() is None, "it stayed open and said nothing"
    assert "a defect" in (server.app.home / "quintet.log").read_text()
    with server.stream("/events") as stream:
        stream.next()
        rename(server, thread, "speakable")
        assert numbered_kind(stream) == "thread.updated"


def numbered_kind(stream: Sse) -> str:
    while frame := stream.next():
        if frame["sse_id"] is not None:
            return str(frame["kind"])
    raise AssertionError("the stream ended")


@pytest.mark.req("knp:K19")
def test_a_stream_says_that_it_lives_without_moving_the_cursor(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home", config="[server]\nheartbeat_s = 0.05\n")
    with knp_server(home) as server, server.stream("/events") as stream:
        connected = stream.next()
        for _ in range(3):
            beat = stream.next()
            assert (beat["kind"], beat["sse_id"]) == ("heartbeat", None)
            assert beat["data"]["seq"] == connected["data"]["seq"]
            assert beat["seq"] == connected["seq"]


@pytest.mark.req("knp:K19")
async def test_a_peer_that_takes_nothing_between_two_heartbeats_is_left() -> None:
    wire = Wire()
    stream = sse.Stream(never, wire, beat_s=0.02)
    stream.heartbeat = lambda: b"beat"
    stream.start()
    stream.offer(b"x")
    await stream.pump()
    assert wire.aborted
    stream.stop()


@pytest.mark.req("knp:K19")
def test_a_peer_that_vanished_is_given_up_by_the_kernel_within_a_heartbeat(server: Running) -> None:
    """TCP would try for a quarter of an hour."""
    with server.stream("/events") as stream:
        stream.next()
        [connection] = server.server._knp._server.server_state.connections
        peer = connection.transport.get_extra_info("socket")
        assert peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 30_000


@pytest.mark.req("knp:K19")
def test_what_is_written_goes_out_at_once(server: Running) -> None:
    """Otherwise every second small piece would wait forty milliseconds for the first one's receipt."""
    with server.stream("/events") as stream:
        stream.next()
        [connection] = server.server._knp._server.server_state.connections
        peer = connection.transport.get_extra_info("socket")
        assert peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.req("knp:K19")
def test_a_client_that_left_costs_nothing_any_more(server: Running) -> None:
    with server.stream("/events") as stream:
        stream.next()
        assert len(server.server.faces["knp"].streams) == 1
    wait_for(lambda: not server.server.faces["knp"].streams)
    wait_for(lambda: server.server._house.fanout._task is None)


@pytest.mark.req("reliability:R13")
def test_streams_come_to_their_proper_end_before_the_server_does(tmp_path: Path) -> None:
    with knp_server(write_home(tmp_path / "home")) as server:
        head = f"GET /events HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {server.token}\r\n\r\n"
        streams = [socket.create_connection(("127.0.0.1", server.port), timeout=30) for _ in range(20)]
        for stream in streams:
            stream.sendall(head.encode())
        wait_for(lambda: len(server.server.faces["knp"].streams) == 20)
    for stream in streams:
        with stream:
            answer = b""
            while chunk := stream.recv(65536):
                answer += chunk
            assert answer.endswith(b"\r\n0\r\n\r\n"), "it was torn off"


@pytest.mark.req("security:S14")
def test_more_streams_than_there_may_be_are_refused(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server.server.faces["knp"], "limits", type(server.server.faces["knp"].limits)(streams=1))
    with server.stream("/events") as stream:
        stream.next()
        refused = server.ask("GET", "/events")
        assert (refused.status, refused.json["error"]["code"]) == (429, "overloaded")


@pytest.mark.req("knp:K41")
def test_another_major_version_is_refused_with_what_is_spoken(server: Running) -> None:
    for spoken in ("knp/0.1", "knp/0.2", "knp/0"):
        assert server.ask("GET", "/health", headers={"x-kernl-protocol": spoken}).status == 200
    for unknown in ("knp/1.0", "knp/2", "other/0.1", "0.1"):
        refused = server.ask("GET", "/openapi.json", headers={"x-kernl-protocol": unknown})
        assert refused.status == 400
        assert refused.json["error"]["details"]["supported"] == ["knp/0.1"]


@pytest.mark.req("mechanisms:M1.publisher")
def test_what_another_process_does_is_on_the_stream(server: Running, tmp_path: Path) -> None:
    with server.stream("/events") as stream:
        stream.next()
        assert quintet("run", "go", home=server.app.home, cwd=tmp_path).code == 0
        theirs = read_until_end(stream)
        assert len(theirs) > DELTAS


class Wire:
    """A connection that is told only to go away."""

    def __init__(self) -> None:
        self.aborted = False
        self._lost: Any = None

    def on_lost(self, callback: Any) -> None:
        self._lost = callback

    def write_at_once(self, chunk: bytes) -> bool:
        return False

    def abort(self) -> None:
        self.aborted = True
        self._lost()
        WAITING.set()


WAITING = threading.Event()


async def never(chunk: bytes) -> None:
    """A peer that takes nothing until it is given up."""
    WAITING.clear()
    while not WAITING.is_set():
        await asyncio.sleep(0.005)


def keeper(written: list[bytes]) -> Any:
    async def write(chunk: bytes) -> None:
        written.append(chunk)

    return write
