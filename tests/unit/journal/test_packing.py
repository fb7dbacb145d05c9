"""Large bodies are kept small, unless they are packed already."""

from __future__ import annotations

import base64
import random

import pytest

from quintet.journal.packing import FROM_BYTES, LARGE_BYTES, packed, unpacked

NOISE = base64.b64encode(random.Random(1).randbytes(LARGE_BYTES))


@pytest.mark.parametrize(
    ("body", "shrinks"),
    [
        (b'{"a":"' + b"x" * FROM_BYTES + b'"}', True),
        (b'{"a":"' + b"some words " * LARGE_BYTES + b'"}', True),
        (b'{"a":"short"}', False),
        (b'{"a":"data:video/mp4;base64,' + NOISE + b'"}', False),
    ],
    ids=["text", "much text", "little", "a video"],
)
def test_text_is_kept_small_and_what_is_packed_already_is_kept_as_it_is(body: bytes, shrinks: bool) -> None:
    kept = packed(body)
    assert (len(kept) < len(body)) is shrinks
    assert shrinks or kept is body
    assert unpacked(kept) == body
