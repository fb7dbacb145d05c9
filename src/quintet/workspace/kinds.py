"""What a file is, told by its first bytes; its name says nothing. Pure."""

from __future__ import annotations

from base64 import b64encode

from quintet.domain.item import ImagePart, Media, MediaKind, MediaPart

LARGEST = {
    MediaKind.IMAGE: 5 * 1024 * 1024,  # what models take
    MediaKind.AUDIO: 20 * 1024 * 1024,  # it goes along with every further call
    MediaKind.VIDEO: 20 * 1024 * 1024,
}
_IMAGES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_SOUND = (
    (b"ID3\x02", "audio/mpeg"),
    (b"ID3\x03", "audio/mpeg"),
    (b"ID3\x04", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
    (b"\xff\xf2", "audio/mpeg"),
    (b"\xff\xf1", "audio/aac"),
    (b"\xff\xf9", "audio/aac"),
    (b"fLaC\0", "audio/flac"),
    (b"fLaC\x80", "audio/flac"),
    (b"OggS\0", "audio/ogg"),
)
_VIDEOS = (
    (b"FLV\x01", "video/x-flv"),
    (b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "video/x-ms-wmv"),
    (b"\0\0\x01\xba", "video/mpeg"),
)
_EBML = b"\x1a\x45\xdf\xa3"
# The family of MP4 says in its first box what it is. Still pictures use it too: those models take are known above.
_BRANDS = {
    b"qt  ": "video/quicktime",
    b"M4V ": "video/x-m4v",
    b"3gp4": "video/3gpp",
    b"3gp5": "video/3gpp",
    b"3gp6": "video/3gpp",
    b"3g2a": "video/3gpp2",
    **dict.fromkeys((b"isom", b"iso2", b"iso4", b"iso5", b"iso6", b"mp41", b"mp42", b"avc1", b"mp4v"), "video/mp4"),
}
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


def media_kind(start: bytes) -> tuple[MediaKind, str] | None:
    """What models can look at or listen to: its kind and media type. None for anything else."""
    if image := image_type(start):
        return MediaKind.IMAGE, image
    if sound := _sound_type(start):
        return MediaKind.AUDIO, sound
    video = _video_type(start)
    return (MediaKind.VIDEO, video) if video else None


def _sound_type(start: bytes) -> str:
    if start[:4] == b"RIFF" and start[8:12] == b"WAVE":
        return "audio/wav"
    if start[4:11] == b"ftypM4A":
        return "audio/mp4"
    return next((media for magic, media in _SOUND if start.startswith(magic)), "")


def _video_type(start: bytes) -> str:
    if start[:4] == b"RIFF" and start[8:12] == b"AVI ":
        return "video/x-msvideo"
    if start[4:8] == b"ftyp":
        return _BRANDS.get(start[8:12], "")
    if start.startswith(_EBML):
        return "video/webm" if b"webm" in start[:64] else "video/x-matroska" if b"matroska" in start[:64] else ""
    return next((media for magic, media in _VIDEOS if start.startswith(magic)), "")


def as_part(kind: MediaKind, media_type: str, data: bytes) -> Media:
    """As a model is given it."""
    text = b64encode(data).decode("ascii")
    if kind is MediaKind.IMAGE:
        return ImagePart(media_type, text)
    return MediaPart(kind, f"data:{media_type};base64,{text}")


def binary_kind(start: bytes) -> str:
    """A name for what is no text, or nothing when its beginning is not known."""
    return next((name for magic, name in _OTHERS if start.startswith(magic)), "")
