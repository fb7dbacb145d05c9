"""What model servers do wrong, through real turns: one end each, what was said is kept, no wait without bound."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from quintet.domain.errors import ProviderFailed
from quintet.domain.item import user_text
from quintet.domain.model import Finish, FinishChunk, RetryChunk, Usage, UsageChunk
from quintet.domain.turn import TurnState
from quintet.providers.settings import ProviderKind
from tests.fakes.engine import House, Process
from tests.fakes.model_server import ModelServer
from tests.fakes.requests import all_chunks, calls_in, request_of, text_in
from tests.fakes.tools import FakeTool
from tests.fakes.waiting import soon
from tests.fakes.wires import KEY, NAMED, RETRIES, WIRES, wire

SCRIPT = "text: Höre \ntext: 🦊 there\nusage: in=10 out=5 cached=2 reasoning=1"
SAID = "Höre 🦊 there"
EVERY = RETRIES + 1
pytestmark = pytest.mark.req("reliability:R11")


@pytest.fixture(params=WIRES, ids=str)
def kind(request: pytest.FixtureRequest) -> ProviderKind:
    return request.param


@pytest.fixture
async def lone(tmp_path: Path) -> AsyncIterator[Process]:
    house = House("memory", tmp_path)
    yield await house.process()
    await house.close()


async def test_a_wait_that_is_asked_for_is_kept(kind: ProviderKind) -> None:
    async with ModelServer(SCRIPT, faults=["429-seconds=0.02", "429-date=1.5 at 2"]) as server:
        provider = wire(server, kind)
        chunks = await soon(all_chunks(provider, request_of([user_text("go")])))
        await provider.close()
    asked, dated = (c.wait_s for c in chunks if isinstance(c, RetryChunk))
    assert asked == 0.02
    assert 0 <= dated <= 1.5
    assert text_in(chunks) == SAID


@pytest.mark.parametrize(
    ("fault", "when"), [("429-absurd", "365 days"), ("429-date=7000", "117 minutes"), ("429-seconds=121", "3 minutes")]
)
async def test_a_wait_that_is_too_long_ends_at_once_and_says_when_to_come_back(
    kind: ProviderKind, fault: str, when: str
) -> None:
    async with ModelServer(SCRIPT, faults=[f"{fault} times 99"]) as server:
        provider = wire(server, kind)
        with pytest.raises(ProviderFailed) as failed:
            await soon(all_chunks(provider, request_of([user_text("go")])))
        await provider.close()
    assert len(server.requests) == 1
    assert f"come back in {when}" in failed.value.line()


async def test_usage_is_as_the_server_counts_and_missing_usage_is_unknown(kind: ProviderKind) -> None:
    async with ModelServer(SCRIPT, faults=["no-usage"]) as server:
        provider = wire(server, kind)
        without = await soon(all_chunks(provider, request_of([user_text("go")])))
        counted = await soon(all_chunks(provider, request_of([user_text("go")])))
        await provider.close()
    assert not [c for c in without if isinstance(c, UsageChunk)]
    thought = None if kind is ProviderKind.ANTHROPIC else 1  # that wire does not count them apart
    assert [c.usage for c in counted if isinstance(c, UsageChunk)] == [Usage(10, 5, 2, thought)]


@pytest.mark.parametrize(
    ("kind", "fault"),
    # The third wire says how an answer ended only in its very last event.
    [(ProviderKind.OPENAI_CHAT, "break-late"), (ProviderKind.ANTHROPIC, "break-late"), *((k, "stay") for k in WIRES)],
    ids=str,
)
async def test_an_answer_that_is_whole_stays_whole_whatever_the_connection_does(kind: ProviderKind, fault: str) -> None:
    async with ModelServer(SCRIPT, faults=[fault]) as server:
        provider = wire(server, kind, idle_timeout_s=600.0)  # nobody waits for an end that has been told
        chunks = await soon(all_chunks(provider, request_of([user_text("go")])))
        await provider.close()
    assert chunks[-1] == FinishChunk(Finish.STOP, NAMED[kind])
    assert text_in(chunks) == SAID


@pytest.mark.parametrize(
    ("script", "requests", "said"),
    [("text: Hi <tool", 1, "Hi <tool"), ('text: {"name": "re', EVERY, "")],
    ids=["behind words", "nothing shown yet"],
)
async def test_words_that_were_held_back_are_not_lost_with_the_connection(
    script: str, requests: int, said: str
) -> None:
    async with ModelServer(script, faults=["close times 99"]) as server:
        provider = wire(server, ProviderKind.OPENAI_CHAT)
        told = []
        with pytest.raises(ProviderFailed):
            async for chunk in provider.stream(request_of([user_text("go")])):
                told.append(chunk)
        await provider.close()
    assert text_in(told) == said
    assert len(server.requests) == requests


@pytest.mark.parametrize(
    ("code", "requests"), [("overloaded_error", EVERY), ("rate_limit_exceeded", EVERY), ("invalid_request", 1)]
)
async def test_an_error_inside_the_stream_is_tried_again_if_it_may_pass(
    kind: ProviderKind, code: str, requests: int
) -> None:
    async with ModelServer(f"error: {code} not today") as server:
        provider = wire(server, kind)
        with pytest.raises(ProviderFailed, match="not today"):
            await soon(all_chunks(provider, request_of([user_text("go")])))
        await provider.close()
    assert len(server.requests) == requests


async def test_a_call_that_was_cut_off_is_never_made(lone: Process, kind: ProviderKind) -> None:
    tool = FakeTool("look")
    async with ModelServer('tool_call: look {"a": 1}', faults=["close"]) as server:
        provider = wire(server, kind)
        turn = await lone.run(await lone.thread(), provider, [tool])
        await provider.close()
    assert turn.state is TurnState.FAILED
    assert tool.count == 0


async def test_nothing_of_an_answer_is_said_twice(kind: ProviderKind) -> None:
    async with ModelServer(SCRIPT, faults=["reset"]) as server:
        provider = wire(server, kind)
        said = []
        with pytest.raises(ProviderFailed):
            async for chunk in provider.stream(request_of([user_text("go")])):
                said.append(chunk)
        await provider.close()
    assert text_in(said) == SAID
    assert len(server.requests) == 1


async def test_nobody_listening_is_told_in_one_line(kind: ProviderKind) -> None:
    server = await ModelServer().start()
    url = server.url
    await server.close()
    provider = wire(url, kind)
    with pytest.raises(ProviderFailed, match="after 3 attempts: it cannot be reached") as failed:
        await soon(all_chunks(provider, request_of([user_text("go")])))
    await provider.close()
    assert "\n" not in failed.value.line()


async def test_a_key_that_the_server_quotes_is_masked(kind: ProviderKind) -> None:
    async with ModelServer(faults=["echo"]) as server:
        provider = wire(server, kind)
        with pytest.raises(ProviderFailed, match=r"the key \[redacted\] is wrong") as failed:
            await soon(all_chunks(provider, request_of([user_text("go")])))
        await provider.close()
    assert KEY in str(server.requests[0].headers)
    assert KEY not in str(failed.value.info())


async def test_a_server_that_does_not_stream_is_understood_all_the_same() -> None:
    async with ModelServer(faults=["whole"]) as server:
        provider = wire(server, ProviderKind.OPENAI_CHAT)
        chunks = await soon(all_chunks(provider, request_of([user_text("go")])))
        await provider.close()
    assert text_in(chunks) == "all at\nonce"
    assert chunks[-1] == FinishChunk(Finish.STOP)


async def test_calls_in_parallel_come_with_their_own_input(kind: ProviderKind) -> None:
    script = 'tool_call: read#a {"path": "x"}\ntool_call: read#b\ntool_call_part: {"pa\ntool_call_part: th": "y"}'
    async with ModelServer(script) as server:
        provider = wire(server, kind)
        chunks = await soon(all_chunks(provider, request_of([user_text("go")])))
        await provider.close()
    assert calls_in(chunks) == [("a", "read", '{"path": "x"}'), ("b", "read", '{"path": "y"}')]
    assert chunks[-1] == FinishChunk(Finish.TOOL_CALLS, NAMED[kind])
