"""What a file is, told by its first bytes; its name says nothing. Pure."""

from __future__ import annotations

_IMAGES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_OTHERS = (
    (b"%PDF", "PDF"),
    (b"\x7fELF", "ELF program"),
    (b"MZ", "Windows program"),
    (b"\xca\xfe\xba\xbe", "Java class"),
    (b"\0asm", "WebAssembly"),
    (b"PK\x03\x04", "zip"),
    (b"\x1f\x8b", "gzip"),
    (b"\xfd7zXZ\0", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"BZh", "bzip2"),
    (b"7z\xbc\xaf\x27\x1c", "7z"),
    (b"SQLite format 3\0", "SQLite database"),
    (b"OggS", "Ogg"),
    (b"ID3", "MP3"),
    (b"\xff\xfe", "UTF-16 text"),
    (b"\xfe\xff", "UTF-16 text"),
)


def image_type(start: bytes) -> str:
    """The media type of an image models can look at, or nothing."""
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "image/webp"
    return next((media for magic, media in _IMAGES if start.startswith(magic)), "")


def binary_kind(start: bytes) -> str:
    """A name for what is no text, or nothing when its beginning is not known."""
    return next((name for magic, name in _OTHERS if start.startswith(magic)), "")
