"""The access log: lines together and soon, bounded on disk and in memory, and never a reason to fail."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from quintet.rpc.http import access
from quintet.rpc.http.access import AccessLog


def note(log: AccessLog, route: str = "/a") -> None:
    log.line(face="knp", caller="holder", verb="GET", route=route, status=200, peer="127.0.0.1", took_ms=1.25)


@pytest.mark.req("security:S8")
async def test_lines_are_written_soon_and_privately(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "SOON_S", 0.01)
    log = AccessLog(tmp_path / "access.log")
    for n in range(3):
        note(log, f"/{n}")
    async with asyncio.timeout(20):
        while not (tmp_path / "access.log").exists():
            await asyncio.sleep(0.005)
    assert [line.split()[1:] for line in (tmp_path / "access.log").read_text().splitlines()] == [
        ["knp", "holder", "GET", f"/{n}", "200", "127.0.0.1", "1.2ms"] for n in range(3)
    ]
    assert (tmp_path / "access.log").stat().st_mode & 0o777 == 0o600


@pytest.mark.req("security:S8")
async def test_nothing_a_client_sends_can_forge_a_line(tmp_path: Path) -> None:
    log = AccessLog(tmp_path / "access.log")
    log.line(face="knp", caller="-", verb="GET\n2026 forged", route="/a", status=400, peer="1.1.1.1\x1b[31m", took_ms=1)
    log.flush()
    text = (tmp_path / "access.log").read_text()
    assert text.count("\n") == 1
    assert "\x1b" not in text


async def test_a_large_log_begins_anew_and_keeps_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "LARGEST", 10)
    log = AccessLog(tmp_path / "access.log")
    for n in range(3):
        note(log, f"/{n}")
        log.flush()
    assert "/2" in (tmp_path / "access.log").read_text()
    assert "/1" in (tmp_path / "access.log.1").read_text()


async def test_what_is_too_much_to_keep_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "MOST_WAITING", 2)
    log = AccessLog(tmp_path / "access.log")
    for _ in range(5):
        note(log)
    log.flush()
    assert "3 requests more, not listed" in (tmp_path / "access.log").read_text()


async def test_a_log_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    log = AccessLog(tmp_path / "nowhere" / "access.log")
    note(log)
    log.flush()
    AccessLog(None).flush()
