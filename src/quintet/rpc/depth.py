"""How deep JSON nests, found without building anything of it. Bytes in, a yes or no out."""

from array import array
from itertools import accumulate

MAX_DEPTH = 64
_BRACKETS = bytes.maketrans(b"{}", b"[]")
_STEPS = bytes.maketrans(b"[]", b"\x01\xff")  # read as signed bytes: one up, one down
_NO_QUOTES_NOR_BRACKETS = bytes(set(range(256)) - set(b'"{}[]'))


def too_deep(body: bytes, limit: int = MAX_DEPTH) -> bool:
    """Whether valid JSON nests too deep. Counting brackets settles most bodies at memory speed."""
    if body.count(b"{") + body.count(b"[") <= limit:
        return False
    pairs = _brackets(body)
    # Each pass takes the innermost pairs away, one level of depth: cheap, and enough for the flat bulk of
    # most bodies.
    for taken in range(4):
        if not pairs:
            return taken > limit
        pairs = pairs.replace(b"[]", b"")
    steps = array("b", pairs.translate(_STEPS))
    return 4 + max(accumulate(steps), default=0) > limit


def _brackets(body: bytes) -> bytes:
    """The brackets outside strings, all of one shape. In whole passes: a line may be a hundred megabytes."""
    if b"\\" in body:
        body = body.replace(b"\\\\", b"").replace(b'\\"', b"")  # what is left of quotes begins or ends a string
    # Two quotes side by side are a string without brackets, or an end and a beginning: either way nothing between.
    marks = body.translate(_BRACKETS, _NO_QUOTES_NOR_BRACKETS).replace(b'""', b"")
    return b"".join(marks.split(b'"')[::2])
