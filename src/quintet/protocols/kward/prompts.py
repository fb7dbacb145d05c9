"""prompts/*: texts of the person's own, kept as files, that a slash command stands for. Read anew each time."""

from __future__ import annotations

import os
import re

from msgspec import Struct

from quintet.protocols.kward import models as wire
from quintet.protocols.kward.client import Client
from quintet.protocols.kward.errors import Failed
from quintet.protocols.kward.house import House
from quintet.rpc.call import Call
from quintet.rpc.rows import Family, NoParams

PROMPTS = Family("prompts", form="either")
LARGEST = 256 * 1024
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_FRONT = re.compile(r"---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
# Names that mean something in Kward's own terminal: no file takes them over.
_TERMINAL = """
new resume sessions name clone fork export compact copy model models reasoning login logout memory settings
reload help exit quit stats status tools plugins prompts crew
"""
RESERVED = frozenset(_TERMINAL.split())


class Prompt(Struct, frozen=True):
    command: str
    description: str
    argument_hint: str
    path: str
    text: str

    def expanded(self, arguments: str) -> str:
        return self.text.replace("$ARGUMENTS", arguments.strip())


async def all_prompts(house: House) -> list[Prompt]:
    """By name; of two that differ only in case the first counts."""
    found: dict[str, Prompt] = {}
    for file in sorted(await house.disk.files(os.path.join(house.config_dir, "prompts")), key=lambda f: f.path):
        command, ending = os.path.splitext(os.path.basename(file.path))
        usable = ending == ".md" and _NAME.fullmatch(command) and command.lower() not in (RESERVED | found.keys())
        text = await house.disk.text(file.path, LARGEST) if usable else None
        if text is not None:
            found[command.lower()] = _prompt(command, file.path, text)
    return list(found.values())


def _prompt(command: str, path: str, text: str) -> Prompt:
    front: dict[str, str] = {}
    if head := _FRONT.match(text):
        pairs = (line.partition(":") for line in head[1].splitlines())
        front = {name.strip(): value.strip().strip("\"'") for name, colon, value in pairs if colon}
        text = text[head.end() :]
    return Prompt(command, front.get("description", ""), front.get("argument-hint", ""), path, text.strip())


async def prompt_named(house: House, name: str) -> Prompt | None:
    wanted = name.strip().removeprefix("/")
    return next((prompt for prompt in await all_prompts(house) if prompt.command == wanted), None)


@PROMPTS.method("prompts/list", result=wire.PromptList, summary="The prompt templates there are.")
async def list_prompts(call: Call[Client], params: NoParams) -> wire.PromptList:
    found = await all_prompts(call.state.house)
    return wire.PromptList([wire.PromptInfo(p.command, p.description, p.argument_hint, p.path) for p in found])


@PROMPTS.method(
    "prompts/expand",
    params=wire.ExpandParams,
    result=wire.Expanded,
    summary="What a prompt command would say to the model.",
)
async def expand(call: Call[Client], params: wire.ExpandParams) -> wire.Expanded:
    found = await prompt_named(call.state.house, params.command)
    if found is None:
        raise Failed(f"Unknown prompt template: {params.command}")
    return wire.Expanded(found.command, found.expanded(params.arguments or ""))
