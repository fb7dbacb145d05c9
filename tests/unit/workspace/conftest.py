"""A history of files on a real home, and a directory for it to look at."""

from __future__ import annotations

import os

import pytest

from quintet.workspace.history import WorkspaceHistory
from tests.fakes.clock import SettableClock
from tests.unit.workspace.repositories import repository, write


@pytest.fixture
def clock():
    return SettableClock()


@pytest.fixture
def history(tmp_path, clock):
    (tmp_path / "home").mkdir(mode=0o700)
    return WorkspaceHistory(str(tmp_path / "home"), os.environ, clock)


@pytest.fixture(params=["git", "plain"])
def tree(request, tmp_path):
    """A directory with two files, in git and clean, or without git."""
    place = tmp_path / "tree"
    if request.param == "git":
        return repository(place)
    write(place, {"a.txt": "a\n", "src/b.txt": "b\n"})
    return place
