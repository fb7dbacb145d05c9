"""A house of engine processes on each kind of store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.engine import House, Process
from tests.fakes.memory_disk import in_memory


@pytest.fixture(params=["memory", "sqlite"])
async def house(request: pytest.FixtureRequest) -> AsyncIterator[House]:
    """What its journal syncs need not wait for a disk, of which nothing here is told."""
    with in_memory() as place:
        made = House(request.param, place / "home")
        yield made
        await made.close()


@pytest.fixture
async def one(house: House) -> Process:
    return await house.process()


@pytest.fixture
async def lone(tmp_path: Path) -> AsyncIterator[Process]:
    """One process in memory, for rules that do not depend on the store."""
    made = House("memory", tmp_path)
    yield await made.process()
    await made.close()
