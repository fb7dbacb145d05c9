"""Clients of one engine process, all closed at the end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.engine import House, Process
from tests.fakes.kward_peer import Peer

Connect = Callable[..., Peer]


@pytest.fixture
async def process(tmp_path: Path) -> AsyncIterator[Process]:
    house = House("memory", tmp_path / "home")
    yield await house.process()
    await house.close()


@pytest.fixture
async def connect(process: Process, tmp_path: Path) -> AsyncIterator[Connect]:
    peers: list[Peer] = []

    def make(*given: Any, **options: Any) -> Peer:
        peers.append(Peer(options.pop("process", process), options.pop("where", tmp_path), *given, **options))
        return peers[-1]

    yield make
    for peer in peers:
        await peer.close()
