"""One server for all tests of a module that only ask it questions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fakes.knp_project import Knp, knp_project
from tests.fakes.knp_server import Running, knp_server
from tests.faults.processes import write_home


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    home = write_home(tmp_path_factory.mktemp("knp") / "home", config='[server]\norigins = ["https://ui.example"]\n')
    with knp_server(home) as running:
        yield running


@pytest.fixture(scope="module")
def knp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Knp]:
    """A project, models that play scripts, and one server for the module."""
    with knp_project(tmp_path_factory.mktemp("knp")) as made:
        yield made
