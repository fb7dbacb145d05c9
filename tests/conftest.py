"""For all tests: programs they start get the usual signals, however the tests themselves were started."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """Under nohup, or in a shell's background, signals are ignored, and what is ignored is inherited."""
    for number, usual in ((signal.SIGHUP, signal.SIG_DFL), (signal.SIGINT, signal.default_int_handler)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)
