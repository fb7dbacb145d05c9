"""When an attempt is repeated, how long that may take, and what is told when it is given up."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from quintet.domain.item import user_text
from quintet.domain.model import TextChunk
from quintet.providers.arrivals import AHEAD, Arrivals
from quintet.providers.attempts import Failure, Pace, Waits, failed, of_kind, of_status, retry_after
from quintet.providers.settings import ProviderKind
from tests.fakes.model_server import ModelServer
from tests.fakes.requests import all_chunks, request_of, text_in
from tests.fakes.waiting import soon, until
from tests.fakes.wires import WIRES, wire

NOW = datetime(2026, 3, 29, 0, 59, 50, tzinfo=UTC)
pytestmark = pytest.mark.req("reliability:R11")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": " 0 "}, 0.0),
        ({"retry-after": "Sun, 29 Mar 2026 01:00:20 GMT"}, 30.0),
        ({"retry-after": "Sun, 29 Mar 2026 03:00:20 +0200"}, 30.0),
        ({"retry-after": "Sun, 29 Mar 2026 00:00:00 GMT"}, 0.0),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, 365 * 86_400.0),
        ({"retry-after": "9" * 400}, 365 * 86_400.0),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "1e3"}, None),
        ({"retry-after": "²"}, None),
        ({"retry-after": "1.2.3"}, None),
        ({"retry-after": "Sun, 99 Mar 2026"}, None),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after-ms": "x", "retry-after": "7"}, 7.0),
    ],
)
def test_what_a_server_asks_us_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, NOW) == seconds


AGAIN = Failure("server", "it failed", again=True)


@pytest.mark.parametrize("retries", [0, 1, 3, 100])
def test_waits_end_with_the_retries_and_are_bounded_together(retries: int) -> None:
    pace = Pace(first_s=1.0, longest_s=30.0, together_s=120.0)
    waits = Waits(retries, pace)
    taken = []
    while (wait := waits.next(AGAIN)) is not None:
        taken.append(wait)
    assert len(taken) == retries
    assert waits.attempt == retries + 1
    assert sum(taken) <= 120.0 + 1e-9
    assert all(wait <= 30.0 * 1.25 for wait in taken)


def test_a_wait_that_does_not_fit_any_more_ends_it() -> None:
    waits = Waits(9, Pace())
    asked = Failure("rate_limit", "slow down", again=True, retry_after_s=50.0)
    assert [waits.next(asked) for _ in range(3)] == [50.0, 50.0, None]
    assert "come back in 50 seconds" in failed("far", asked, 3).line()


def test_what_will_not_pass_is_not_tried_again() -> None:
    assert Waits(3, Pace()).next(Failure("auth", "no", again=False, retry_after_s=1.0)) is None


@pytest.mark.parametrize(
    ("status", "body", "reason", "again"),
    [
        (400, '{"error": {"message": "maximum context length is 8192"}}', "too_long", False),
        (400, '{"error": {"message": "bad field"}}', "bad_request", False),
        (403, "", "auth", False),
        (404, "<html>gone</html>", "not_found", False),
        (418, "short and stout", "refused", False),
        (504, "[[{}]]", "server", True),
        (429, '{"error": "just text"}', "rate_limit", True),
        (500, '{"detail": ["a", 1]}', "server", True),
        (500, "\ud800", "server", True),
    ],
)
def test_a_status_has_a_meaning(status: int, body: str, reason: str, again: bool) -> None:
    failure = of_status(status, {}, body)
    assert (failure.reason, failure.again) == (reason, again)
    assert f"status {status}" in failure.words
    assert "<html>" not in failure.words
    assert "\n" not in failed("far", failure, 1).line()


LENGTH_REFUSED = [
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 130123 tokens.",
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "prompt is too long: 213462 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000",
    "This endpoint's maximum context length is 131072 tokens. However, you requested about 140000 tokens",
    "the request exceeds the available context size, try increasing it",
    "The number of tokens to keep from the initial prompt is greater than the context length.",
    "Invalid request: Your request exceeded model token limit: 131072",
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
    "Input is too long for requested model.",
    "Please reduce the length of the messages or completion.",
    "Range of input length should be [1, 98304]",
    "input length exceeds maximum context length",
]


@pytest.mark.parametrize("words", LENGTH_REFUSED)
@pytest.mark.parametrize("status", [400, 413, 500])
def test_a_refusal_for_length_is_known_in_the_words_of_each_server(status: int, words: str) -> None:
    body = msgspec.json.encode({"error": {"type": "invalid_request_error", "message": words}}).decode()
    for failure in (of_status(status, {}, body), of_kind("invalid_request_error", words), of_kind("400", words)):
        assert (failure.reason, failure.again) == ("too_long", False)
        assert words[:20] in failure.words


@pytest.mark.parametrize("named", [{"code": "context_length_exceeded"}, {"type": "exceed_context_size_error"}])
def test_a_refusal_for_length_is_known_by_its_name_alone(named: dict[str, str]) -> None:
    body = msgspec.json.encode({"error": {"message": "no", **named}}).decode()
    assert of_status(400, {}, body).reason == "too_long"


@pytest.mark.parametrize(
    "words", ["max_tokens is too large", "the tool input is not valid", "too many tokens a minute"]
)
def test_other_refusals_are_not_taken_for_one_of_length(words: str) -> None:
    assert of_status(400, {}, msgspec.json.encode({"error": {"message": words}}).decode()).reason == "bad_request"


@pytest.mark.parametrize(
    ("kind", "said", "reason", "again"),
    [
        ("overloaded_error", "busy", "overloaded", True),
        ("server_error", "", "server", True),
        ("502", "bad gateway", "server", True),
        ("401", "who are you", "auth", False),
        ("", "Rate limit reached", "rate_limit", True),
        ("invalid_request_error", "no", "invalid_request_error", False),
        ("insufficient_quota", "pay", "credit", False),
    ],
)
def test_an_error_in_the_stream_has_a_meaning(kind: str, said: str, reason: str, again: bool) -> None:
    failure = of_kind(kind, said)
    assert (failure.reason, failure.again) == (reason, again)


async def test_what_comes_in_many_pieces_is_taken_at_once_and_a_failure_comes_last() -> None:
    async def source():
        for _ in range(100):
            yield b"x"
        raise ConnectionError("gone")

    arrivals = Arrivals(source())
    assert await soon(arrivals.take()) == b"x" * 100
    with pytest.raises(ConnectionError):
        await soon(arrivals.take())
    await arrivals.close()


async def test_reading_ahead_has_a_bound() -> None:
    given = 0

    async def source():
        nonlocal given
        while given < 100:
            given += 1
            yield b"x" * 65_536

    arrivals = Arrivals(source())
    taken = len(await soon(arrivals.take()))
    assert taken <= AHEAD + 65_536
    await asyncio.sleep(0)
    assert given * 65_536 <= taken + 2 * AHEAD
    while piece := await soon(arrivals.take()):
        assert len(piece) <= AHEAD + 65_536
        taken += len(piece)
    assert taken == 100 * 65_536
    await arrivals.close()


@pytest.mark.parametrize("kind", WIRES, ids=str)
async def test_closing_the_answer_stops_the_model_and_leaves_nothing_running(kind: ProviderKind) -> None:
    async with ModelServer("text: one\n", faults=["stall"]) as server:
        provider = wire(server, kind)
        answer = provider.stream(request_of([user_text("go")]))
        assert await soon(anext(answer)) == TextChunk("one")
        await soon(answer.aclose())  # type: ignore[attr-defined]
        await until(lambda: server.open_connections == 0)
        await provider.close()
        assert not [t for t in asyncio.all_tasks() if "Arrivals" in str(t.get_coro())]


@pytest.mark.parametrize("kind", WIRES, ids=str)
async def test_many_answers_at_once_do_not_wait_for_each_other(kind: ProviderKind, tmp_path: Path) -> None:
    """The server goes on only when it has been asked by all."""
    many = 120
    async with ModelServer(f"text: one\nuntil: {tmp_path / 'go'}\ntext: two") as server:
        provider = wire(server, kind, idle_timeout_s=60.0)
        request = request_of([user_text("go")])
        answers = asyncio.gather(*(all_chunks(provider, request) for _ in range(many)))
        await until(lambda: len(server.requests) == many)
        (tmp_path / "go").touch()
        assert [text_in(chunks) for chunks in await soon(answers)] == ["onetwo"] * many
        await provider.close()


async def test_closing_ends_the_reading() -> None:
    ended = False

    async def source():
        nonlocal ended
        try:
            yield b"x"
            await asyncio.Event().wait()
        finally:
            ended = True

    arrivals = Arrivals(source())
    assert await soon(arrivals.take()) == b"x"
    await soon(arrivals.close())
    assert ended
