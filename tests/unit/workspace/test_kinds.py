"""What a file is by its first bytes, and never by its name."""

from __future__ import annotations

import pytest

from quintet.domain.item import MediaKind
from quintet.workspace.kinds import as_part, media_kind

IMAGE, AUDIO, VIDEO = MediaKind


@pytest.mark.parametrize(
    ("start", "found"),
    [
        (b"\x89PNG\r\n\x1a\n", (IMAGE, "image/png")),
        (b"\0\0\0\x18ftypisom\0\0", (VIDEO, "video/mp4")),
        (b"\0\0\0\x18ftypmp42\0\0", (VIDEO, "video/mp4")),
        (b"\0\0\0\x14ftypqt  \0\0", (VIDEO, "video/quicktime")),
        (b"\0\0\0\x14ftyp3gp5\0\0", (VIDEO, "video/3gpp")),
        (b"\x1a\x45\xdf\xa3\x9fB\x86\x81\x01B\x82\x84webm", (VIDEO, "video/webm")),
        (b"\x1a\x45\xdf\xa3\x9fB\x86\x81\x01B\x82\x88matroska", (VIDEO, "video/x-matroska")),
        (b"RIFF\x24\0\0\0AVI LIST", (VIDEO, "video/x-msvideo")),
        (b"FLV\x01\x05", (VIDEO, "video/x-flv")),
        (b"\0\0\x01\xba\x44", (VIDEO, "video/mpeg")),
        (b"RIFF\x24\0\0\0WAVEfmt ", (AUDIO, "audio/wav")),
        (b"ID3\x04\0\0", (AUDIO, "audio/mpeg")),
        (b"\xff\xfb\x90\x64", (AUDIO, "audio/mpeg")),
        (b"\xff\xf1\x50\x80", (AUDIO, "audio/aac")),
        (b"\0\0\0\x20ftypM4A \0\0", (AUDIO, "audio/mp4")),
        (b"fLaC\0\0\0\x22", (AUDIO, "audio/flac")),
        (b"OggS\0\x02", (AUDIO, "audio/ogg")),
        (b"\0\0\0\x1cftypavif", None),
        (b"ID3 tags are described here.", None),
        (b"OggStream is a class", None),
        (b"\xff\xfea\0", None),
        (b"RIFF\x24\0\0\0ACON", None),
        (b"plain text", None),
        (b"", None),
    ],
)
def test_pictures_sound_and_videos_are_told_apart(start: bytes, found: tuple[MediaKind, str] | None) -> None:
    assert media_kind(start) == found


def test_what_was_read_is_what_a_part_holds() -> None:
    part = as_part(VIDEO, "video/mp4", b"clip")
    assert (part.kind, part.media_type, part.data) == (VIDEO, "video/mp4", "Y2xpcA==")
