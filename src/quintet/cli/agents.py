"""Agents: who can work in a thread here: built in, the person's own, the project's."""

from __future__ import annotations

import argparse

import msgspec

from quintet.cli.event_json import encode_line
from quintet.cli.invoke import Invocation, directory
from quintet.cli.terminal import safe_line
from quintet.domain.agent import Agent


def add_flags(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    parser.add_argument("--cwd", default="", help="the project's directory (else the current one)")


async def run(invocation: Invocation) -> int:
    async with invocation.open() as app:
        found = await app.agents.all(directory(invocation.flags.cwd))
    for agent in found.agents:
        if invocation.json:
            invocation.screen.raw(encode_line(msgspec.to_builtins(agent)))
        else:
            invocation.screen.row(f"{safe_line(agent.name):<16} ", _line(agent))
    for name, words in found.problems:
        invocation.screen.note(f"{safe_line(name)} cannot be used: {safe_line(words)}")
    for note in found.notes:
        invocation.screen.note(safe_line(note))
    return 0


def _line(agent: Agent) -> str:
    """Name, what it is for, and what it is bound to."""
    bounds = [f"mode {agent.mode}" if agent.mode else "", f"model {agent.model}" if agent.model else ""]
    if agent.tools is not None:
        bounds.append(f"tools {', '.join(agent.tools) or 'none'}")
    words = "; ".join(word for word in bounds if word)
    source = agent.source or "built in"
    return safe_line(f"{agent.description}{f' [{words}]' if words else ''} ({source})")
