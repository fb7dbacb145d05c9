"""memory: what is kept in mind beyond one thread: see it, why it came to mind, correct it, really forget it.

Off until you turn it on. Only conversations have it: `quintet chat` and editors, not `quintet run`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from pathlib import Path
from typing import Any

import msgspec

from quintet.app import App
from quintet.cli import exits
from quintet.cli.event_json import encode_line
from quintet.cli.inside_call import refuse_inside_a_call
from quintet.cli.invoke import Invocation
from quintet.cli.parser import actions
from quintet.cli.terminal import safe_line
from quintet.domain.errors import NotFound
from quintet.domain.memory import Layer, Memory, MemoryStatus, MemorySwitch
from quintet.engine.memory import Mind
from quintet.minds import Minds, roots_of

LOOKING = ("status", "list", "why")


def add_flags(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    own = argparse.ArgumentParser(add_help=False, parents=[common])
    own.add_argument("--kward", action="store_true", help="Kward's own files, which `quintet kward` works on")
    action = actions(parser, own)
    action("status", "whether it is on, how much there is, and in which files")
    action("list", "everything that is remembered").add_argument(
        "--all", action="store_true", help="also what was forgotten, without its text, and what waits for approval"
    )
    adding = action("add", "remember something: a hint, or with --core something to always keep in mind")
    adding.add_argument("text")
    adding.add_argument("--core", action="store_true", help="always told to the model, where its scope fits")
    adding.add_argument("--here", action="store_true", help="for this workspace only")
    adding.add_argument("--tag", action="append", default=[], help="may be repeated")
    for name, summary in (
        ("forget", "erase one: its text is gone from every file"),
        ("promote", "make a hint something to always keep in mind"),
        ("approve", "let one be used that the model proposed"),
    ):
        action(name, summary).add_argument("id", help="as `quintet memory list` shows it")
    action("why", "what came to mind when a thread's last turn began, and why").add_argument(
        "thread", nargs="?", default="", help="its id or the beginning of it (else the newest)"
    )
    action("summarize", "look through what you said in a thread for things worth keeping").add_argument("thread")
    action("enable", "turn it on")
    action("disable", "turn it off; what is remembered stays")
    action("auto-summary", "whether to look through each turn once it is done").add_argument(
        "switch", choices=("on", "off")
    )


async def run(invocation: Invocation) -> int:
    if invocation.flags.action not in LOOKING:
        refuse_inside_a_call("change what is remembered")
    async with invocation.open() as app:
        mind = _of_kward(app) if invocation.flags.kward else app.minds.of()
        return await _HANDLERS[invocation.flags.action](invocation, app, mind)


def _of_kward(app: App) -> Mind:
    from quintet.engine.profiles import DEFAULT, Profiles
    from quintet.serving.kward_keeping import opening

    profiles = Profiles(str(app.home), {DEFAULT: opening()["profile"]})
    return Minds(app.home, profiles, app.clock, app.feed.mask, MemorySwitch()).of()


async def _status(invocation: Invocation, app: App, mind: Mind) -> int:
    switch, kept = await mind.switch(), await mind.all()
    waiting = sum(m.status is MemoryStatus.PROPOSED for m in kept.soft)
    hints = sum(m.usable for m in kept.soft)
    if invocation.json:
        counts = {"core": len(kept.core), "soft": hints, "proposed": waiting}
        said = {**msgspec.to_builtins(switch), **counts, "paths": msgspec.to_builtins(mind.paths)}
        invocation.screen.raw(encode_line(said))
        return exits.DONE
    summary = "on" if switch.auto_summary else "off"
    invocation.screen.line(f"Memory is {'on' if switch.enabled else 'off'}; automatic summaries are {summary}.")
    invocation.screen.line(f"{len(kept.core)} core, {hints} soft, {waiting} waiting for approval.")
    invocation.screen.line(f"Files: {os.path.dirname(mind.paths.core)}")
    if not switch.enabled:
        invocation.screen.note("Turn it on with `quintet memory enable`.")
    return exits.DONE


async def _list(invocation: Invocation, app: App, mind: Mind) -> int:
    kept = await mind.all()
    rows = [m for m in (*kept.core, *kept.soft) if invocation.flags.all or m.usable]
    for memory in rows:
        _show(invocation, memory)
    waiting = sum(m.status is MemoryStatus.PROPOSED for m in kept.soft)
    if not invocation.json and waiting and not invocation.flags.all:
        invocation.screen.note(f"{waiting} more wait for approval: quintet memory list --all")
    if not rows and not invocation.json:
        invocation.screen.note('Nothing. Add something with `quintet memory add "…"`.')
    return exits.DONE


async def _add(invocation: Invocation, app: App, mind: Mind) -> int:
    flags = invocation.flags
    here = (await asyncio.to_thread(roots_of, os.getcwd()))[-1] if flags.here else ""
    layer = Layer.CORE if flags.core else Layer.SOFT
    made = await mind.add(
        flags.text, layer, scope="workspace" if flags.here else "global", tags=flags.tag, workspace=here
    )
    _show(invocation, made)
    if not invocation.json and not (await mind.switch()).enabled:
        invocation.screen.note("It is kept, but memory is off: quintet memory enable")
    return exits.DONE


async def _forget(invocation: Invocation, app: App, mind: Mind) -> int:
    if not await mind.forget(invocation.flags.id):
        raise NotFound(
            f"There is no memory {invocation.flags.id!r}.", next_step="List them with `quintet memory list --all`."
        )
    backups = await asyncio.to_thread(_own_backups, app.home)
    if invocation.json:
        invocation.screen.raw(encode_line({"forgotten": invocation.flags.id, "backups": backups}))
        return exits.DONE
    invocation.screen.line(f"Forgotten: {invocation.flags.id}.")
    if backups:
        invocation.screen.note(f"Backups you made are left alone and may still hold it: {', '.join(backups)}")
    return exits.DONE


def _own_backups(home: Path) -> list[str]:
    """What a person made with `quintet backup`. The automatic ones hold the journal, where no memory's text is."""
    return sorted(map(str, (home / "backups").glob("*.tar")))


async def _promote(invocation: Invocation, app: App, mind: Mind) -> int:
    _show(invocation, await mind.promote(invocation.flags.id))
    return exits.DONE


async def _approve(invocation: Invocation, app: App, mind: Mind) -> int:
    _show(invocation, await mind.approve(invocation.flags.id))
    return exits.DONE


async def _why(invocation: Invocation, app: App, mind: Mind) -> int:
    thread = await app.threads.find(invocation.flags.thread) if invocation.flags.thread else ""
    recalled = await mind.why(app.journal, thread)
    if invocation.json:
        invocation.screen.raw(encode_line(msgspec.to_builtins(recalled)))
        return exits.DONE
    if recalled is None:
        invocation.screen.note("No memory retrieval has run yet.")
        return exits.DONE
    for found in recalled.reasons:
        text = next((m.text for m in recalled.memories if m.id == found.id), "[forgotten since]")
        invocation.screen.line(f"{found.id:<10} {found.score:.2f}  {safe_line(text)}")
        invocation.screen.line(f"{'':<10}       {'; '.join(found.reasons)}")
    if not recalled.reasons:
        invocation.screen.note("Nothing came to mind.")
    return exits.DONE


async def _summarize(invocation: Invocation, app: App, mind: Mind) -> int:
    thread = await app.threads.find(invocation.flags.thread)
    cwd = (await app.journal.thread(thread)).settings.cwd
    root = (await asyncio.to_thread(roots_of, cwd))[0]
    made = await mind.summarise_thread(app.journal, thread, root)
    for memory in made:
        _show(invocation, memory)
    if not made and not invocation.json:
        invocation.screen.note("Nothing new worth keeping was found.")
    return exits.DONE


async def _enable(invocation: Invocation, app: App, mind: Mind) -> int:
    await mind.enable(on=invocation.flags.action == "enable")
    return await _status(invocation, app, mind)


async def _auto_summary(invocation: Invocation, app: App, mind: Mind) -> int:
    await mind.auto_summary(on=invocation.flags.switch == "on")
    return await _status(invocation, app, mind)


def _show(invocation: Invocation, memory: Memory) -> None:
    said: dict[str, Any] = msgspec.to_builtins(memory)
    if invocation.json:
        invocation.screen.raw(encode_line(said))
        return
    marks = [memory.scope] if memory.scope != "global" else []
    marks += [memory.source] if memory.source else []
    marks += [f"after {', '.join(memory.seen)}"] if memory.seen else []
    marks += [] if memory.usable else [memory.status.value]
    invocation.screen.line(f"{memory.id:<10} {safe_line(memory.text)}  ({safe_line('; '.join(marks))})")


_HANDLERS = {
    "status": _status,
    "list": _list,
    "add": _add,
    "forget": _forget,
    "promote": _promote,
    "approve": _approve,
    "why": _why,
    "summarize": _summarize,
    "enable": _enable,
    "disable": _enable,
    "auto-summary": _auto_summary,
}
