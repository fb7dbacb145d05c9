"""wire: Kimi Wire on stdin and stdout, with the flags that Kimi's clients pass."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
from typing import TYPE_CHECKING, Any

from quintet.app import App, open_app
from quintet.cli.invoke import Invocation, directory
from quintet.cli.wire_flags import add_kimi_flags, notes, refuse_unfit
from quintet.config import Config
from quintet.config.kimi import Chosen, KimiConfig, choose, read_kimi, with_attempts
from quintet.config.kimi_hooks import hooks_of
from quintet.config.kimi_notes import notes_of
from quintet.domain.errors import Invalid
from quintet.engine.housekeeping import ON_THE_WAY_OUT_S
from quintet.protocols.wire.place import share_directory
from quintet.rpc.connection import Connection
from quintet.rpc.stdio import Stdio, claim
from quintet.serving.wire import WireFlags, wire_house

if TYPE_CHECKING:
    from quintet.config.kimi_agent import ReadAgent

GONE_WITHIN_S = 2.7  # after a signal: clients kill after three seconds
LEFT_WITHIN_S = 4.5  # after the end of the input


def add_flags(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    add_kimi_flags(parser)


async def run(invocation: Invocation) -> int:
    refuse_unfit(invocation.flags)
    stdio = claim()  # before anything else: from here on nothing but the protocol reaches stdout
    try:
        return await _run(invocation, stdio)
    except BaseException:
        stdio.failed()
        raise


async def _run(invocation: Invocation, stdio: Stdio) -> int:
    flags = invocation.flags
    share_dir = share_directory(os.environ)
    kimi = read_kimi(text=flags.config or "", file=flags.config_file or "", share_dir=share_dir)
    chosen: list[Chosen] = []

    def over(config: Config) -> Config:
        found = choose(kimi, config, os.environ, model=flags.model, thinking=flags.thinking)
        chosen.append(with_attempts(found, flags.max_retries_per_step, os.environ))
        return chosen[-1].config

    skills_dirs = tuple(map(os.path.abspath, flags.skills_dir))
    hooks = hooks_of(kimi.hooks if kimi else ())
    async with open_app(invocation.home, "wire", over=over, skills_dirs=skills_dirs) as app:
        for note in (*hooks.notes, *notes_of(kimi, chosen[-1], flags.model), *notes(flags)):
            app.log.line(note)
        work_dir = directory(flags.work_dir, "--work-dir")
        called = _called(flags.work_dir, work_dir)
        found = _agent(app, flags.agent_file, work_dir)
        given = WireFlags(
            work_dir=work_dir,
            share_dir=share_dir,
            called=called,
            session=await _session(app, flags, share_dir, called),
            yolo=flags.yolo or (kimi is not None and kimi.default_yolo),
            afk=flags.afk,
            plan=flags.plan,
            add_dirs=await asyncio.to_thread(_added, app, flags.add_dir, work_dir),
            plan_if_new=kimi is not None and kimi.default_plan_mode,
            model=chosen[-1].reference,
            unsupported=chosen[-1].unsupported,
            by_login=chosen[-1].by_login,
            agent=found.agent if found else None,
            subagents=found.subagents if found else (),
            hooks=hooks.hooks,
            max_steps=flags.max_steps_per_turn or (kimi.max_steps if kimi else None),
            repeats=_repeats(flags.max_ralph_iterations, kimi),
            traced=flags.debug or flags.verbose,
        )
        await _serve(app, given, stdio, gated=not flags.every_event)
    return 0


async def _session(app: App, flags: argparse.Namespace, share_dir: str, called: str) -> str:
    if not flags.go_on:
        return (flags.session or "").strip()
    if found := await app.wire_files.last_used(share_dir, called):
        return found
    raise Invalid(f"No session was used in {called} yet.", next_step="Start without --continue.")


def _added(app: App, given: list[str], work_dir: str) -> tuple[str, ...]:
    """From where the client was started; the whole start fails for one that cannot be."""
    added: tuple[str, ...] = ()
    for path in map(os.path.abspath, given):
        added = app.hands.guard.adding(path, work_dir, added)
    return added


def _repeats(given: int | None, kimi: KimiConfig | None) -> int:
    return given if given is not None else kimi.loop_control.max_ralph_iterations if kimi else 0


def _called(given: str, work_dir: str) -> str:
    """The directory in the client's own words, made absolute only: its files are looked for under that name."""
    return os.path.abspath(given) if given else work_dir


def _agent(app: App, path: str, work_dir: str) -> ReadAgent | None:
    if not path:
        return None
    from quintet.config.kimi_agent import read_agent

    found = read_agent(path, work_dir)
    for note in found.notes:
        app.log.line(note)
    return found


async def _serve(app: App, given: WireFlags, stdio: Stdio, *, gated: bool) -> None:
    from quintet.protocols.wire.gate import Gate
    from quintet.protocols.wire.server import connect

    house = wire_house(app, given)
    connection = connect(stdio.source, stdio.sink, house, gate=Gate(shut=gated))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, _stop, connection)
    tidying = asyncio.create_task(app.housekeeping.run())
    stdio.serves()
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
