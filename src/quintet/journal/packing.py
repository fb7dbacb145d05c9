"""Large bodies are kept compressed: a row of two or three kilobytes would otherwise waste a third of its page.

Our texts are JSON and begin with a bracket, zlib's never do, so a body says itself which it is.
"""

from __future__ import annotations

import zlib
from typing import Any

FROM_BYTES = 1_024
_ZLIB = b"x"


def packed(body: bytes) -> bytes:
    if len(body) < FROM_BYTES:
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
