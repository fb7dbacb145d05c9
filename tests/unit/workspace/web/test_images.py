"""Images at an address: fetched as pages are, told by their first bytes, and refused in words."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from quintet.domain.errors import Invalid
from quintet.workspace.web.fetching import Fetcher
from quintet.workspace.web.images import LARGEST, fetch_image
from tests.fakes.web import Names, certificates, reply, serving, why_not_our_public

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


@pytest.mark.req("security:S33")
async def test_an_image_is_known_by_its_first_bytes_whatever_its_server_says(tmp_path: Path) -> None:
    shown = certificates(tmp_path, "pictures.example.org")
    fetcher = Fetcher(resolve=Names(), refuse=why_not_our_public, tls=shown.client)
    async with serving(reply(200, PNG, Content_Type="text/html"), tls=shown.server) as server:
        part = await fetch_image(f"https://pictures.example.org:{server.port}/a", fetcher)
    assert (part.media_type, base64.b64decode(part.data)) == ("image/png", PNG)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (reply(200, "<html>", Content_Type="image/png"), "no PNG"),
        (reply(404, PNG), "status 404"),
        (reply(200, PNG + b"\0" * LARGEST), "larger than 5 MiB"),
    ],
)
async def test_what_is_no_image_to_show_is_refused(tmp_path: Path, answer: bytes, words: str) -> None:
    shown = certificates(tmp_path, "pictures.example.org")
    fetcher = Fetcher(resolve=Names(), refuse=why_not_our_public, tls=shown.client)
    async with serving(answer, tls=shown.server) as server:
        with pytest.raises(Invalid, match=words):
            await fetch_image(f"https://pictures.example.org:{server.port}/a", fetcher)


@pytest.mark.req("security:S33")
@pytest.mark.parametrize(
    "address",
    ["http://example.com/a.png", "file:///etc/passwd", "https://127.0.0.1/a.png", "https://localhost/a.png", "a.png"],
)
async def test_addresses_that_are_never_opened(address: str) -> None:
    async def nobody(name: str) -> list[str]:
        raise AssertionError(name)

    with pytest.raises(Invalid):
        await fetch_image(address, Fetcher(resolve=nobody))
