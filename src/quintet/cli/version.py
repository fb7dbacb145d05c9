"""version: which Quintet this is and where it keeps things."""

from __future__ import annotations

import argparse
import os
import platform

from quintet import __version__
from quintet.cli.event_json import encode_line
from quintet.cli.invoke import Invocation
from quintet.config import home_directory


def add_flags(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    """Only the common flags."""


async def run(invocation: Invocation) -> int:
    import apsw

    home = home_directory(invocation.home, os.environ)
    facts = {
        "quintet": __version__,
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
        "home": home,
        "log": os.path.join(home, "quintet.log"),
    }
    if invocation.json:
        invocation.screen.raw(encode_line(facts))
    else:
        for name, value in facts.items():
            invocation.screen.line(f"{name:<8} {value}")
    return 0
