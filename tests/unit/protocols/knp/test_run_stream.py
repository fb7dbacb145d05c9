"""Where a run begins and ends on its stream, whatever comes first: what is live or what is read from the store."""

from __future__ import annotations

import http.client
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from quintet.domain.errors import StorageDamaged
from quintet.protocols.knp import runs
from quintet.protocols.knp.frames import NAMESPACE, Frame
from quintet.protocols.knp.run_stream import RunWatcher
from quintet.protocols.knp.watching import Wanted
from tests.fakes.knp_project import Knp, knp_project


class Taken:
    """A stream that keeps what it is offered."""

    def __init__(self) -> None:
        self.closed = False
        self.chunks: list[bytes] = []

    def offer(self, chunk: bytes, frames: int = 1) -> bool:
        self.chunks.append(chunk)
        return True


def frame(kind: str, run: str = "trn_1") -> Frame:
    return Frame(kind, {"runId": run, "tid": "thr_1"}, "default", 1, "thr_1", "thr_1")


def watching() -> tuple[RunWatcher, Taken]:
    stream: Any = Taken()
    house: Any = SimpleNamespace(feed=SimpleNamespace(told=0))
    return RunWatcher(house, stream, Wanted(NAMESPACE, "default", "thr_1"), 15, "trn_1"), stream


def numbers(stream: Taken) -> list[int]:
    lines = b"".join(stream.chunks).split(b"\n")
    return [int(line.removeprefix(b"id: ")) for line in lines if line.startswith(b"id: ")]


@pytest.mark.req("knp:K1", "knp:K13")
def test_what_came_live_before_the_beginning_was_read_is_not_lost() -> None:
    watcher, stream = watching()
    live = watcher.pick([(160, frame("text.delta")), (176, frame("text.delta"))])
    assert live is not None
    watcher.deliver(live)
    page = watcher.pick([(80, frame("thread.updated")), (96, frame("run.started")), (160, frame("text.delta"))])
    assert page is not None
    watcher.go_live()
    assert numbers(stream) == [160, 176]


@pytest.mark.req("knp:K2")
def test_nothing_of_before_or_after_the_run_is_told() -> None:
    watcher, stream = watching()
    watcher.go_live()
    for batch in (
        [(32, frame("thread.updated"))],
        [(48, frame("thread.updated")), (64, frame("run.started")), (65, frame("thread.start"))],
        [(80, frame("run.finished", "trn_other"))],  # of a subagent
        [(96, frame("run.finished")), (112, frame("run.started", "trn_2"))],
        [(128, frame("text.delta"))],
    ):
        if (picked := watcher.pick(batch)) is not None:
            watcher.deliver(picked)
    assert numbers(stream) == [64, 65, 80, 96]


@pytest.mark.req("knp:K1", "knp:K5")
def test_a_server_that_stops_tells_how_a_run_ended_on_its_stream_and_on_all_others(tmp_path: Path) -> None:
    with ExitStack() as open_streams:
        with knp_project(tmp_path) as knp:
            tid = knp.thread()["tid"]
            everything = open_streams.enter_context(knp.server.stream("/events"))
            own = open_streams.enter_context(knp.streamed(tid, "tool"))
            own.until("approval.requested")
        ended = own.until("run.result")["data"]
        assert (ended["status"], ended["error"]["code"]) == ("failed", "interrupted")
        assert own.next() is None
        assert everything.until("run.finished")["data"]["status"] == "failed"
        assert everything.next() is None


def test_a_stream_whose_last_word_cannot_be_said_is_cut_off_and_not_left_open(
    knp: Knp, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def damaged(*_: object) -> None:
        raise StorageDamaged("A row cannot be read.")

    monkeypatch.setattr(runs, "used_by", damaged)
    with knp.streamed(knp.thread()["tid"]) as stream:
        stream.until("run.finished")
        with pytest.raises(http.client.IncompleteRead):
            stream.answer.read()
