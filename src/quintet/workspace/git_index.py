"""What an index of the plainest kind holds, read without git. Whoever gets None asks git itself.

Plain: version 2, SHA-1, every file simply tracked (no conflict, nothing that git is told to pass over), and no
extension that a reader would have to understand. Knows the format of the file and nothing of work trees.
"""

from __future__ import annotations

import struct

_HEAD = struct.Struct(">4sLL")  # a mark, the version, how many entries follow
_SUM = 20  # bytes at the very end
_FLAGS = struct.Struct(">H")
_FLAGS_AT, _NAME_AT = 60, 62  # in an entry
_PLAIN = 0xFFF  # below it nothing is flagged, and the flags are the length of the name
_EXTENSION = struct.Struct(">4sL")  # its name, how many bytes follow


def plain_names(data: bytes) -> list[bytes] | None:
    """The paths in an index, in its order; None when it is not of the plain kind."""
    try:
        mark, version, count = _HEAD.unpack_from(data)
        if (mark, version) != (b"DIRC", 2):
            return None
        names: list[bytes] = []
        place, flags_of = _HEAD.size, _FLAGS.unpack_from
        for _ in range(count):
            (length,) = flags_of(data, place + _FLAGS_AT)
            if length >= _PLAIN:
                return None
            end = place + _NAME_AT + length
            names.append(data[place + _NAME_AT : end])
            place = end + 8 - (_NAME_AT + length) % 8  # filled up to a multiple of eight, with one byte at least
        return names if _only_optional(data, place) else None
    except struct.error:
        return None  # it breaks off


def _only_optional(data: bytes, place: int) -> bool:
    """What follows the entries, up to the sum. A capital letter: who does not know the extension may pass over it."""
    end = len(data) - _SUM
    while place < end:
        name, length = _EXTENSION.unpack_from(data, place)
        if not name[:1].isupper():
            return False
        place += _EXTENSION.size + length
    return place == end
