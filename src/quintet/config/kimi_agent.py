"""Kimi's agent files as agents of ours: which tools, which instructions. Version 1 of its form.

What of it has no counterpart here is told, so that nobody believes it holds.
"""

from __future__ import annotations

import os
import re

import msgspec

from quintet.config.plain_yaml import parse_plain_yaml
from quintet.domain.agent import Agent
from quintet.domain.errors import Invalid
from quintet.protocols.wire.kimi_arguments import AGENTS
from quintet.protocols.wire.kimi_tools import ROWS

DEEPEST = 8  # files that extend one another
BUILT_IN = ("default", "okabe")
# Kimi's variables: where we tell the model the same in our own words, nothing needs to stand.
_TOLD = "(see below)"
_OWN = {row.name: row.own for row in ROWS}


class SubagentForm(msgspec.Struct, frozen=True):
    path: str
    description: str = ""


class AgentForm(msgspec.Struct, frozen=True):
    extend: str | None = None
    name: str | None = None
    system_prompt_path: str | None = None
    system_prompt_args: dict[str, str] | None = None
    tools: list[str] | None = None
    allowed_tools: list[str] | None = None
    exclude_tools: list[str] | None = None
    subagents: dict[str, SubagentForm] | None = None
    model: str | None = None
    when_to_use: str | None = None


class AgentFile(msgspec.Struct, frozen=True):
    version: str = "1"
    agent: AgentForm = AgentForm()


class ReadAgent(msgspec.Struct, frozen=True):
    agent: Agent
    subagents: tuple[Agent, ...] = ()  # whom it can give work to, beside those there are anyway
    notes: tuple[str, ...] = ()  # what is written and does not hold here


def read_agent(path: str, work_dir: str) -> ReadAgent:
    whole = _form(os.path.abspath(path), 0)
    agent, notes = _agent(whole, whole.name or "kimi-agent", path, work_dir)
    below: list[Agent] = []
    for name, entry in (whole.subagents or {}).items():
        made, more = _agent(_form(entry.path, 0), AGENTS.get(name, name), entry.path, work_dir)
        below.append(msgspec.structs.replace(made, description=entry.description or made.description))
        notes += more
    return ReadAgent(agent, tuple(below), tuple(notes))


def _agent(whole: AgentForm, name: str, path: str, work_dir: str) -> tuple[Agent, list[str]]:
    """With what is written and does not hold here."""
    given = whole.allowed_tools if whole.allowed_tools is not None else whole.tools
    tools = None if given is None else tuple(filter(None, map(_own, given)))
    without = tuple(filter(None, map(_own, whole.exclude_tools or ())))
    unknown = [name for name in (*(given or ()), *(whole.exclude_tools or ())) if not _own(name)]
    notes = [f"{path}: there is no tool {name}." for name in unknown]
    agent = Agent(
        name,
        description=(whole.when_to_use or "").strip(),
        instructions=_instructions(whole, work_dir),
        tools=tools,
        without=without,
        source=path,
    )
    return agent, notes


def _form(path: str, depth: int) -> AgentForm:
    """The file with what it extends below it, field by field. Paths in it are from where it lies."""
    if depth > DEEPEST:
        raise Invalid(f"{path}: agent files extend one another too often.", next_step="Break the circle.")
    document = parse_plain_yaml(_text_of(path), path)
    try:
        file = msgspec.convert(document, AgentFile, strict=False)
    except msgspec.ValidationError as error:
        raise Invalid(f"{path}: {error}.", next_step="Correct that key of the agent file.") from None
    if file.version != "1":
        raise Invalid(f"{path}: version {file.version} of agent files is not known.", next_step="Write `version: 1`.")
    form = file.agent
    place = os.path.dirname(path)
    if form.system_prompt_path:
        form = msgspec.structs.replace(form, system_prompt_path=os.path.join(place, form.system_prompt_path))
    if form.subagents:
        found = {
            name: SubagentForm(os.path.abspath(os.path.join(place, entry.path)), entry.description)
            for name, entry in form.subagents.items()
        }
        form = msgspec.structs.replace(form, subagents=found)
    if not form.extend or form.extend in BUILT_IN:
        return form
    below = _form(os.path.join(place, form.extend), depth + 1)
    args = {**(below.system_prompt_args or {}), **(form.system_prompt_args or {})}
    said = {name: value for name, value in msgspec.structs.asdict(form).items() if value is not None}
    return msgspec.structs.replace(below, **{**said, "system_prompt_args": args})


def _instructions(form: AgentForm, work_dir: str) -> str:
    if not form.system_prompt_path:
        return ""  # ours
    known = {"KIMI_WORK_DIR": work_dir, **(form.system_prompt_args or {})}

    def put(found: re.Match[str]) -> str:
        name = found[1]
        return known.get(name, _TOLD if name.startswith("KIMI_") else found[0])

    return re.sub(r"\$\{(\w+)\}", put, _text_of(form.system_prompt_path)).strip()


def _own(name: str) -> str:
    """Our name of a tool that Kimi names by module and class."""
    return _OWN.get(name.rpartition(":")[2], "")


def _text_of(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise Invalid(f"{path} cannot be read: {why}.", next_step="Name another file with --agent-file.") from None
