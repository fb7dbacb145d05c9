"""Large bodies are kept compressed: a row of two or three kilobytes would otherwise waste a third of its page.

Our texts are JSON and begin with a bracket, zlib's never do, so a body says itself which it is.
"""

from __future__ import annotations

import zlib
from typing import Any

FROM_BYTES = 1_024
_ZLIB = b"x"
# Pictures and videos are packed as they are, and in base64 they shrink by a quarter at most. That is not worth the time
# of packing and unpacking many megabytes whenever their turn is looked at.
LARGE_BYTES = 512 * 1024
_SAMPLE = 32 * 1024
_WORTH_IT = 0.7


def packed(body: bytes) -> bytes:
    if len(body) < FROM_BYTES or _is_packed_already(body):
        return body
    small = zlib.compress(body, 1)  # the fastest level has most of the gain
    return small if len(small) < len(body) else body


def unpacked(body: Any) -> bytes:
    """What was packed. Damaged bytes come back as they are, and then fail their checksum."""
    if not isinstance(body, bytes):
        return str(body).encode(errors="replace")  # damage can change even a value's type
    if body[:1] != _ZLIB:
        return body
    try:
        return zlib.decompress(body)
    except zlib.error:
        return body


def _is_packed_already(body: bytes) -> bool:
    """Told by a piece from the middle of a large body."""
    if len(body) < LARGE_BYTES:
        return False
    piece = body[len(body) // 2 :][:_SAMPLE]
    return len(zlib.compress(piece, 1)) > _WORTH_IT * len(piece)
