"""Public cursors: arithmetic, and resuming between two frames of one event."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintet.domain.cursor import (
    FRAMES_PER_EVENT,
    first_seq_to_read,
    frame_id,
    frames_after,
    parse,
    public_number,
    split,
)
from quintet.domain.errors import Invalid
from quintet.domain.event import Event, ThreadDeleted


def event(seq: int) -> Event:
    return Event(seq, "thread.deleted", 0, ThreadDeleted(), "thr_x", "thr_x")


@pytest.mark.req("mechanisms:M1.cursor")
@given(st.integers(0, 2**53), st.integers(0, FRAMES_PER_EVENT - 1))
def test_a_public_number_gives_back_seq_and_place(seq: int, k: int) -> None:
    assert split(public_number(seq, k)) == (seq, k)


@pytest.mark.req("mechanisms:M1.cursor")
@given(st.lists(st.integers(0, 5), min_size=1, max_size=12), st.data())
def test_cut_anywhere_the_rest_completes_the_log_without_gap_or_repeat(counts: list[int], data: st.DataObject) -> None:
    events = [event(seq) for seq in range(1, len(counts) + 1)]

    def project(e: Event) -> list[str]:
        return [f"{e.seq}.{k}" for k in range(counts[e.seq - 1])]

    whole = list(frames_after(0, events, project))
    cut = data.draw(st.integers(0, len(whole)))
    cursor = whole[cut - 1][0] if cut else 0
    rest = frames_after(cursor, [e for e in events if e.seq > first_seq_to_read(cursor)], project)
    assert whole[:cut] + list(rest) == whole


@pytest.mark.req("mechanisms:M1.cursor")
def test_an_event_has_at_most_sixteen_frames() -> None:
    with pytest.raises(ValueError, match="at most 16"):
        public_number(1, FRAMES_PER_EVENT)


def test_a_frame_is_named_by_its_event_and_place() -> None:
    assert frame_id(255, 3) == "evt_00000000000ff.3"


@pytest.mark.parametrize("text", ["", "-1", "1.5", "x", "٣", "1" * 21, "0x10", " 1"])
def test_what_is_not_a_cursor_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        parse(text)
