"""Plugins: Python files in the person's own plugin directory, and nowhere else. What they offer is read off their text;
what they do is done in a child that is confined as every command is. Never a project's files.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from quintet.domain.errors import QuintetError
from quintet.protocols.kward.client import Opened
from quintet.protocols.kward.house import House
from quintet.protocols.kward.models import TurnEvent
from quintet.protocols.kward.prompts import RESERVED

LARGEST = 256 * 1024
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
# What a plugin may define.
RUN, CONTEXT, EVENTS = "run", "prompt_context", "transcript_events"
CONTEXT_AT_MOST = 8_000  # characters of one plugin
RUBY = " (unsupported: Ruby plugin)"


class PluginCommand(Struct, frozen=True):
    name: str
    description: str
    argument_hint: str
    path: str
    source: str


class Output(Struct, frozen=True):
    command: str
    output: list[str]
    result: str | None


class Plugin(Struct, frozen=True):
    path: str
    source: str
    commands: tuple[PluginCommand, ...]
    functions: frozenset[str]


async def all_plugins(house: House) -> list[Plugin]:
    found = []
    for path in await _files(house, ".py"):
        source = await house.disk.text(path, LARGEST)
        if source and (plugin := _plugin(path, source)) is not None:
            found.append(plugin)
    return found


async def plugin_commands(house: House) -> list[PluginCommand]:
    found: dict[str, PluginCommand] = {}
    for plugin in await all_plugins(house):
        for command in plugin.commands:
            found.setdefault(command.name, command)
    return [command for name, command in sorted(found.items()) if name not in RESERVED]


async def prompt_context(house: House, session: Opened, cwd: str) -> str:
    """What plugins want the model told in this turn. One that fails is noted, and the turn goes on without it."""
    told = []
    for plugin in await all_plugins(house):
        if CONTEXT in plugin.functions:
            said = await _called(house, session, cwd, plugin, CONTEXT, [_context(house, session, cwd)])
            if isinstance(said, str) and said.strip():
                told.append(f"# From the plugin {os.path.basename(plugin.path)}\n{said.strip()[:CONTEXT_AT_MOST]}")
    return "\n\n".join(told)


async def tell_events(house: House, session: Opened, cwd: str, events: Sequence[TurnEvent]) -> None:
    """What happened in a turn, to the plugins that want to know, once it is over."""
    for plugin in await all_plugins(house):
        if EVENTS in plugin.functions:
            given = [msgspec.to_builtins(list(events)), _context(house, session, cwd)]
            await _called(house, session, cwd, plugin, EVENTS, given)


async def _called(house: House, session: Opened, cwd: str, plugin: Plugin, function: str, arguments: list[Any]) -> Any:
    try:
        said = await house.call_plugin(plugin.path, plugin.source, function, arguments, cwd=cwd, whose=session.thread)
    except QuintetError as error:
        house.log(f"kward: {function} of {plugin.path}: {error.line()}")
        return None
    return said.returned


async def ruby_plugins(house: House) -> list[str]:
    """Told, so that nobody looks for what cannot work here."""
    return [os.path.basename(path) + RUBY for path in await _files(house, ".rb")]


async def run(house: House, session: Opened, cwd: str, command: PluginCommand, arguments: str) -> Output:
    given = [command.name, arguments, _context(house, session, cwd)]
    said = await house.call_plugin(command.path, command.source, RUN, given, cwd=cwd, whose=session.thread)
    returned = said.returned
    lines = said.printed.splitlines()
    if isinstance(returned, list):
        return Output(command.name, [*lines, *map(str, returned)], None)
    return Output(command.name, lines, None if returned is None else str(returned))


def text_of(output: Output) -> str:
    return "\n".join([*output.output, *([output.result] if output.result else [])])


async def _files(house: House, ending: str) -> list[str]:
    seen = await house.disk.files(house.plugins_dir)
    return sorted(file.path for file in seen if file.path.endswith(ending))


def _context(house: House, session: Opened, cwd: str) -> dict[str, str]:
    return {"workspaceRoot": cwd, "sessionId": session.place.id, "configDir": house.config_dir}


def _plugin(path: str, source: str) -> Plugin | None:
    """What a file offers is known without running anything: its functions by name, its commands by a literal."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    functions = frozenset(node.name for node in body if isinstance(node, ast.FunctionDef)) & {RUN, CONTEXT, EVENTS}
    given = next((_literal(node) for node in body if _is_commands(node)), None) if RUN in functions else None
    listed = given.items() if isinstance(given, dict) else ()
    commands = [
        PluginCommand(name, _word(told, "description"), _word(told, "argument_hint"), path, source)
        for name, told in listed
        if isinstance(name, str) and _NAME.fullmatch(name)
    ]
    return Plugin(path, source, tuple(commands), functions)


def _is_commands(node: ast.stmt) -> bool:
    names = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return any(isinstance(name, ast.Name) and name.id == "COMMANDS" for name in names)


def _literal(node: ast.stmt) -> Any:
    assert isinstance(node, ast.Assign | ast.AnnAssign)
    try:
        return ast.literal_eval(node.value) if node.value is not None else None
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None


def _word(told: Any, name: str) -> str:
    if isinstance(told, str):
        return told if name == "description" else ""
    value = told.get(name) if isinstance(told, dict) else None
    return value if isinstance(value, str) else ""
