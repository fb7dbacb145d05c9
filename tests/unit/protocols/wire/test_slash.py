"""Slash commands: listed, carried out, and unknown ones told; the model is asked only where it shall be."""

from __future__ import annotations

import pytest

from quintet.domain.errors import ProviderFailed
from quintet.domain.item import UserMessage, text_of
from quintet.engine.commands import INIT, Commands, Deed, Named
from quintet.protocols.wire.events import COMPACTED
from quintet.protocols.wire.slash import CLEARED, EMPTY
from tests.fakes.providers import GatedProvider, text
from tests.fakes.wire_client import kinds, payloads, spoken
from tests.fakes.wire_peer import Message
from tests.unit.protocols.wire.conftest import Connect

FINISHED = {"status": "finished"}


def given(provider: GatedProvider, call: int = -1) -> list[str]:
    """What the model was told by people in one of its calls."""
    return [text_of(item.body) for item in provider.requests[call].items if isinstance(item.body, UserMessage)]


@pytest.mark.req("wire:S28", "wire:S01")
async def test_commands_are_listed_in_the_greeting_with_lists_of_aliases(connect: Connect) -> None:
    greeting = await connect().initialize()
    listed = {row["name"]: row for row in greeting["result"]["slash_commands"]}
    assert {"init", "compact", "clear", "plan", "help"} <= set(listed)
    assert listed["clear"]["aliases"] == ["reset"]
    assert all(set(row) == {"name", "description", "aliases"} for row in listed.values())
    assert all(isinstance(row["aliases"], list) and row["description"] for row in listed.values())


@pytest.mark.req("wire:S28")
async def test_an_unknown_command_is_told_without_asking_the_model(connect: Connect) -> None:
    provider = GatedProvider()
    heard = await connect(provider).prompt("/nope at all")
    assert kinds(heard) == ["TurnBegin", "ContentPart", "TurnEnd", "reply"]
    assert payloads(heard, "TurnBegin") == [{"user_input": "/nope at all"}]
    assert spoken(heard) == 'Unknown slash command "/nope".'
    assert heard[-1]["result"] == FINISHED
    assert provider.requests == []


@pytest.mark.req("wire:S28")
async def test_a_path_at_the_head_of_a_text_is_no_command(connect: Connect) -> None:
    provider = GatedProvider(text("yes"))
    heard = await connect(provider).prompt("/usr/bin/env is a path")
    assert "StepBegin" in kinds(heard)
    assert given(provider) == ["/usr/bin/env is a path"]


@pytest.mark.req("wire:S28")
@pytest.mark.parametrize("name", ["clear", "reset"])
async def test_clear_lets_the_model_begin_afresh(connect: Connect, name: str) -> None:
    provider = GatedProvider(text("one"), text("two"))
    peer = connect(provider, known={"context_window": 1000})
    await peer.prompt("remember me")
    heard = await peer.prompt(f"/{name}")
    assert kinds(heard) == ["TurnBegin", "ContentPart", "StatusUpdate", "TurnEnd", "reply"]
    assert spoken(heard) == CLEARED
    (status,) = payloads(heard, "StatusUpdate")
    assert (status["context_usage"], status["context_tokens"], status["max_context_tokens"]) == (0.0, 0, 1000)
    await peer.prompt("who?")
    assert given(provider) == ["who?"]
    told = await peer.call("replay")
    assert [p["user_input"] for p in payloads(told, "TurnBegin")] == ["remember me", "/clear", "who?"]
    assert spoken(told) == f"one{CLEARED}two"


@pytest.mark.req("wire:S28")
async def test_compact_tells_its_beginning_and_end_and_no_step(connect: Connect) -> None:
    provider = GatedProvider(text("a long answer " * 200), text("the summary"), text("two"))
    peer = connect(provider, known={"context_window": 100_000})
    await peer.prompt("remember me")
    heard = await peer.prompt("/compact keep the numbers")
    assert kinds(heard) == [
        *("TurnBegin", "CompactionBegin", "CompactionEnd", "ContentPart", "StatusUpdate", "TurnEnd", "reply")
    ]
    assert spoken(heard) == COMPACTED
    assert heard[-1]["result"] == FINISHED
    (status,) = payloads(heard, "StatusUpdate")
    assert status["context_tokens"] > 0
    assert status["max_context_tokens"] == 100_000
    assert status["context_usage"] == status["context_tokens"] / 100_000
    assert "keep the numbers" in str(provider.requests[1])
    told = (await peer.call("replay"))[-7:]
    assert kinds(told) == kinds(heard)
    assert payloads(told, "TurnBegin") == [{"user_input": "/compact"}]
    assert payloads(told, "StatusUpdate") == [status]
    await peer.prompt("go on")
    assert "the summary" in str(provider.requests[2].items)


@pytest.mark.req("wire:S28")
async def test_nothing_to_compact_is_said_and_not_an_error(connect: Connect) -> None:
    provider = GatedProvider()
    heard = await connect(provider).prompt("/compact")
    assert spoken(heard) == EMPTY
    assert heard[-1]["result"] == FINISHED
    assert provider.requests == []


async def test_what_cannot_be_compacted_again_is_said_in_words(connect: Connect) -> None:
    provider = GatedProvider(text("hello"), text("the summary"))
    peer = connect(provider)
    await peer.prompt("hi")
    await peer.prompt("/compact")
    heard = await peer.prompt("/compact")
    assert kinds(heard) == ["TurnBegin", "ContentPart", "TurnEnd", "reply"]
    assert "nothing to compact" in spoken(heard)
    assert heard[-1]["result"] == FINISHED


@pytest.mark.req("wire:S28")
async def test_a_few_words_are_told_as_compacted_and_no_model_is_asked(connect: Connect) -> None:
    provider = GatedProvider(text("hello"), text("two"))
    peer = connect(provider, known={"context_window": 100_000}, keep_least=250)
    await peer.prompt("hi")
    heard = await peer.prompt("/compact")
    assert kinds(heard) == [
        *("TurnBegin", "CompactionBegin", "CompactionEnd", "ContentPart", "StatusUpdate", "TurnEnd", "reply")
    ]
    assert spoken(heard) == COMPACTED
    assert heard[-1]["result"] == FINISHED
    (status,) = payloads(heard, "StatusUpdate")
    assert (status["context_usage"], status["context_tokens"], status["max_context_tokens"]) == (1e-05, 1, 100_000)
    told = (await peer.call("replay"))[-7:]
    assert kinds(told) == kinds(heard)
    assert payloads(told, "StatusUpdate") == [status]
    await peer.prompt("go on")
    assert given(provider) == ["hi", "go on"]


@pytest.mark.req("wire:S28", "wire:S46")
async def test_a_compaction_the_model_fails_at_is_an_error_and_the_next_prompt_works(connect: Connect) -> None:
    peer = connect(GatedProvider(text("one"), [ProviderFailed("broken", reason="server")], text("two")))
    await peer.prompt("hi")
    heard = await peer.prompt("/compact")
    assert heard[-1]["error"]["code"] == -32003
    assert (await peer.prompt("again"))[-1]["result"] == FINISHED


@pytest.mark.req("wire:S28")
async def test_plan_is_switched_and_the_client_told(connect: Connect) -> None:
    peer = connect(GatedProvider())

    def mode(heard: list[Message]) -> list[bool]:
        return [row["plan_mode"] for row in payloads(heard, "StatusUpdate")]

    assert mode(await peer.prompt("/plan")) == [True]
    assert mode(await peer.prompt("/plan on")) == [True]
    assert mode(await peer.prompt("/plan")) == [False]
    assert mode(await peer.prompt("/plan sideways")) == []
    assert not (await peer.process.threads.get(peer.thread)).thread.settings.plan_mode


@pytest.mark.req("wire:S28")
async def test_help_lists_what_there_is(connect: Connect) -> None:
    heard = await connect(GatedProvider()).prompt([{"type": "text", "text": "/help"}])
    assert "/compact" in spoken(heard)
    assert payloads(heard, "TurnBegin")[0]["user_input"] == [{"type": "text", "text": "/help"}]


@pytest.mark.req("wire:S28")
async def test_init_asks_the_model_and_shows_what_the_person_typed(connect: Connect) -> None:
    provider = GatedProvider(text("written"))
    heard = await connect(provider).prompt("/init")
    assert payloads(heard, "TurnBegin") == [{"user_input": "/init"}]
    assert kinds(heard)[1] == "StepBegin"
    assert given(provider) == [INIT]


@pytest.mark.req("wire:S28")
async def test_a_command_that_comes_and_goes_is_asked_for_its_words_when_it_is_called(connect: Connect) -> None:
    async def words(more: str) -> str:
        return f"the skill, {more}"

    skill = Named("skill:review", "Reviews", Deed.ASK, input=words)
    taken = Named("clear", "not this one", Deed.ASK, input=words)
    provider = GatedProvider(text("done"))
    peer = connect(provider, house={"commands": Commands(lambda: (skill, taken))})
    names = [row["name"] for row in (await peer.initialize())["result"]["slash_commands"]]
    assert names.count("clear") == 1
    assert names[-1] == "skill:review"
    await peer.prompt("/skill:review the door")
    assert given(provider) == ["the skill, the door"]
