"""Sound and videos as each wire has a form for them, and words where it has none; seen by a server."""

from __future__ import annotations

from typing import Any

import pytest

from quintet.domain.item import (
    AssistantMessage,
    Body,
    ImagePart,
    MediaKind,
    MediaPart,
    ResultStatus,
    TextPart,
    ToolCall,
    ToolResult,
    UserMessage,
    named,
)
from quintet.domain.model import ModelInfo
from quintet.providers.settings import ModelSettings, ProviderKind, ProviderSettings
from quintet.providers.table import ModelTable
from tests.fakes.model_server import ModelServer
from tests.fakes.requests import all_chunks, request_of
from tests.fakes.waiting import soon
from tests.fakes.wires import wire

CHAT, RESPONSES, ANTHROPIC = ProviderKind.OPENAI_CHAT, ProviderKind.OPENAI_RESPONSES, ProviderKind.ANTHROPIC
PICTURE = ImagePart("image/png", "aGVsbG8=")
WAV = MediaPart(MediaKind.AUDIO, "data:audio/x-wav;base64,V0FW")
MP3 = MediaPart(MediaKind.AUDIO, "data:audio/mpeg;base64,TVAz")
AAC = MediaPart(MediaKind.AUDIO, "data:audio/aac;base64,QUFD", label="a1")
CLIP = MediaPart(MediaKind.VIDEO, "data:video/mp4;base64,Q0xJUA==", label="v1")
STORED = MediaPart(MediaKind.VIDEO, "ms://file-7")
ABLE = ModelInfo("far/m", vision=True, audio=True, video=True)


async def sent(kind: ProviderKind, bodies: list[Body], model: ModelInfo) -> Any:
    async with ModelServer() as server:
        provider = wire(server, kind, model=model)
        await soon(all_chunks(provider, request_of(bodies)))
        await provider.close()
    return server.requests[0].body


def given(*parts: Any) -> list[Body]:
    return [UserMessage((TextPart("listen"), *parts))]


async def test_chat_has_openais_form_for_its_formats_and_the_address_form_for_all_else() -> None:
    body = await sent(CHAT, given(WAV, MP3, AAC, CLIP, STORED), ABLE)
    assert body["messages"][-1]["content"] == [
        {"type": "text", "text": "listen"},
        {"type": "input_audio", "input_audio": {"data": "V0FW", "format": "wav"}},
        {"type": "input_audio", "input_audio": {"data": "TVAz", "format": "mp3"}},
        {"type": "audio_url", "audio_url": {"url": AAC.url, "id": "a1"}},
        {"type": "video_url", "video_url": {"url": CLIP.url, "id": "v1"}},
        {"type": "video_url", "video_url": {"url": "ms://file-7"}},
    ]


async def test_chat_gives_what_a_model_takes_and_names_the_rest_in_its_place() -> None:
    sees = ModelInfo("far/m", vision=True)
    body = await sent(CHAT, given(CLIP, PICTURE, WAV), sees)
    assert body["messages"][-1]["content"] == [
        {"type": "text", "text": "listen"},
        {"type": "text", "text": "[1 video left out: this model takes no videos]"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}},
        {"type": "text", "text": "[1 recording left out: this model takes no sound]"},
    ]
    body = await sent(CHAT, given(CLIP, PICTURE, WAV, MP3), ModelInfo("far/m"))
    assert body["messages"][-1]["content"] == (
        "listen\n[1 image left out: this model takes no images]\n[2 recordings left out: this model takes no sound]\n"
        "[1 video left out: this model takes no videos]"
    )


async def test_a_video_that_a_tool_has_read_follows_its_result() -> None:
    bodies: list[Body] = [
        UserMessage((TextPart("look"),)),
        ToolCall("c1", "read", '{"path": "a.mp4"}'),
        ToolResult("c1", "read", ResultStatus.OK, "[video a.mp4]", images=(CLIP,)),
    ]
    result, shown = (await sent(CHAT, bodies, ABLE))["messages"][-2:]
    assert (result["role"], result["content"]) == ("tool", "[video a.mp4]")
    assert shown == {"role": "user", "content": [{"type": "video_url", "video_url": {"url": CLIP.url, "id": "v1"}}]}
    (*_, result) = (await sent(CHAT, bodies, ModelInfo("far/m", vision=True)))["messages"]
    assert result["content"] == "[video a.mp4]\n[1 video left out: this model takes no videos]"


@pytest.mark.parametrize("kind", [RESPONSES, ANTHROPIC])
async def test_a_wire_without_a_form_for_them_tells_the_model_what_was_left_out(kind: ProviderKind) -> None:
    bodies: list[Body] = [
        *given(WAV, PICTURE, CLIP),
        ToolCall("c1", "read", "{}"),
        ToolResult("c1", "read", ResultStatus.OK, "[video a.mp4]", images=(CLIP, PICTURE)),
    ]
    body = await sent(kind, bodies, ABLE)
    told = str(body)
    assert told.count("[1 recording left out: this model takes no sound]") == 1
    assert told.count("[1 video left out: this model takes no videos]") == 2
    assert told.count("aGVsbG8=") == 2
    assert "V0FW" not in told
    assert "Q0xJUA" not in told


@pytest.mark.parametrize("kind", [CHAT, RESPONSES, ANTHROPIC])
async def test_what_a_model_sent_itself_is_named_to_the_next_one(kind: ProviderKind) -> None:
    said: list[Body] = [
        UserMessage((TextPart("draw"),)),
        AssistantMessage(named(CLIP), sent=CLIP),
        UserMessage((TextPart("more"),)),
    ]
    told = str(await sent(kind, said, ABLE))
    assert "[a video, video/mp4, 6 bytes]" in told
    assert "Q0xJUA" not in told


@pytest.mark.parametrize(("kind", "carries"), [(CHAT, True), (RESPONSES, False), (ANTHROPIC, False)])
def test_a_model_takes_what_its_settings_say_as_far_as_its_wire_has_a_form(kind: ProviderKind, carries: bool) -> None:
    providers = {"p": ProviderSettings(kind, "http://127.0.0.1:1")}
    table = ModelTable(providers, {"p/m": ModelSettings(vision=True, audio=True, video=True)})
    assert [table.info("p/m").takes(kind) for kind in MediaKind] == [True, carries, carries]
    assert [table.info("p/other").takes(kind) for kind in MediaKind] == [False, False, False]


def test_the_catalog_knows_who_watches_videos() -> None:
    table = ModelTable({"kimi": ProviderSettings(CHAT, "https://api.moonshot.ai/v1")})
    assert table.info("kimi/kimi-k2.6").video
    assert not table.info("kimi/kimi-k2.6").audio
