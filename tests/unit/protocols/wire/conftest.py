"""Clients of one engine process, all closed at the end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.engine import House, Process
from tests.fakes.wire_peer import Peer

Connect = Callable[..., Peer]


@pytest.fixture
async def process(tmp_path: Path) -> AsyncIterator[Process]:
    house = House("memory", tmp_path / "home")
    yield await house.process()
    await house.close()


@pytest.fixture
async def connect(process: Process) -> AsyncIterator[Connect]:
    peers: list[Peer] = []

    def make(*given: Any, **options: Any) -> Peer:
        peers.append(Peer(options.pop("process", process), *given, **options))
        return peers[-1]

    yield make
    for peer in peers:
        await peer.close()
