"""Typed decoding of the domain's own JSON. One place, because decoders of one type must not be made by two threads at
once: msgspec (0.22) crashes then, and nouns are decoded by readers, by the writer and on the event loop.
"""

from __future__ import annotations

import threading
from typing import Any

import msgspec

_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}
_making = threading.Lock()


def decode(data: bytes | str, kind: Any) -> Any:
    """Raises msgspec.MsgspecError. Decoders are made when first needed: making all of them would slow every start."""
    decoder = _decoders.get(kind)
    if decoder is None:
        with _making:
            decoder = _decoders[kind] = msgspec.json.Decoder(kind)
    return decoder.decode(data)
