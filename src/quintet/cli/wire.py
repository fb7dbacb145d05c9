"""wire: Kimi Wire on stdin and stdout, with the flags that Kimi's clients pass."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
from typing import Any

from quintet.app import App, open_app
from quintet.cli.invoke import Invocation, directory, positive
from quintet.config import Config
from quintet.config.kimi import Chosen, choose, logins_of, read_kimi
from quintet.config.kimi_hooks import hooks_of
from quintet.domain.agent import Agent
from quintet.engine.housekeeping import ON_THE_WAY_OUT_S
from quintet.protocols.wire.place import share_directory
from quintet.rpc.connection import Connection
from quintet.rpc.stdio import Stdio, claim
from quintet.serving.wire import WireFlags, wire_house

GONE_WITHIN_S = 2.7  # after a signal: clients kill after three seconds
LEFT_WITHIN_S = 4.5  # after the end of the input


def add_flags(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    parser.add_argument("--wire", action="store_true", help="accepted, since Kimi's clients say it")
    parser.add_argument("--work-dir", "-w", default="", metavar="DIR", help="working directory (else the current one)")
    parser.add_argument(
        "--session", "-S", default="", metavar="ID", help="the thread of this name; a new one if none is"
    )
    parser.add_argument("--yolo", "--auto-approve", "-y", action="store_true", help="ask for nothing")
    parser.add_argument(
        "--continue", "-C", dest="go_on", action="store_true", help="the thread used last in that directory"
    )
    parser.add_argument("--model", "-m", default="", help="one of Kimi's configuration, or provider/model")
    parser.add_argument("--config-file", default="", metavar="FILE", help="Kimi's configuration, JSON or TOML")
    parser.add_argument("--config", default="", metavar="TEXT", help="the same, as a text")
    parser.add_argument("--agent-file", default="", metavar="FILE", help="an agent in Kimi's own form")
    parser.add_argument(
        "--skills-dir", action="append", default=[], metavar="DIR", help="skills of yours; may be repeated"
    )
    for name in ("--mcp-config-file", "--mcp-config"):
        parser.add_argument(name, action="append", default=[], help="accepted; MCP servers are not started yet")
    parser.add_argument("--max-steps-per-turn", type=positive, metavar="N", help="model calls at most")
    parser.add_argument(
        "--thinking", action=argparse.BooleanOptionalAction, help="whether a model that can think shall"
    )
    parser.add_argument(
        "--every-event", action="store_true", help="also events newer than the version the client declares"
    )


async def run(invocation: Invocation) -> int:
    stdio = claim()  # before anything else: from here on nothing but the protocol reaches stdout
    flags = invocation.flags
    share_dir = share_directory(os.environ)
    kimi = read_kimi(text=flags.config, file=flags.config_file, share_dir=share_dir)
    chosen: list[Chosen] = []

    def over(config: Config) -> Config:
        chosen.append(choose(kimi, config, os.environ, model=flags.model, thinking=flags.thinking))
        return chosen[-1].config

    skills_dirs = tuple(map(os.path.abspath, flags.skills_dir))
    hooks = hooks_of(kimi.hooks if kimi else ())
    async with open_app(invocation.home, "wire", over=over, skills_dirs=skills_dirs) as app:
        for note in (*hooks.notes, *(logins_of(kimi) if kimi else ())):
            app.log.line(note)
        work_dir = directory(flags.work_dir, "--work-dir")
        called = _called(flags.work_dir, work_dir)
        given = WireFlags(
            work_dir=work_dir,
            share_dir=share_dir,
            called=called,
            session=flags.session or (await app.wire_files.last_used(share_dir, called) if flags.go_on else ""),
            yolo=flags.yolo or (kimi is not None and kimi.default_yolo),
            model=chosen[-1].reference,
            unsupported=chosen[-1].unsupported,
            agent=_agent(app, flags.agent_file, work_dir),
            hooks=hooks.hooks,
            max_steps=flags.max_steps_per_turn or (kimi.max_steps if kimi else None),
        )
        if flags.mcp_config_file or flags.mcp_config:
            app.log.line("wire: MCP servers were named, and this version starts none.")
        await _serve(app, given, stdio, gated=not flags.every_event)
    return 0


def _called(given: str, work_dir: str) -> str:
    """The directory in the client's own words, made absolute only: its files are looked for under that name."""
    return os.path.abspath(given) if given else work_dir


def _agent(app: App, path: str, work_dir: str) -> Agent | None:
    if not path:
        return None
    from quintet.config.kimi_agent import read_agent

    found = read_agent(path, work_dir)
    for note in found.notes:
        app.log.line(note)
    return found.agent


async def _serve(app: App, given: WireFlags, stdio: Stdio, *, gated: bool) -> None:
    from quintet.protocols.wire.gate import Gate
    from quintet.protocols.wire.server import connect

    house = wire_house(app, given)
    connection = connect(stdio.source, stdio.sink, house, gate=Gate(shut=gated))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, _stop, connection)
    tidying = asyncio.create_task(app.housekeeping.run())
    try:
        await connection.serve()
    finally:
        tidying.cancel()
        hurried = signal.getitimer(signal.ITIMER_REAL)[0] > 0
        if not hurried:
            signal.setitimer(signal.ITIMER_REAL, LEFT_WITHIN_S)
        if house.leave is not None:
            await house.leave()
    if not hurried:
        await app.housekeeping.tidy(ON_THE_WAY_OUT_S)


def _stop(connection: Connection[Any]) -> None:
    """Whatever holds up the end is cut off by the alarm: a client that waits kills, and harder."""
    signal.setitimer(signal.ITIMER_REAL, GONE_WITHIN_S)
    connection.end()
