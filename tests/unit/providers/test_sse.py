"""Streams of events in any pieces: byte by byte, at random, with every line end, and the answers they carry."""

from __future__ import annotations

import json
import random

import pytest

from quintet.domain.item import user_text
from quintet.domain.model import Chunk, Finish, FinishChunk, ReasoningChunk, TextChunk, ToolInput, ToolStart
from quintet.providers.dialect import BrokenStream, ServerError
from quintet.providers.script import Say, parse_script
from quintet.providers.settings import ProviderKind
from quintet.providers.sse import EventParser, TooLong
from quintet.providers.table import dialect_of
from tests.fakes.model_server.speech import SPEECHES
from tests.fakes.requests import request_of
from tests.fakes.wires import WIRES

pytestmark = pytest.mark.req("reliability:R11")
SEEDS = range(25)


def events(*pieces: bytes) -> list[tuple[str, bytes]]:
    parser = EventParser()
    found = [event for piece in pieces for event in parser.feed(piece)]
    return found + parser.close()


def cut(data: bytes, seed: int) -> list[bytes]:
    chance = random.Random(seed)
    cuts = sorted(chance.choices(range(len(data) + 1), k=chance.randrange(1, 60)))
    return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]


STREAM = (
    ': hello\n\nevent: first\ndata: {"a": "ä🦊"}\n\ndata:no space\ndata\ndata:  two spaces\nid: 7\nretry: 5\n\n'
    "event: nothing\n\n:\n\ndata: last"
).encode()
EXPECTED = [("first", '{"a": "ä🦊"}'.encode()), ("", b"no space\n\n two spaces"), ("", b"last")]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"], ids=["plain", "BOM"])
def test_events_are_the_same_in_whatever_pieces_they_come(end: bytes, bom: bytes) -> None:
    data = bom + STREAM.replace(b"\n", end)
    assert events(data) == EXPECTED
    assert events(*(bytes([byte]) for byte in data)) == EXPECTED
    for seed in SEEDS:
        assert events(*cut(data, seed)) == EXPECTED, f"seed {seed}"


def test_a_byte_order_mark_belongs_to_nothing() -> None:
    data = b"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n"  # only the first is one
    assert events(data) == events(*(bytes([byte]) for byte in data)) == [("", b"a")]


def test_a_piece_of_nothing_changes_nothing() -> None:
    assert events(b"data: a\r", b"", b"\ndata: b\r\n\r\n") == [("", b"a\nb")]


def test_the_work_grows_with_the_length_of_a_line_and_not_with_its_square() -> None:
    """Counted, not timed: what is kept of an open line are its pieces, joined once."""
    parser = EventParser()
    for _ in range(10_000):
        assert parser.feed(b"data: x" if not parser._open else b"y" * 100) == []
    assert len(parser._open) == 10_000
    assert [len(data) for _, data in parser.feed(b"\n\n")] == [1 + 9_999 * 100]
    assert not parser._open


def test_a_line_of_ten_mebibytes_is_one_event_in_one_piece_and_in_many() -> None:
    text = b"x" * (10 * 1024 * 1024)
    data = b"data: " + text + b"\n\n"
    assert events(data) == [("", text)]
    assert events(*(data[place : place + 4096] for place in range(0, len(data), 4096))) == [("", text)]


@pytest.mark.parametrize("piece", [b"x" * 60, b"data: " + b"x" * 40 + b"\n"], ids=["one line", "many lines"])
def test_more_than_the_limit_is_refused_instead_of_kept(piece: bytes) -> None:
    parser = EventParser(limit=1000)
    with pytest.raises(TooLong):
        for _ in range(40):
            parser.feed(piece)


SCRIPT = """
think: Let me
think:  sée
text: "two\\nlines 🦊 "
text: and [a] <b> {c}
tool_call: read#c1 {"path": "ü.txt"}
tool_call: read#c2
tool_call_part: {"pa
tool_call_part: th": "b"}
usage: in=10 out=5 cached=2 reasoning=1
"""


def answer(kind: ProviderKind) -> bytes:
    """A whole answer of this wire, as the fake server says it."""
    made = next(made for end, made in SPEECHES.items() if end == dialect_of(kind).path)("m")
    frames = [made.begin()]
    for act in parse_script(SCRIPT).steps[0].acts:
        assert isinstance(act, Say)
        frames.append(made.say(act.chunk))
    return b"".join([*frames, *made.end()])


def chunks(kind: ProviderKind, *pieces: bytes) -> list[Chunk]:
    stream = EventParser()
    parser = dialect_of(kind).parser(request_of([user_text("go")]))
    found = [chunk for piece in pieces for name, data in stream.feed(piece) for chunk in parser.event(name, data)]
    found += [chunk for name, data in stream.close() for chunk in parser.event(name, data)]
    return found + list(parser.end())


@pytest.mark.parametrize("kind", WIRES, ids=str)
def test_an_answer_is_the_same_in_whatever_pieces_it_comes(kind: ProviderKind) -> None:
    data = answer(kind)
    whole = chunks(kind, data)
    assert len(whole) > 10
    assert "".join(c.text for c in whole if isinstance(c, TextChunk)) == "two\nlines 🦊 and [a] <b> {c}"
    assert chunks(kind, *(bytes([byte]) for byte in data)) == whole
    for seed in SEEDS:
        assert chunks(kind, *cut(data, seed)) == whole, f"seed {seed}"


@pytest.mark.parametrize("chunk", [TextChunk, ReasoningChunk, ToolInput], ids=["words", "thoughts", "a call's input"])
@pytest.mark.parametrize("kind", WIRES, ids=str)
def test_a_delta_of_ten_mebibytes_is_the_same_in_whatever_pieces_it_comes(
    kind: ProviderKind, chunk: type[TextChunk | ReasoningChunk | ToolInput]
) -> None:
    """Most of it two and four bytes a letter, so that nearly every cut goes through one."""
    text = "é🦊x" * (10 * 1024 * 1024 // 7)
    made = SPEECHES[dialect_of(kind).path]("m")
    frames = [made.begin()]
    if chunk is ToolInput:
        frames += [made.say(ToolStart("c1", "read")), made.say(ToolInput("c1", text))]
    else:
        frames.append(made.say(chunk(text)))  # type: ignore[arg-type]
    made.say(FinishChunk(Finish.STOP))
    data = b"".join([*frames, *made.end()])
    whole = chunks(kind, data)
    assert "".join(c.text for c in whole if isinstance(c, chunk)) == text
    for seed in range(3):
        assert chunks(kind, *cut(data, seed)) == whole, f"seed {seed}"
    assert chunks(kind, *(data[place : place + 1021] for place in range(0, len(data), 1021))) == whole


@pytest.mark.parametrize("kind", WIRES, ids=str)
def test_fields_of_a_wrong_type_never_break_more_than_the_answer(kind: ProviderKind) -> None:
    """Each value of each event replaced by something else: chunks, or an error that is known to be the server's."""
    allowed = (BrokenStream, ServerError, AttributeError, TypeError, LookupError, ValueError)
    tried = 0
    for number, (name, data) in enumerate(events(answer(kind))):
        if data == b"[DONE]":
            continue
        for changed in _changed(json.loads(data)):
            parser = dialect_of(kind).parser(request_of([user_text("go")]))
            for before_name, before in events(answer(kind))[:number]:
                parser.event(before_name, before)
            tried += 1
            try:
                made = [*parser.event(name, json.dumps(changed).encode()), *parser.end()]
            except allowed:
                continue
            assert all(isinstance(c.text, str) for c in made if isinstance(c, TextChunk))
    assert tried > 300


def _changed(value: object) -> list[object]:
    """The value with each of its parts replaced, one at a time."""
    others: list[object] = [None, 7, "x", [], {}, ["x"], {"x": 1}, True, -1.5]
    if isinstance(value, dict):
        others += [value | {key: inner} for key, old in value.items() for inner in _changed(old)]
    elif isinstance(value, list):
        others += [[*value[:n], inner, *value[n + 1 :]] for n, old in enumerate(value) for inner in _changed(old)]
    return others
