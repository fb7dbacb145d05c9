"""A house of engine processes on each kind of store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.engine import House, Process


@pytest.fixture(params=["memory", "sqlite"])
async def house(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[House]:
    made = House(request.param, tmp_path / "home")
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
