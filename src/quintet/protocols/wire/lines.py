"""A line of JSON, on the wire and in files, that every reader takes for one."""

from __future__ import annotations


def encode_line(body: bytes) -> bytes:
    """Some readers end a line at U+2028 and U+2029 too; escaped they stay what they are."""
    if not body.isascii() and b"\xe2\x80" in body:
        body = body.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")
    return body + b"\n"
