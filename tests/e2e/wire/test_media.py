"""Sound and moving pictures with the real executable: given, read from a file, sent by a model, kept over a restart."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.wire.test_kimi_scripts import FINISHED, call, client, told
from tests.fakes.model_server import ModelServer
from tests.fakes.wire_client import WireClient, kinds, payloads

MP4 = b"\0\0\0\x18ftypisom\0\0\x02\0isomiso2" + b"clip" * 10


def part(kind: str, url: str, id: str | None = None) -> dict[str, Any]:
    return {"type": f"{kind}_url", f"{kind}_url": {"url": url, "id": id}}


GIVEN = [
    {"type": "text", "text": "hello"},
    part("image", "data:image/png;base64,AAA"),
    part("audio", "data:audio/aac;base64,AAA"),
    part("video", "data:video/mp4;base64,AAA", "v-1"),
]


@pytest.mark.req("wire:S23", "wire:S48", "wire:S91", "wire:S93", "wire:S94")
def test_a_prompt_of_all_kinds_is_answered_in_all_kinds_and_both_are_there_after_a_restart(tmp_path: Path) -> None:
    """The model has the two capabilities that there is a word for; sound goes to whoever can be given it."""
    answer = 'text: so\naudio_url: data:audio/wav;base64,AAA\nvideo_url: {"url": "ms://f-1", "id": "s"}\ntext: there'
    heard_parts = [
        {"type": "text", "text": "so"},
        part("audio", "data:audio/wav;base64,AAA"),
        part("video", "ms://f-1", "s"),
        {"type": "text", "text": "there"},
    ]
    able = {"capabilities": ["image_in", "video_in"]}
    with client(tmp_path, answer, model=able, flags=("--session", "s1")) as wire:
        wire.initialize("1.1")
        heard = wire.prompt(GIVEN)
        assert heard[-1]["result"] == FINISHED
        assert payloads(heard, "TurnBegin") == [{"user_input": GIVEN}]
        assert payloads(heard, "ContentPart") == heard_parts
    (log,) = (tmp_path / "home/share/sessions").glob("*/s1/wire.jsonl")
    lines = [json.loads(line)["message"] for line in log.read_text().splitlines()[1:]]
    assert [line["payload"] for line in lines if line["type"] == "ContentPart"] == heard_parts
    assert lines[0]["payload"] == {"user_input": GIVEN}
    with client(tmp_path, "text: x", model={"capabilities": ["image_in"]}, flags=("--session", "s1")) as wire:
        again = wire.call("replay")
        assert (payloads(again, "TurnBegin"), payloads(again, "ContentPart")) == ([{"user_input": GIVEN}], heard_parts)
        refused = wire.prompt(GIVEN)
        assert kinds(refused) == ["TurnBegin", "TurnEnd", "reply"]
        words = "LLM model 'scripted_echo' does not support required capability: video_in."
        assert refused[-1]["error"] == {"code": -32002, "message": words, "data": None}
        assert wire.prompt("without")[-1]["result"] == FINISHED


@pytest.mark.parametrize("able", [True, False])
def test_a_video_in_the_workspace_is_read_for_a_model_that_takes_it(tmp_path: Path, able: bool) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/clip.mp4").write_bytes(MP4)
    capabilities = ["image_in", "video_in"] if able else ["image_in"]
    script = call("ReadMediaFile", {"path": "clip.mp4"})
    with client(tmp_path, script, "text: seen", model={"capabilities": capabilities}) as wire:
        value = told(wire.prompt("watch it"))
    if able:
        assert not value["is_error"]
        assert value["output"][1] == part("video", f"data:video/mp4;base64,{base64.b64encode(MP4).decode()}")
        return
    assert value["is_error"]
    assert "is a video (video/mp4)" in value["message"]
    assert "takes no videos" in value["message"]


async def test_kimis_own_type_of_server_gets_videos_and_sound_as_they_were_given(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    async with ModelServer("text: well\n") as server:
        model = {"provider": "kimi", "model": "k2", "max_context_size": 1000, "capabilities": ["video_in"]}
        config = {
            "default_model": "k",
            "models": {"k": model},
            "providers": {"kimi": {"type": "kimi", "base_url": server.url, "api_key": "a-key-of-the-test"}},
        }

        def speak() -> list[dict[str, Any]]:
            with WireClient(tmp_path / "home", "--config", json.dumps(config), work=tmp_path / "work") as wire:
                return wire.prompt([GIVEN[0], *GIVEN[2:]])

        assert (await asyncio.to_thread(speak))[-1]["result"] == FINISHED
    assert server.requests[0].body["messages"][-1]["content"] == [
        {"type": "text", "text": "hello"},
        {"type": "audio_url", "audio_url": {"url": "data:audio/aac;base64,AAA"}},
        {"type": "video_url", "video_url": {"url": "data:video/mp4;base64,AAA", "id": "v-1"}},
    ]
