"""Images, sound and videos at an address: fetched as pages are, told by their first bytes, and refused in words."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from quintet.domain.errors import Invalid
from quintet.domain.item import MediaKind
from quintet.workspace.kinds import LARGEST
from quintet.workspace.web.exchange import LARGEST as LARGEST_ANSWER
from quintet.workspace.web.fetching import Fetcher
from quintet.workspace.web.media import fetch_media
from tests.fakes.web import Names, certificates, reply, serving, why_not_our_public

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20
MP4 = b"\0\0\0\x18ftypisom" + b"\0" * 20
WAV = b"RIFF\x24\0\0\0WAVEfmt " + b"\0" * 20
IMAGE, AUDIO, VIDEO = MediaKind


@pytest.mark.req("security:S33")
@pytest.mark.parametrize(
    ("kind", "media_type", "data"), [(IMAGE, "image/png", PNG), (AUDIO, "audio/wav", WAV), (VIDEO, "video/mp4", MP4)]
)
async def test_what_it_is_is_known_by_its_first_bytes_whatever_its_server_says(
    kind: MediaKind, media_type: str, data: bytes, tmp_path: Path
) -> None:
    shown = certificates(tmp_path, "pictures.example.org")
    fetcher = Fetcher(resolve=Names(), refuse=why_not_our_public, tls=shown.client)
    async with serving(reply(200, data, Content_Type="text/html"), tls=shown.server) as server:
        part = await fetch_media(f"https://pictures.example.org:{server.port}/a", kind, fetcher)
    assert (part.kind, part.media_type, base64.b64decode(part.data)) == (kind, media_type, data)


@pytest.mark.parametrize(
    ("kind", "answer", "words"),
    [
        (IMAGE, reply(200, "<html>", Content_Type="image/png"), "no PNG"),
        (IMAGE, reply(404, PNG), "status 404"),
        (IMAGE, reply(200, PNG + b"\0" * LARGEST[IMAGE]), "larger than 5 MiB"),
        (VIDEO, reply(200, PNG), "is no video"),
        (AUDIO, reply(200, MP4), "is no sound"),
        (VIDEO, reply(200, MP4 + b"\0" * LARGEST_ANSWER), "larger than 10 MiB"),
    ],
    ids=["page", "missing", "large image", "image for a video", "video for sound", "large video"],
)
async def test_what_is_not_to_be_shown_is_refused(tmp_path: Path, kind: MediaKind, answer: bytes, words: str) -> None:
    shown = certificates(tmp_path, "pictures.example.org")
    fetcher = Fetcher(resolve=Names(), refuse=why_not_our_public, tls=shown.client)
    async with serving(answer, tls=shown.server) as server:
        with pytest.raises(Invalid, match=words):
            await fetch_media(f"https://pictures.example.org:{server.port}/a", kind, fetcher)


@pytest.mark.req("security:S33")
@pytest.mark.parametrize(
    "address",
    ["http://example.com/a.png", "file:///etc/passwd", "https://127.0.0.1/a.png", "https://localhost/a.png", "a.png"],
)
async def test_addresses_that_are_never_opened(address: str) -> None:
    async def nobody(name: str) -> list[str]:
        raise AssertionError(name)

    with pytest.raises(Invalid):
        await fetch_media(address, MediaKind.VIDEO, Fetcher(resolve=nobody))
