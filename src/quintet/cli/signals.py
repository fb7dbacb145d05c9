"""Signals that end a command. The event loop hears them between two of its steps; where it is stuck in one, because
nobody reads what it writes to a terminal or a pipe, a watcher beside it ends the process all the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from quintet.cli import exits

STUCK_S = 3.0  # without a step of the loop, after something asked for the end
LOOKS_EVERY_S = 0.1


@contextlib.contextmanager
def heard(
    handled: Mapping[signal.Signals, Callable[[], object]],
    ending: tuple[signal.Signals, ...],
    *,
    at_last: Callable[[], object] = lambda: None,
    limit_s: float | None = None,
) -> Iterator[None]:
    """Each signal does what it is said to do. After one of `ending`, or the time limit, the process ends even if its
    loop cannot: `at_last` is done first, from another thread, and what ran here is ended by whoever opens it next."""
    loop = asyncio.get_running_loop()
    listened, told = os.pipe()
    os.set_blocking(told, False)
    hung_up = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN  # nohup: whoever started us does not mind a hang-up
    numbers = [number for number in handled if not (number is signal.SIGHUP and hung_up)]
    for number in numbers:
        loop.add_signal_handler(number, handled[number])
        if number in ending:
            # The loop still hears it, by the byte that every handled signal leaves for it. Unlike the loop's own, this
            # handler breaks into a call that waits; a lock could be held there, so it takes none and starts nothing.
            signal.signal(number, lambda *_: _tell(told))
    watcher = threading.Thread(target=_watch, args=(loop, listened, at_last, limit_s), name="ending", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
        os.close(told)  # a watcher that was never told ends with that


def end_children() -> None:
    """Commands must not outlive a process that ends without waiting for them."""
    from quintet.workspace.process_tree import tree_of

    for children in Path("/proc/self/task").glob("*/children"):
        for child in children.read_text().split():
            for pid in tree_of(int(child), "\0"):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)


def _tell(told: int) -> None:
    with contextlib.suppress(OSError):  # it was told often enough, or all is over
        os.write(told, b"!")


def _watch(
    loop: asyncio.AbstractEventLoop, listened: int, at_last: Callable[[], object], limit_s: float | None
) -> None:
    try:
        told, _, _ = select.select([listened], [], [], limit_s)
        if told and not os.read(listened, 1):
            return
    finally:
        os.close(listened)
    with contextlib.suppress(RuntimeError):  # the loop is closed: it has come to its end by itself
        while _steps(loop):
            time.sleep(LOOKS_EVERY_S)
        try:
            end_children()
            at_last()
        finally:
            os._exit(exits.INTERRUPTED if told else exits.TIMEOUT)


def _steps(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether the loop does anything at all, or was closed before it could."""
    stepped = threading.Event()
    loop.call_soon_threadsafe(stepped.set)
    return stepped.wait(STUCK_S) or loop.is_closed()
