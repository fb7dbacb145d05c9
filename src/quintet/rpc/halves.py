"""Halves of surrogate pairs: JSON can write them (`"\\ud800"`), no text can hold them. Bytes in, bytes out.

In whole passes: a line may be a hundred megabytes.
"""

import re

_HEX = rb"[0-9a-fA-F]{2}"
_FIRST, _SECOND = rb"[89abAB]" + _HEX, rb"[c-fC-F]" + _HEX
_HALF = re.compile(
    rb"\\u[dD](?:%s(?!\\u[dD]%s)|%s(?<!\\u[dD]%s\\u[dD]%s))" % (_FIRST, _SECOND, _SECOND, _FIRST, _SECOND)
)
_ESCAPED, _ASIDE = b"\\\\", b"\0\0"


def mended_halves(body: bytes) -> bytes:
    """The same JSON with U+FFFD in place of each."""
    if b"\0" in body or (b"\\ud" not in body and b"\\uD" not in body):
        return body
    # Backslashes that stand for themselves are put aside: what follows one of those is no escape.
    return _HALF.sub(rb"\\ufffd", body.replace(_ESCAPED, _ASIDE)).replace(_ASIDE, _ESCAPED)
