"""Plugins: Python files in the person's own plugin directory, and nowhere else. What they offer is read off their text;
what they do is done in a child that is confined as every command is. Never a project's files.
"""

from __future__ import annotations

import ast
import os
import re
from typing import Any

from msgspec import Struct

from quintet.protocols.kward.client import Opened
from quintet.protocols.kward.house import House
from quintet.protocols.kward.prompts import RESERVED

LARGEST = 256 * 1024
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
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


async def plugin_commands(house: House) -> list[PluginCommand]:
    found: dict[str, PluginCommand] = {}
    for path in await _files(house, ".py"):
        source = await house.disk.text(path, LARGEST)
        for command in _offered(path, source) if source else ():
            found.setdefault(command.name, command)
    return [command for name, command in sorted(found.items()) if name not in RESERVED]


async def ruby_plugins(house: House) -> list[str]:
    """Told, so that nobody looks for what cannot work here."""
    return [os.path.basename(path) + RUBY for path in await _files(house, ".rb")]


async def run(house: House, session: Opened, cwd: str, command: PluginCommand, arguments: str) -> Output:
    context = {"workspaceRoot": cwd, "sessionId": session.place.id, "configDir": house.config_dir}
    said = await house.call_plugin(
        command.path, command.source, "run", [command.name, arguments, context], cwd=cwd, whose=session.thread
    )
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


def _offered(path: str, source: str) -> list[PluginCommand]:
    """`COMMANDS` is a literal, so it is known without running anything; a file without `run` offers nothing."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    if not any(isinstance(node, ast.FunctionDef) and node.name == "run" for node in body):
        return []
    given = next((_literal(node) for node in body if _is_commands(node)), None)
    if not isinstance(given, dict):
        return []
    named = {name: told for name, told in given.items() if isinstance(name, str) and _NAME.fullmatch(name)}
    return [
        PluginCommand(name, _word(told, "description"), _word(told, "argument_hint"), path, source)
        for name, told in named.items()
    ]


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
