"""What has a secret's shape is masked however the text is cut into pieces, and nothing else waits for that."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintet.domain.model import ReasoningChunk, TextChunk
from quintet.protocols.kward.masking import MASK, MaskedText, masked
from tests.fakes.kward_peer import kinds, payloads
from tests.fakes.providers import Gate, GatedProvider, text
from tests.unit.protocols.kward.conftest import Connect

KEY = "sk-abcdefgh12345678"
WORDS = st.sampled_from(
    ["s", "k", "-", "sk-", "SK-", "b", "ea", "rer", "Bearer", "bearer ", " ", "\n", "x", "_", ".", "é", "1234567", KEY]
)


@pytest.mark.req("kward:116")
@given(st.lists(st.lists(WORDS, max_size=3).map("".join), max_size=8))
def test_the_pieces_of_a_text_say_what_the_whole_says_masked(pieces: list[str]) -> None:
    stream = MaskedText()
    said = "".join(stream.add(piece) for piece in pieces) + stream.release()
    assert said == masked("".join(pieces))


@pytest.mark.req("kward:116")
@pytest.mark.parametrize(
    "whole", [f"a {KEY}. b", f"{KEY} {KEY}", "x Bearer  abc.def/g= y", "ask-12345678", "sk-1234567"]
)
def test_a_text_cut_anywhere_is_masked_alike(whole: str) -> None:
    for one in range(len(whole) + 1):
        for two in range(one, len(whole) + 1):
            stream = MaskedText()
            said = [stream.add(piece) for piece in (whole[:one], whole[one:two], whole[two:])]
            assert "".join(said) + stream.release() == masked(whole), (one, two)


def test_only_what_may_begin_a_key_is_held_back() -> None:
    stream = MaskedText()
    for piece in ("plain words", " sks", " tasks", " Bearer", "  ", "(nothing) ", "be", "ar"):
        assert stream.add(piece) == piece
        assert not stream.holding
    assert stream.add(" use sk-abc") == " use "
    assert stream.holding
    assert stream.release() == "sk-abc"


def test_a_key_whose_beginning_was_let_go_still_has_its_rest_masked() -> None:
    stream = MaskedText()
    assert stream.add("use sk-abc") + stream.release() == "use sk-abc"
    assert stream.add("defgh") == MASK
    assert stream.add("ijk, so") == ", so"


@pytest.mark.req("kward:116")
async def test_a_secret_that_comes_in_pieces_is_told_nowhere(connect: Connect) -> None:
    thought = [ReasoningChunk(piece) for piece in ("it is ", "Bea", "rer", " tok", "en9", "9")]
    said = [TextChunk(piece) for piece in ("the key: s", "k-", "abcd", "efgh", "1234", "5678", ". An", "d s")]
    peer = connect(GatedProvider([*thought, *said]))
    session = await peer.session()
    events = await peer.turn(session["id"])
    whole = "the key: [REDACTED]. And s"
    assert "".join(p["delta"] for p in payloads(events, "reasoningDelta")) == "it is Bearer [REDACTED]"
    assert "".join(p["delta"] for p in payloads(events, "assistantDelta")) == whole
    assert payloads(events, "answer") == [{"content": whole}]
    assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
    assert kinds(events)[-3:] == ["assistantMessage", "answer", "turnFinished"]
    assert "efgh" not in str(peer.seen)
    again = await peer.ok("turns/events", turnId=events[0]["turnId"])
    assert again["events"] == events


async def test_what_is_held_back_is_let_go_though_nothing_follows(connect: Connect) -> None:
    gate = Gate()
    peer = connect(GatedProvider([*text("one s"), gate, *text("o")]))
    session = await peer.session()
    turn = await peer.start(session["id"])
    await gate.stopped()
    await peer.until(lambda m: m.get("method") == "turn/event" and m["params"]["payload"] == {"delta": "s"})
    gate.open()
    events = await peer.finished(turn["id"])
    assert [p["delta"] for p in payloads(events, "assistantDelta")] == ["one ", "s", "o"]
