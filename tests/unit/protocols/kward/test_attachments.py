"""Images that come with an input."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from quintet.domain.item import MediaKind, MediaPart, TextPart
from quintet.domain.model import MediaChunk
from quintet.domain.thread import ThreadQuery
from tests.fakes.kward_peer import kinds, payloads
from tests.fakes.kward_turns import PNG, image, transcript
from tests.fakes.providers import GatedProvider, text
from tests.unit.protocols.kward.conftest import Connect


@pytest.mark.req("kward:97", "kward:98", "kward:99", "kward:100", "kward:101")
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "attachments must be an array"),
        ("x", "attachments must be an array"),
        (["x"], "attachment must be an object"),
        ([image(type="file")], "Unsupported attachment type: file"),
        ([image(mimeType="image/svg+xml")], "Unsupported image MIME type: image/svg+xml"),
        ([image(data=f"data:image/png;base64,{PNG}")], "Image attachment data must be raw base64"),
        ([image(data="")], "Image attachment data must be valid base64"),
        ([image(data="not base64!")], "Image attachment data must be valid base64"),
        ([image(data=None)], "Image attachment data must be valid base64"),
        ([image(sizeBytes=10485761)], "Image attachment is too large"),
    ],
)
async def test_an_attachment_that_is_none_is_refused(connect: Connect, given: Any, words: str) -> None:
    peer = connect()
    session = await peer.session()
    assert await peer.fails("turns/start", sessionId=session["id"], input="x", attachments=given) == (-32602, words)
    assert not [m for m in peer.seen if m.get("method") == "turn/event"]


@pytest.mark.req("kward:101")
async def test_an_image_of_exactly_ten_mebibytes_passes_and_one_byte_more_does_not(connect: Connect) -> None:
    peer = connect(known={"vision": True})
    session = await peer.session()
    data = base64.b64encode(b"0" * 10485761).decode()
    told = await peer.fails("turns/start", sessionId=session["id"], input="x", attachments=[image(data=data)])
    assert told == (-32602, "Image attachment is too large")
    exact = image(data=base64.b64encode(b"0" * 10485760).decode(), sizeBytes=10485760)
    assert kinds(await peer.turn(session["id"], attachments=[exact]))[-1] == "turnFinished"


@pytest.mark.req("kward:99", "kward:102", "kward:107")
async def test_an_image_is_in_the_transcript_under_its_name(connect: Connect) -> None:
    peer = connect(known={"vision": True, "context_window": 1000})
    session = await peer.session()
    await peer.turn(session["id"], attachments=[image(mimeType="IMAGE/PNG", name="a.png")])
    user = (await transcript(peer, session))[0]
    assert user["content"] == [
        {"type": "text", "text": "go"},
        {"type": "image", "data": PNG, "mimeType": "image/png", "alt": "a.png"},
    ]
    assert "contextUsage" not in await peer.ok("runtime/stats", sessionId=session["id"])


async def test_what_kward_has_no_form_for_is_named_live_and_in_the_transcript(connect: Connect) -> None:
    """Another protocol gave a video to this thread, and its model sent one."""
    clip = MediaPart(MediaKind.VIDEO, "data:video/mp4;base64,AAAA")
    peer = connect(GatedProvider([*text("so"), MediaChunk(clip)], text("x")), known={"context_window": 1000})
    session = await peer.session()
    words = {"type": "text", "text": "[a video, video/mp4, 3 bytes]"}
    events = await peer.turn(session["id"])
    assert payloads(events, "assistantDelta") == [{"delta": "so"}, {"delta": words["text"]}]
    assert (await transcript(peer, session))[1]["content"] == [{"type": "text", "text": "so" + words["text"]}]
    (thread,) = await peer.process.threads.page(ThreadQuery())
    starter = peer.process.starter(GatedProvider(text("y")))
    given = (TextPart("see"), clip)
    await peer.process.ended((await peer.process.turns.start(thread.id, given, starter)).turn.id)
    assert (await transcript(peer, session))[2]["content"] == [{"type": "text", "text": "see"}, words]
    assert "contextUsage" not in await peer.ok("runtime/stats", sessionId=session["id"])
