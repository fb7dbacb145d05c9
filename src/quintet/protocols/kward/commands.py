"""commands/*, resources/startup, tools/list: what a person and a model can call here."""

from __future__ import annotations

import os
from typing import Any

from quintet.engine.commands import Called, Commands, Deed, Named
from quintet.protocols.kward import models as wire
from quintet.protocols.kward import plugins
from quintet.protocols.kward.client import Client, Opened, thread_of
from quintet.protocols.kward.errors import BadArgument
from quintet.protocols.kward.house import House, SkillSeen
from quintet.protocols.kward.plugins import PluginCommand
from quintet.protocols.kward.prompts import all_prompts
from quintet.rpc.call import Call
from quintet.rpc.rows import Family, NoParams

COMMANDS = Family("commands", form="either")
AGENTS = "AGENTS.md"
SKILL_AT_MOST = 100_000
COPY = {"ok": False, "error": "unsupported", "reason": "clientClipboardOwnedByUi"}


@COMMANDS.method(
    "commands/list",
    params=wire.SessionParams,
    result=wire.CommandList,
    summary="The slash commands: prompt templates, skills, plugins.",
)
async def list_commands(call: Call[Client], params: wire.SessionParams) -> wire.CommandList:
    house, session = call.state.house, call.state.session(params.session_id)
    prompts = [
        {
            "name": prompt.command,
            "description": prompt.description,
            "source": "prompt",
            "location": "user",
            "path": prompt.path,
            "sourceInfo": {},
        }
        for prompt in await all_prompts(house)
    ]
    skills = [
        {"name": f"skill:{skill.name}", "description": _about(skill), "source": "skill", "path": _file(skill)}
        for skill in house.skills(await cwd_of(house, session))
    ]
    own = [
        {
            "name": command.name,
            "description": command.description,
            "argumentHint": command.argument_hint,
            "source": "plugin",
            "path": command.path,
            "executable": True,
        }
        for command in await plugins.plugin_commands(house)
    ]
    return wire.CommandList([*prompts, *skills, *own])


@COMMANDS.method(
    "commands/run", params=wire.RunParams, result=plugins.Output, summary="Run a plugin's command; no model is asked."
)
async def run_command(call: Call[Client], params: wire.RunParams) -> Any:
    house, session = call.state.house, call.state.session(params.session_id)
    name = params.name.strip().removeprefix("/")
    if name == "copy":
        return COPY
    command = await plugin_named(house, name)
    if command is None:
        raise BadArgument(f"Unknown plugin command: {params.name}")
    return await plugins.run(house, session, await cwd_of(house, session), command, params.arguments or "")


@COMMANDS.method(
    "resources/startup",
    params=wire.SessionParams,
    result=wire.Startup,
    summary="What is there at the start: instructions, skills, prompt templates, plugins.",
)
async def startup(call: Call[Client], params: wire.SessionParams) -> wire.Startup:
    house, session = call.state.house, call.state.session(params.session_id)
    cwd = await cwd_of(house, session)
    places = [os.path.join(place, AGENTS) for place in (house.config_dir, cwd)]
    written = [path for path in places if await house.disk.modified_ms(path) is not None]
    own = [f"/{command.name}" for command in await plugins.plugin_commands(house)]
    sections = {
        "Context": [AGENTS] if written else [],
        "Skills": [skill.name for skill in house.skills(cwd)],
        "Prompts": [f"/{prompt.command}" for prompt in await all_prompts(house)],
        "Plugins": [*own, *await plugins.ruby_plugins(house)],
    }
    return wire.Startup([wire.Section(name, items) for name, items in sections.items() if items])


@COMMANDS.method("tools/list", result=wire.Tools, summary="The tools a model is offered, with their arguments.")
async def list_tools(call: Call[Client], params: NoParams) -> wire.Tools:
    told = [tool.spec for tool in call.state.house.tools()]
    return wire.Tools(
        [
            {
                "type": "function",
                "function": {"name": s.name, "description": s.description, "parameters": s.parameters},
            }
            for s in told
        ]
    )


# --- for inputs that begin with a slash -------------------------------------------------------------------------------
async def plugin_named(house: House, name: str) -> PluginCommand | None:
    return next((command for command in await plugins.plugin_commands(house) if command.name == name), None)


async def meant(house: House, cwd: str, text: str) -> Called | None:
    """A prompt template or a skill with what it says to the model; None for anything else, which stays as it is."""
    if not text.lstrip().startswith("/"):
        return None
    prompts = [_prompt(prompt.command, prompt.expanded) for prompt in await all_prompts(house)]
    skills = [_skill(house, skill) for skill in house.skills(cwd)]
    called = Commands(lambda: [*prompts, *skills], ()).meant(text)
    return called if called is not None and called.command is not None else None


async def cwd_of(house: House, session: Opened) -> str:
    return (await thread_of(house, session)).settings.cwd


def _prompt(name: str, expanded: Any) -> Named:
    async def say(words: str) -> str:
        made: str = expanded(words)
        return made

    return Named(name, "", Deed.ASK, input=say)


def _skill(house: House, skill: SkillSeen) -> Named:
    async def say(words: str) -> str:
        """The person's own is given whole; a project's is read with the tool, where somebody agrees to it."""
        told = None if skill.of_project else await house.disk.text(_file(skill), SKILL_AT_MOST)
        told = told or f"Read the skill {skill.name} with read_skill and do what it says."
        return f"{told.strip()}\n\nUser request:\n{words}" if words else told.strip()

    return Named(f"skill:{skill.name}", "", Deed.ASK, input=say)


def _about(skill: SkillSeen) -> str:
    return "A skill of the project" if skill.of_project else skill.description


def _file(skill: SkillSeen) -> str:
    return os.path.join(skill.directory, "SKILL.md")
