"""Where a memory speaks to the model: one place in the prompt, through the whole app and real HTTP, in each wire."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from quintet.app import App
from quintet.config import load_config
from quintet.domain.item import TextPart
from quintet.domain.principal import local
from quintet.domain.thread import ThreadSettings
from quintet.domain.turn import Mode, TurnState
from quintet.journal.opening import open_journal
from quintet.providers.settings import ProviderKind
from tests.fakes.model_server import ModelServer
from tests.fakes.model_server.told import told
from tests.fakes.waiting import soon
from tests.fakes.wires import WIRES
from tests.faults.processes import write_home

ME = local("test")
HEAD = "# What you remember\n"
LEARNT = "The fox is called Reinhard."


class Place:
    """A project and a home whose model is behind this server; each turn is one of a process of its own."""

    def __init__(self, directory: Path, server: ModelServer, kind: ProviderKind) -> None:
        config = f'default_model = "far/m"\n[providers.far]\nkind = "{kind}"\nbase_url = "{server.url}"\n'
        self.home = write_home(directory / "home", config=config)
        self.project = directory / "project"
        self.project.mkdir()
        (self.project / "AGENTS.md").write_text("Mind the fox.\n")
        self._server = server

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[App]:
        journal = await open_journal(self.home, protocol="test")
        app = App(self.home, load_config(str(self.home)), journal)
        try:
            yield app
        finally:
            await app.close()

    async def remember(self, *texts: str) -> None:
        async with self.opened() as app:
            await app.minds.of().enable(on=True)
            for text in texts:
                await app.minds.of().add(text)

    async def told(self, *, headless: bool = False) -> str:
        """The instructions that a new thread's model gets."""
        async with self.opened() as app:
            return await self._told(app, headless=headless)

    async def _told(self, app: App, *, headless: bool) -> str:
        thread = (await app.threads.create(ThreadSettings(str(self.project)))).id
        starter = app.starter(ME, mode=Mode.READ_ONLY, remembers=not headless)
        started = await app.turns.start(thread, (TextPart("go"),), starter)
        assert (await soon(app.turns.wait(started.turn.id))).state is TurnState.DONE
        return told(self._server.requests[-1].body).instructions


@pytest.mark.req("models:X9")
@pytest.mark.parametrize("kind", WIRES, ids=str)
async def test_what_a_memory_recalls_stands_in_one_place_and_changes_nothing_before_it(
    tmp_path: Path, kind: ProviderKind
) -> None:
    async with ModelServer("scope: turn\ntext: hello") as server:
        place = Place(tmp_path, server, kind)
        off = await place.told()
        await place.remember()
        empty = await place.told()
        await place.remember(LEARNT)
        first, second, headless = await place.told(), await place.told(), await place.told(headless=True)
        await place.remember("It likes grapes.")
        more = await place.told()
    assert off == empty == headless
    assert HEAD not in off
    assert first == second  # byte by byte, in another process too
    assert first.startswith(f"{off}\n\n{HEAD}")
    assert "Mind the fox." in off
    assert LEARNT in first
    assert more == f"{first}\n- [soft_002] It likes grapes."


@pytest.mark.req("models:X9")
async def test_a_thread_keeps_its_prefix_while_nothing_new_was_learnt(tmp_path: Path) -> None:
    async with ModelServer("scope: turn\ntool_call: list {}\n---\ntext: hello") as server:
        place = Place(tmp_path, server, ProviderKind.OPENAI_CHAT)
        await place.remember(LEARNT)
        await place.told()
        first, second = (json.dumps(request.body["messages"]) for request in server.requests)
    assert LEARNT in first
    assert second.startswith(first[:-1])


@pytest.mark.req("models:X9")
async def test_a_memory_that_fails_is_said_to_be_missing_and_the_turn_goes_on(tmp_path: Path) -> None:
    async with ModelServer() as server:
        place = Place(tmp_path, server, ProviderKind.OPENAI_CHAT)
        await place.remember(LEARNT)
        core = place.home / "profiles" / "default" / "memory" / "core.json"
        core.write_text("{ no")
        instructions = await place.told()
    assert HEAD not in instructions
    assert instructions.endswith("- what you remember: it could not be read this time")
    log = (place.home / "quintet.log").read_text()
    assert f"The memory could not be read: The memory file {core} is not valid JSON" in log
