"""The projection: pure, the same live and replayed, within its places; and what of it a watcher can choose."""

from __future__ import annotations

from typing import Any

import pytest

from quintet.domain.cursor import FRAMES_PER_EVENT
from quintet.domain.event import KINDS, Event, MediaDelta
from quintet.domain.item import AssistantMessage, Item, MediaKind, MediaPart, TextPart, UserMessage, named
from quintet.protocols.knp.events import _DELTAS, _ROWS
from quintet.protocols.knp.kinds import NAMES, chosen
from quintet.protocols.knp.models import FileContent, MessageEvent, TextContent
from quintet.protocols.knp.wording import history_event
from tests.fakes.knp_project import Knp, kinds

# Kinds of the journal that a KNP client is not told of, and why that loses nothing.
NOT_TOLD = {
    "project.added": "told as namespace.created, before the others",
    "thread.view_changed": "history marks what is hidden",
    "turn.queued": "a run is told once it begins",
    "turn.steered": "the words come as an event of the history",
    "turn.cancel_requested": "the run's end says it",
    "step.retried": "nothing was said yet",
    "step.fell_back": "the next call names the other model",
    "compaction.started": "the summary comes as an event of the history",
    "compaction.finished": "the summary comes as an event of the history",
    "tool.output_delta": "the result has all of it; 0.1 has no kind for its pieces",
    "tool.started": "0.1 has no kind for it",
    "tool.finished": "tool.result says it",
    "effect.unknown": "the call's result says it",
    "grant.made": "approval.resolved says it",
    "grant.revoked": "the rules say it",
    "command.posted": "the engine's own",
    "command.settled": "the engine's own",
    "notice.posted": "0.1 has no kind for it; the words come as an event of the history",
    "notice.given": "the words come as an event of the history",
    "aside.asked": "0.1 has no kind for it",
    "aside.answered": "0.1 has no kind for it",
    "hook.triggered": "0.1 has no kind for it",
    "hook.resolved": "0.1 has no kind for it",
    "checkpoint.made": "diffs are part of 0.2",
    "memory.recalled": "this protocol has no memory",
    "checkpoint.settled": "diffs are part of 0.2",
    "files.restored": "diffs are part of 0.2",
}


def test_every_kind_of_the_journal_is_told_or_left_out_for_a_reason() -> None:
    told = {kind.name for kind in KINDS if kind.payload in _ROWS or kind.payload in _DELTAS}
    assert told | set(NOT_TOLD) == {kind.name for kind in KINDS}
    assert not told & set(NOT_TOLD)


def test_a_video_is_a_file_of_the_history_and_one_that_a_model_sends_is_named_to_who_watches() -> None:
    clip = MediaPart(MediaKind.VIDEO, "data:video/mp4;base64,AAAA")
    given = UserMessage((TextPart("see"), clip, MediaPart(MediaKind.AUDIO, "ms://f1")))
    shown = history_event(Item("itm_1", "thr_1", "", 1, 0, given))
    assert isinstance(shown, MessageEvent)
    assert shown.content == [TextContent("see"), FileContent(clip.url, "video/mp4", ""), FileContent("ms://f1", "", "")]
    sent = history_event(Item("itm_2", "thr_1", "", 2, 0, AssistantMessage(named(clip), sent=clip)))
    assert isinstance(sent, MessageEvent)
    assert sent.content == [TextContent("[a video, video/mp4, 3 bytes]")]
    said = MediaDelta("itm_2", 0, clip)
    told = _DELTAS[MediaDelta](Event(1, "media.delta", 0, said, "thr_1"), said)
    words = {"tid": "thr_1", "id": "itm_2", "delta": "[a video, video/mp4, 3 bytes]"}
    assert told == [("text.start", {"tid": "thr_1", "id": "itm_2"}), ("text.delta", words)]


@pytest.mark.req("knp:K10", "knp:K20")
def test_what_is_replayed_is_what_was_live(knp: Knp) -> None:
    tid = knp.thread()["tid"]
    with knp.server.stream(f"/events?tid={tid}") as live:
        live.until("connected")
        knp.begin(tid, "tool")
        knp.decide(live.until("approval.requested")["data"]["id"], "allow")
        live.until("run.finished")
    with knp.server.stream(f"/events?tid={tid}&after=0") as replayed:
        replayed.until("run.finished")
    seen = [f for f in replayed.frames[1:] if f["seq"] >= live.frames[1]["seq"]]
    assert seen == live.frames[1:]
    with knp.server.stream("/events?after=0") as of_namespace:
        of_namespace.until("connected")
        while (frame := of_namespace.next()) and frame["seq"] < live.frames[-1]["seq"]:
            pass
    assert [f for f in of_namespace.frames if f["data"].get("tid") == tid or f["seq"] in {x["seq"] for x in seen}][
        -len(seen) :
    ] == seen


@pytest.mark.req("knp:K10")
def test_an_events_frames_are_its_numbers_places(knp: Knp) -> None:
    tid = knp.thread()["tid"]
    with knp.streamed(tid, "tool") as stream:
        knp.decide(stream.until("approval.requested")["data"]["id"], "deny")
        stream.until("run.finished")
    by_event: dict[int, list[dict[str, Any]]] = {}
    for frame in stream.frames:
        by_event.setdefault(frame["seq"] // FRAMES_PER_EVENT, []).append(frame)
    for seq, frames in by_event.items():
        assert [f["seq"] % FRAMES_PER_EVENT for f in frames] == list(range(len(frames)))
        assert [f["id"] for f in frames] == [f"evt_{seq:013x}.{k}" for k in range(len(frames))]
    assert ["tool.result", "event.created", "event.updated"] in [
        [f["kind"] for f in frames] for frames in by_event.values()
    ]


@pytest.mark.req("knp:K16")
def test_kinds_filter_after_numbering(knp: Knp) -> None:
    tid = knp.thread()["tid"]
    knp.run(tid)
    with knp.server.stream(f"/events?after=0&tid={tid}") as stream:
        stream.until("run.finished")
    for wish, wanted in (
        ("text.*", {"text.start", "text.delta", "text.end"}),
        ("text.delta, run.finished", {"text.delta", "run.finished"}),
        ("thread.*,run.finished", {"thread.created", "thread.updated", "thread.start", "thread.stop", "run.finished"}),
    ):
        query = wish.replace(" ", "%20")
        with knp.server.stream(f"/events?after=0&tid={tid}&kinds={query}") as chosen_ones:
            chosen_ones.until("run.finished" if "run" in wish else "text.end")
        expected = [f for f in stream.frames[1:] if f["kind"] in wanted]
        assert chosen_ones.frames[1:] == expected
    for wrong in ("song", "song.*", "text.delta,song", "*", "text"):
        assert knp.refused("GET", f"/events?kinds={wrong}") == (400, "invalid_request")


@pytest.mark.req("knp:K16")
def test_a_prefix_stands_for_every_kind_that_begins_so() -> None:
    assert chosen("tool.input.*") == {"tool.input.delta", "tool.input.end"}
    assert chosen("") == chosen(" , ") == frozenset()
    assert chosen("model.*") == {name for name in NAMES if name.startswith("model.")}


@pytest.mark.req("knp:K17")
def test_the_global_stream_tells_of_threads_everywhere_and_of_no_pieces(knp: Knp) -> None:
    with knp.server.stream("/events?scope=global", x_kernl_namespace="ignored") as stream:
        stream.until("connected")
        first = knp.thread(namespace="one")["tid"]
        second = knp.thread(title="two")["tid"]
        knp.run(second)
        knp.ask("PATCH", f"/threads/{first}?namespace=one", {"title": "renamed"})
        knp.ask("DELETE", f"/threads/{second}")
        stream.until("thread.deleted")
    frames = stream.frames[1:]
    assert kinds(frames) == ["namespace.created", "thread.created", "thread.updated", "thread.deleted"]
    assert {f["scope"] for f in frames} == {"global"}
    assert [f["namespace"] for f in frames] == ["one", "one", "default", "one", "default"]
    assert knp.refused("GET", "/events?scope=global&namespace=one") == (400, "invalid_request")
    assert knp.refused("GET", "/events?scope=everything") == (400, "invalid_request")


@pytest.mark.req("knp:K17")
def test_the_global_stream_can_be_narrowed_to_a_thread(knp: Knp) -> None:
    tid = knp.thread(namespace="here")["tid"]
    with knp.server.stream(f"/events?scope=global&tid={tid}") as stream:
        stream.until("connected")
        knp.thread(title="another")
        knp.ask("PATCH", f"/threads/{tid}?namespace=here", {"title": "renamed"})
        stream.until("thread.updated")
    assert [f["data"]["thread"]["tid"] for f in stream.frames[1:]] == [tid]


@pytest.mark.req("knp:K21")
def test_a_stream_carries_its_own_namespace_alone(knp: Knp) -> None:
    with knp.server.stream("/events?namespace=quiet&kinds=thread.created") as stream:
        stream.until("connected")
        knp.thread()
        knp.thread(namespace="loud")
        tid = knp.thread(namespace="quiet")["tid"]
        told = stream.until("thread.created")
    assert told["data"]["thread"]["tid"] == tid
    assert len(stream.frames) == 2
    assert knp.refused("GET", f"/events?tid={tid}") == (404, "not_found")
    assert knp.refused("GET", "/events?namespace=a/b") == (400, "invalid_request")
