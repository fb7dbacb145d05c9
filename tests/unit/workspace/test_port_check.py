"""Ports in a check-up: free, ours, or somebody else's."""

from __future__ import annotations

import pytest

from quintet.domain.checkup import Health
from quintet.rpc.http.binding import bind
from quintet.workspace.port_check import look_at_ports


@pytest.mark.req("first_minutes:F6")
def test_a_port_where_another_program_listens_warns_and_a_free_one_does_not() -> None:
    with bind("127.0.0.1", 0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        [row] = look_at_ports({"knp": port}, bind)
        assert (row.health, row.fix) == (Health.WARN, "quintet serve --knp-port 0")
        assert "another program" in row.detail
        [own] = look_at_ports({"knp": port}, bind, [port])
        assert own.health is Health.OK
    [free] = look_at_ports({"knp": port}, bind)
    assert (free.health, free.detail) == (Health.OK, "knp: free")
