"""url: where the server is, ready to paste; with --rotate under a new token."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
from pathlib import Path
from typing import Any

from quintet.cli.invoke import Invocation
from quintet.config import home_directory
from quintet.domain.errors import NoServer, TimedOut
from quintet.workspace.server_lock import announced

WITHIN_S = 5.0


def add_flags(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    parser.add_argument("--plain", action="store_true", help="the address alone, without the token")
    parser.add_argument(
        "--rotate", action="store_true", help="make the server take a new token; the old one ends at once"
    )


async def run(invocation: Invocation) -> int:
    from quintet.cli.event_json import encode_line

    home = Path(home_directory(invocation.home, os.environ))
    facts = _facts(home)
    if invocation.flags.rotate:
        facts = await _rotated(home, facts)
    if invocation.json:
        invocation.screen.raw(encode_line(facts))
        return 0
    knp: dict[str, str] = facts["knp"]
    address = knp.get("url") or knp.get("socket", "")
    if "url" not in knp or invocation.flags.plain or not facts["token"]:
        invocation.screen.line(address)
    else:
        invocation.screen.line(f"{address}/t/{facts['token']}")
    return 0


def _facts(home: Path) -> dict[str, Any]:
    facts = announced(home)
    if not isinstance(facts.get("knp"), dict) or not isinstance(facts.get("pid"), int):
        raise NoServer("No server runs on this home.")
    return facts


async def _rotated(home: Path, before: dict[str, Any]) -> dict[str, Any]:
    os.kill(before["pid"], signal.SIGHUP)
    for _ in range(int(WITHIN_S / 0.02)):
        facts = _facts(home)
        if facts["token"] != before["token"] or not before["token"]:
            return facts
        await asyncio.sleep(0.02)
    raise TimedOut("The server did not take a new token.", next_step="Look whether it still answers, or restart it.")
