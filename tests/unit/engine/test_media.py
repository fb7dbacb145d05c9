"""Sound and moving pictures in a thread: given, sent by a model among its words, kept, copied, found after a crash."""

from __future__ import annotations

import pytest

from quintet.domain.event import ItemAdded, MediaDelta, TextDelta
from quintet.domain.item import AssistantMessage, MediaKind, MediaPart, TextPart, UserMessage
from quintet.domain.model import MediaChunk, RetryChunk, TextChunk
from tests.fakes.engine import House, Process
from tests.fakes.providers import Gate, GatedProvider, text
from tests.fakes.waiting import soon

CLIP = MediaPart(MediaKind.VIDEO, "data:video/mp4;base64,AAAA", label="v")
SOUND = MediaPart(MediaKind.AUDIO, "data:audio/wav;base64,AAAA")
NAMED = "[a video, video/mp4, 3 bytes]"


async def test_what_was_given_is_what_the_model_gets_also_in_a_copy_of_the_thread(one: Process) -> None:
    given = UserMessage((TextPart("see and hear"), CLIP, SOUND))
    copy = await one.threads.fork((await one.put("", given)).id)
    model = GatedProvider(text("seen"))
    await one.run(copy.id, model)
    assert model.requests[0].items[0].body == given


@pytest.mark.parametrize("restarts", [True, False])
async def test_what_a_model_sends_stands_between_its_words_live_and_kept(one: Process, restarts: bool) -> None:
    thread = await one.thread()
    model = GatedProvider([*text("before"), MediaChunk(CLIP), *text("af", "ter")], text("more"))
    await one.run(thread, model, restarts=restarts)
    deltas = [e.payload for e in await one.events(thread) if isinstance(e.payload, TextDelta | MediaDelta)]
    assert [d.part if isinstance(d, MediaDelta) else d.text for d in deltas] == ["before", CLIP, "af", "ter"]
    said = await one.bodies(thread, AssistantMessage)
    assert said == [AssistantMessage("before"), AssistantMessage(NAMED, sent=CLIP), AssistantMessage("after")]
    items = {e.payload.item.id for e in await one.events(thread) if isinstance(e.payload, ItemAdded)}
    assert {d.item for d in deltas} < items
    await one.run(thread, model)
    assert [i.body for i in model.requests[1].items][2] == AssistantMessage(NAMED, sent=CLIP)


async def test_of_an_answer_that_begins_anew_nothing_is_kept_twice(one: Process) -> None:
    thread = await one.thread()
    again = RetryChunk(2, 0.0, "broke off")
    await one.run(thread, GatedProvider([MediaChunk(CLIP), again, MediaChunk(CLIP), *text("x")]), restarts=True)
    assert [body.sent for body in await one.bodies(thread, AssistantMessage)] == [CLIP, None]


async def test_a_secret_in_what_a_model_sends_is_masked_before_anybody_hears_it(house: House) -> None:
    one = await house.process(secrets=["correct-horse-battery"])
    thread = await one.thread()
    leak = MediaPart(MediaKind.IMAGE, "https://h.example/?key=correct-horse-battery")
    await one.run(thread, GatedProvider([MediaChunk(leak)]))
    told = [e.payload.part.url for e in await one.events(thread) if isinstance(e.payload, MediaDelta)]
    kept = await one.bodies(thread, AssistantMessage)
    assert told == [kept[0].sent.url] == ["https://h.example/?key=[redacted]"]
    assert "horse" not in kept[0].text


async def test_what_a_model_had_sent_is_there_after_a_crash(house: House) -> None:
    here, there = await house.process(), await house.process()
    thread, gate = await here.thread(), Gate()
    await here.start(thread, GatedProvider([*text("before"), MediaChunk(CLIP), TextChunk("af"), gate]), restarts=True)
    await gate.stopped()
    await here.seen(lambda e: isinstance(e.payload, TextDelta) and e.payload.text == "af", thread)
    await here.die()
    await soon(there.journal.recover(thread))
    assert await there.bodies(thread, AssistantMessage) == [
        AssistantMessage("before", partial=True),
        AssistantMessage(NAMED, sent=CLIP),
        AssistantMessage("af", partial=True),
    ]
