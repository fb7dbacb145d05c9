"""policy: what would be said to a call, in each mode, and by which rule, grant or mode. Nothing is run."""

from __future__ import annotations

import argparse
from typing import Any

from quintet.cli.event_json import encode_line
from quintet.cli.invoke import Invocation, directory
from quintet.cli.parser import actions
from quintet.cli.terminal import safe_line
from quintet.domain.shown import shown_line
from quintet.domain.turn import Mode
from quintet.engine.explaining import Explained
from quintet.engine.policy import Verdict
from quintet.serving.explaining import explained


def add_flags(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    action = actions(parser, common)
    explaining = action("explain", "whether a call would be allowed, asked about or denied, and why")
    explaining.add_argument("tool", help="shell, write, read, web_fetch, …")
    explaining.add_argument("words", nargs="*", help="the command, path or address; or all arguments as a JSON object")
    explaining.add_argument("--cwd", default="", help="working directory of the call (else the current one)")
    explaining.add_argument(
        "--protocol", default="cli", help="the client it would come from; grants can be for one alone (cli)"
    )


async def run(invocation: Invocation) -> int:
    flags = invocation.flags
    async with invocation.open(starts_turns=True) as app:
        words, cwd = " ".join(flags.words), directory(flags.cwd)
        found = await explained(app, flags.tool, words, cwd=cwd, protocol=flags.protocol)
        top = app.config.policy.mode
    if invocation.json:
        invocation.screen.raw(encode_line(_json(found, top)))
    else:
        for line in _lines(found, top):
            invocation.screen.row(line)
    return 0


def _json(found: Explained, top: Mode | None) -> dict[str, Any]:
    call, parsed = found.call, found.parsed
    known: dict[str, Any] = {"v": 1, "title": call.title, "confined": call.confined, "mode_at_most": top}
    if parsed is not None:
        known |= {"commands": parsed.commands, "understood": parsed.understood, "writes": parsed.writes}
    verdicts = {
        mode.value: {"judgement": v.judgement, "because": v.rule, "destructive": v.destructive, "grants": v.grants}
        for mode, v in found.verdicts.items()
    }
    return known | {"verdicts": verdicts}


def _lines(found: Explained, top: Mode | None) -> list[str]:
    lines = [shown_line(found.call.title)]
    if found.parsed is not None:
        lines += [f"  runs       {shown_line(' '.join(argv))}" for argv in found.parsed.commands]
        lines += [f"  writes     {shown_line(path)}" for path in found.parsed.writes]
        if not found.parsed.understood:
            lines.append("  not understood as a whole: no rule or grant can allow it")
        if found.parsed.destructive:
            lines.append("  destructive: what it does is hard to undo")
    lines += [f"  touches    {shown_line(path)}" for path in found.call.paths]
    lines.append(f"  sandboxed  {'yes' if found.call.confined else f'no: {safe_line(found.call.unconfined)}'}")
    lines += [f"  mode {mode.value:<10} {_verdict(verdict)}" for mode, verdict in found.verdicts.items()]
    lines += _offers(found)
    if top is not None:
        lines.append(f'config.toml says [policy] mode = "{top.value}": no turn is given more than that.')
    return lines


def _verdict(verdict: Verdict) -> str:
    return f"{verdict.judgement.value:<6} because of: {safe_line(verdict.rule)}"


def _offers(found: Explained) -> list[str]:
    offers = found.verdicts[Mode.ASK].offers
    return [f"A yes could be remembered as: {shown_line(offers[0].words())}"] if offers else []
