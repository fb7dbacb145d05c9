"""Signals of a command: heard by its loop; the watcher beside it ends with the loop and ends nobody else."""

from __future__ import annotations

import asyncio
import os
import signal
import threading

import pytest

from quintet.cli import signals
from quintet.cli.signals import heard
from tests.faults.processes import wait_until


def watchers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "ending"]


@pytest.mark.req("first_minutes:F18")
@pytest.mark.parametrize("limit_s", [None, 0.01])
def test_a_command_that_hears_and_ends_by_itself_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, limit_s: float | None
) -> None:
    monkeypatch.setattr(signals, "LOOKS_EVERY_S", 0.01)

    async def command() -> None:
        told = asyncio.Event()
        with heard({signal.SIGTERM: told.set}, (signal.SIGTERM,), limit_s=limit_s):
            assert len(watchers()) == 1
            os.kill(os.getpid(), signal.SIGTERM)
            async with asyncio.timeout(20):
                await told.wait()

    asyncio.run(command())
    wait_until(lambda: not watchers(), 20)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_one_that_is_never_told_ends_with_its_command() -> None:
    async def command() -> None:
        with heard({signal.SIGTERM: lambda: None}, (signal.SIGTERM,), limit_s=3600.0):
            pass
        await asyncio.to_thread(wait_until, lambda: not watchers(), 20)

    asyncio.run(command())


def test_a_hang_up_that_was_to_be_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)

    async def command() -> None:
        with heard({signal.SIGHUP: lambda: None}, (signal.SIGHUP,)):
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN

    try:
        asyncio.run(command())
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
