"""Public cursors: what clients remember. Pure arithmetic.

One event becomes at most sixteen frames on a wire. Frame k of event seq has the public number seq * 16 + k, so a client
cut off between two frames of one event resumes exactly there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from quintet.domain.errors import Invalid
from quintet.domain.event import Event
from quintet.domain.ids import event_id

FRAMES_PER_EVENT = 16
BEFORE_EVERYTHING = FRAMES_PER_EVENT - 1  # the last frame of event 0, which does not exist
Frame = TypeVar("Frame")


def public_number(seq: int, k: int = 0) -> int:
    if not 0 <= k < FRAMES_PER_EVENT:
        raise ValueError(f"an event has at most {FRAMES_PER_EVENT} frames, not {k + 1}")
    return seq * FRAMES_PER_EVENT + k


def frame_id(seq: int, k: int = 0) -> str:
    return f"{event_id(seq)}.{k}"


def split(cursor: int) -> tuple[int, int]:
    """The event's seq and the frame's place in it."""
    return divmod(cursor, FRAMES_PER_EVENT)


def parse(text: str) -> int:
    """A cursor as clients send it."""
    if not text.isascii() or not text.isdigit() or len(text) > 20:
        raise Invalid(f"{text[:40]!r} is not a cursor.", next_step="Send the number of the last frame you have seen.")
    return int(text)


def first_seq_to_read(cursor: int) -> int:
    """Reading resumes after this seq: the cursor's own event is read again, its frames up to k are skipped."""
    return max(split(cursor)[0] - 1, 0)


def frames_after(
    cursor: int, events: Iterable[Event], project: Callable[[Event], Sequence[Frame]]
) -> Iterator[tuple[int, Frame]]:
    """Every frame of these events whose public number lies beyond the cursor, with its number."""
    for event in events:
        for k, frame in enumerate(project(event)):
            number = public_number(event.seq, k)
            if number > cursor:
                yield number, frame
