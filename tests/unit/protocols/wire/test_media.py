"""Sound and moving pictures as content parts: given to models that take them, sent by models, told again and kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from quintet.domain.errors import Invalid
from quintet.domain.item import AssistantMessage, ImagePart, MediaKind, MediaPart, TextPart
from quintet.domain.model import MediaChunk
from tests.fakes.engine import House
from tests.fakes.providers import Gate, GatedProvider, text
from tests.fakes.waiting import soon
from tests.fakes.wire_client import kinds, payloads
from tests.fakes.wire_peer import Peer
from tests.unit.protocols.wire.conftest import Connect
from tests.unit.protocols.wire.test_leaving import Stuck

ABLE = {"vision": True, "audio": True, "video": True}


def part(kind: str, url: str, id: str | None = None) -> dict[str, Any]:
    return {"type": f"{kind}_url", f"{kind}_url": {"url": url, "id": id}}


GIVEN = [
    {"type": "text", "text": "hello"},
    part("image", "data:image/png;base64,AAA", "i-1"),
    part("audio", "data:audio/aac;base64,AAA"),
    part("video", "data:video/mp4;base64,AAA", "v-1"),
    part("video", "ms://file-7"),
]
CORE = (
    TextPart("hello"),
    ImagePart("image/png", "AAA", label="i-1"),
    MediaPart(MediaKind.AUDIO, "data:audio/aac;base64,AAA"),
    MediaPart(MediaKind.VIDEO, "data:video/mp4;base64,AAA", label="v-1"),
    MediaPart(MediaKind.VIDEO, "ms://file-7"),
)
SENT = [
    *text("look"),
    MediaChunk(MediaPart(MediaKind.IMAGE, "https://h.example/a.png", label="p")),
    MediaChunk(MediaPart(MediaKind.AUDIO, "data:audio/wav;base64,AAA")),
    *text("and"),
    MediaChunk(MediaPart(MediaKind.VIDEO, "data:video/mp4;base64,AAA")),
]
HEARD = [
    {"type": "text", "text": "look"},
    part("image", "https://h.example/a.png", "p"),
    part("audio", "data:audio/wav;base64,AAA"),
    {"type": "text", "text": "and"},
    part("video", "data:video/mp4;base64,AAA"),
]


@pytest.mark.req("wire:S46")
@pytest.mark.parametrize(
    ("kind", "url"),
    [
        *((kind, f"data:{kind}/x;base64,{data}") for kind in ("image", "video") for data in ("", "A", "====", "A=A=")),
        ("image", "data:text/html;base64,AAAA"),
        ("audio", "data:audio/wav,AAAA"),
    ],
)
async def test_what_no_server_could_read_is_refused_before_it_is_part_of_the_thread(
    connect: Connect, kind: str, url: str
) -> None:
    model = GatedProvider()
    peer = connect(model, known={"vision": True, "audio": True, "video": True})
    (reply,) = await peer.prompt([part(kind, url)])
    assert reply["error"]["code"] == -32602
    assert model.requests == []


@pytest.mark.req("wire:S32", "wire:S22", "wire:S98")
@pytest.mark.parametrize("how", ["cancel", "leave"])
async def test_what_is_still_being_fetched_holds_up_no_cancel(connect: Connect, how: str) -> None:
    stuck, model = Stuck(), GatedProvider()
    peer = connect(model, known={"vision": True}, house={"fetch": stuck})
    await peer.begin(given := [part("image", "https://h.example/a.png")])
    await soon(stuck.reached.wait())
    if how == "cancel":
        assert (await peer.ask("cancel"))["result"] == {}
        heard = await peer.reply("p")
    else:
        peer.hang_up()
        heard = await peer.rest()
    assert kinds(heard) == ["TurnBegin", "TurnEnd", "reply"]
    assert payloads(heard, "TurnBegin") == [{"user_input": given}]
    assert heard[-1]["result"] == {"status": "cancelled"}
    assert model.requests == []


@pytest.mark.req("wire:S23", "wire:S91")
async def test_sound_and_videos_of_one_prompt_reach_the_model_and_are_told_again(connect: Connect) -> None:
    model = GatedProvider()
    peer = connect(model, known=ABLE)
    heard = await peer.prompt(GIVEN)
    assert heard[-1]["result"] == {"status": "finished"}
    assert payloads(heard, "TurnBegin") == [{"user_input": GIVEN}]
    assert model.requests[0].items[0].body.parts == CORE  # type: ignore[union-attr]
    assert payloads(await peer.call("replay"), "TurnBegin") == [{"user_input": GIVEN}]


@pytest.mark.req("wire:S48")
@pytest.mark.parametrize(("lacking", "capability"), [("audio", "audio_in"), ("video", "video_in")])
async def test_one_thing_that_the_model_lacks_is_refused_before_anything_happens(
    connect: Connect, lacking: str, capability: str
) -> None:
    model, gate = GatedProvider([Gate()]), Gate()
    fetched: list[str] = []

    async def fetch(address: str, kind: MediaKind) -> Any:
        fetched.append(address)

    peer = connect(model, known={**ABLE, lacking: False}, house={"fetch": fetch})
    heard = await peer.prompt([part("image", "https://h.example/a.png"), *GIVEN])
    assert kinds(heard) == ["TurnBegin", "TurnEnd", "reply"]
    assert heard[-1]["error"]["code"] == -32002
    assert heard[-1]["error"]["message"] == f"LLM model 'model' does not support required capability: {capability}."
    assert (model.requests, fetched) == ([], [])
    model = GatedProvider([gate], text("x"))
    peer = connect(model, known={**ABLE, lacking: False})
    await peer.begin()
    await gate.stopped()
    steered = await peer.ask("steer", user_input=GIVEN)
    assert steered["error"]["code"] == -32002
    gate.open()
    assert (await peer.reply("p"))[-1]["result"] == {"status": "finished"}


@pytest.mark.req("wire:S23", "wire:S102")
async def test_sound_and_videos_at_an_address_are_fetched_as_what_they_were_named(connect: Connect) -> None:
    asked: list[tuple[str, MediaKind]] = []

    async def fetch(address: str, kind: MediaKind) -> MediaPart:
        asked.append((address, kind))
        if "gone" in address:
            raise Invalid("There is no video.")
        return MediaPart(kind, "data:video/mp4;base64,AAA")

    model = GatedProvider()
    peer = connect(model, known=ABLE, house={"fetch": fetch})
    given = [part("video", "https://h.example/v.mp4", "v-1")]
    assert payloads(await peer.prompt(given), "TurnBegin") == [{"user_input": given}]
    (kept,) = model.requests[0].items[0].body.parts  # type: ignore[union-attr]
    assert kept == MediaPart(MediaKind.VIDEO, "data:video/mp4;base64,AAA", label="v-1")
    for bad in (part("audio", "https://h.example/gone"), part("audio", "data:audio/wav,plain"), part("video", "data:")):
        heard = await peer.prompt([bad])
        assert [m.get("id") for m in heard] == ["p"]  # and nothing else happens
        assert heard[0]["error"]["code"] == -32602
    assert asked == [("https://h.example/v.mp4", MediaKind.VIDEO), ("https://h.example/gone", MediaKind.AUDIO)]


@pytest.mark.req("wire:S24", "wire:S91", "wire:S93")
async def test_what_a_model_sends_is_heard_in_its_place_and_told_again_after_a_restart(tmp_path: Path) -> None:
    house = House("sqlite", tmp_path / "home")
    one = await house.process()
    peer = Peer(one, GatedProvider(SENT), known=ABLE)
    heard = await peer.prompt(GIVEN)
    assert payloads(heard, "ContentPart") == HEARD
    await peer.close()
    said = await one.bodies(peer.thread, AssistantMessage)
    assert [body.text for body in said][1:3] == ["[an image at https://h.example/a.png]", "[sound, audio/wav, 2 bytes]"]
    await one.close()

    model = GatedProvider()
    again = Peer(await house.process(), model, known=ABLE, thread=peer.thread)
    told = await again.call("replay")
    assert (payloads(told, "TurnBegin"), payloads(told, "ContentPart")) == ([{"user_input": GIVEN}], HEARD)
    await again.prompt("more")
    assert model.requests[0].items[0].body.parts == CORE  # type: ignore[union-attr]
    await again.close()
    await house.close()
