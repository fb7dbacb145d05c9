"""Where a memory speaks to the model: one place in the prompt, through the whole app and real HTTP, in each wire."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from quintet.app import App
from quintet.config import load_config
from quintet.domain.item import TextPart
from quintet.domain.ports import MemoryHook
from quintet.domain.principal import local
from quintet.domain.thread import ThreadSettings
from quintet.domain.turn import Mode, TurnState
from quintet.journal.opening import open_journal
from quintet.providers.settings import ProviderKind
from quintet.workspace import surroundings
from tests.fakes.model_server import ModelServer
from tests.fakes.model_server.told import told
from tests.fakes.waiting import soon
from tests.fakes.wires import WIRES
from tests.faults.processes import write_home

ME = local("test")
HEAD = "# What you remember\n"
LEARNT = "The fox is called Reinhard."


class Memory:
    """A store for tests: remembers what it is told, and where it was asked for it."""

    def __init__(self, recall: Callable[[], Awaitable[str]] | None = None) -> None:
        self.words: list[str] = []
        self.asked: list[str] = []
        self._recall = recall

    async def recall(self, cwd: str) -> str:
        self.asked.append(cwd)
        return await self._recall() if self._recall else "\n".join(f"- {words}" for words in self.words)


class Place:
    """A project and a home whose model is behind this server; each turn is one of a process of its own."""

    def __init__(self, directory: Path, server: ModelServer, kind: ProviderKind) -> None:
        config = f'default_model = "far/m"\n[providers.far]\nkind = "{kind}"\nbase_url = "{server.url}"\n'
        self.home = write_home(directory / "home", config=config)
        self.project = directory / "project"
        self.project.mkdir()
        (self.project / "AGENTS.md").write_text("Mind the fox.\n")
        self._server = server

    async def told(self, memory: MemoryHook | None) -> str:
        """The instructions that a new thread's model gets."""
        journal = await open_journal(self.home, protocol="test")
        app = App(self.home, load_config(str(self.home)), journal, memory=memory)
        thread = (await app.threads.create(ThreadSettings(str(self.project)))).id
        started = await app.turns.start(thread, (TextPart("go"),), app.starter(ME, mode=Mode.READ_ONLY))
        assert (await soon(app.turns.wait(started.turn.id))).state is TurnState.DONE
        await app.close()
        return told(self._server.requests[-1].body).instructions


@pytest.mark.req("models:X9")
@pytest.mark.parametrize("kind", WIRES, ids=str)
async def test_what_a_memory_recalls_stands_in_one_place_and_changes_nothing_before_it(
    tmp_path: Path, kind: ProviderKind
) -> None:
    memory = Memory()
    async with ModelServer("scope: turn\ntext: hello") as server:
        place = Place(tmp_path, server, kind)
        without, empty = await place.told(None), await place.told(memory)
        memory.words.append(LEARNT)
        first, second = await place.told(memory), await place.told(memory)
        memory.words.append("It likes grapes.")
        more = await place.told(memory)
    assert without == empty
    assert HEAD not in without
    assert first == second  # byte by byte, in another process too
    assert first.count(HEAD) == 1
    assert first.partition(HEAD)[2].startswith(f"- {LEARNT}")
    assert "Mind the fox." in first.partition(HEAD)[0]
    assert without.startswith(first.partition(HEAD)[0].rstrip())
    assert more.startswith(first.partition(LEARNT)[0] + LEARNT)
    assert set(memory.asked) == {str(place.project)}


@pytest.mark.req("models:X9")
async def test_a_thread_keeps_its_prefix_while_nothing_new_was_learnt(tmp_path: Path) -> None:
    memory = Memory()
    memory.words.append(LEARNT)
    async with ModelServer("scope: turn\ntool_call: list {}\n---\ntext: hello") as server:
        place = Place(tmp_path, server, ProviderKind.OPENAI_CHAT)
        await place.told(memory)
        first, second = (json.dumps(request.body["messages"]) for request in server.requests)
    assert len(memory.asked) == 1  # once a turn, not once a step
    assert second.startswith(first[:-1])


async def _fails() -> str:
    raise OSError("the disk is gone")


async def _never_ends() -> str:
    await asyncio.Event().wait()
    return ""


@pytest.mark.req("models:X9")
@pytest.mark.parametrize(
    ("recall", "why"),
    [(_fails, "the disk is gone"), (_never_ends, "TimeoutError")],
    ids=["fails", "does not answer"],
)
async def test_a_memory_that_fails_is_said_to_be_missing_and_the_turn_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recall: Callable[[], Awaitable[str]], why: str
) -> None:
    monkeypatch.setattr(surroundings, "RECALL_S", 0.05)
    async with ModelServer() as server:
        place = Place(tmp_path, server, ProviderKind.OPENAI_CHAT)
        instructions = await place.told(Memory(recall))
    assert HEAD not in instructions
    assert "what you remember: it could not be read this time" in instructions
    assert f"The memory could not be read: {why}" in (place.home / "quintet.log").read_text()
