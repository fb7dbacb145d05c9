"""Memory through the real executable: what a client adds reaches a model over HTTP, and the command line sees it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.fakes.kward_client import KwardClient
from tests.fakes.model_server import ModelServer
from tests.fakes.model_server.told import told
from tests.faults.processes import quintet, write_home


@pytest.mark.req("kward:133", "security:S51")
async def test_what_a_client_adds_is_told_to_the_model_and_forgotten_with_the_command(tmp_path: Path) -> None:
    async with ModelServer("scope: turn\ntext: hello") as server:
        config = f'default_model = "far/m"\n[providers.far]\nkind = "openai-chat"\nbase_url = "{server.url}"\n'
        home = write_home(tmp_path / "home", config=config)

        def talk() -> None:
            with KwardClient(home, tmp_path / "work") as client:
                client.ok("memory/enable")
                client.ok("memory/addCore", text="Always answer in rhyme")
                client.turn(client.ok("sessions/create")["id"])

        await asyncio.to_thread(talk)
        assert "- [core_001] Always answer in rhyme" in told(server.requests[-1].body).instructions
    paths = {"KWARD_CONFIG_PATH": str(tmp_path / "kward" / "config.json")}
    assert "Always answer in rhyme" in quintet("memory", "list", "--kward", home=home, **paths).out
    assert "Always answer" not in quintet("memory", "list", home=home, **paths).out
    assert quintet("memory", "forget", "core_001", "--kward", home=home, **paths).code == 0
    assert not any(b"in rhyme" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
