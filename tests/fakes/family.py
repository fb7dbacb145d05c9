"""Agents with models of their own, so that a test can write what each of a tree of them says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from quintet.domain.agent import Agent, AgentsFound
from quintet.domain.event import Event
from quintet.domain.model import ModelInfo
from quintet.domain.ports import Provider, Tool
from quintet.domain.thread import Thread
from quintet.domain.turn import Mode
from quintet.engine.agents import Agents
from quintet.engine.starter import Starter
from quintet.engine.turns import Started
from quintet.providers.scripted import ScriptedProvider
from quintet.tools.task import TaskTool
from tests.fakes.engine import ME, House, Process, parts
from tests.fakes.waiting import soon


class Family:
    """A model per agent: `boss` is who the person speaks with. A string is a script."""

    def __init__(
        self, boss: Provider | str, *, prices: tuple[float, float] | None = None, **agents: Provider | str
    ) -> None:
        self._prices = dict(zip(("input_price", "output_price"), prices, strict=True)) if prices else {}
        given = {"boss": boss, **agents}
        self.providers = {name: ScriptedProvider(p) if isinstance(p, str) else p for name, p in given.items()}

    def resolve(self, reference: str) -> tuple[str, Provider]:
        name = reference or "fake/boss"
        return name, self.providers[name.partition("/")[2]]

    def info(self, reference: str) -> ModelInfo:
        return ModelInfo(reference, **self._prices)

    def starter(self, tools: Sequence[Tool] = (), *, mode: Mode = Mode.ALLOW, **more: Any) -> Starter:
        return Starter(ME, self, [*tools, TaskTool()], mode=mode, **more)

    async def start(self, process: Process, thread: str, tools: Sequence[Tool] = (), **more: Any) -> Started:
        return await soon(process.turns.start(thread, parts("go"), self.starter(tools, **more)))

    async def run(self, process: Process, thread: str, tools: Sequence[Tool] = (), **more: Any) -> Any:
        started = await self.start(process, thread, tools, **more)
        return await process.ended(started.turn.id)


def agents(*names: str, **modes: Mode) -> Agents:
    """One agent per name, whose model has the same name."""
    own = tuple(Agent(name, f"does {name}", f"You are {name}.", f"fake/{name}", mode=modes.get(name)) for name in names)
    return Agents(lambda: AgentsFound(own))


async def process(house: House, *names: str, **options: Any) -> Process:
    return await house.process(agents=agents(*names), **options)


def task(agent: str = "worker", prompt: str = "do it", call_id: str = "", **more: str) -> str:
    """A script's line that gives work away."""
    given = json.dumps({"description": f"work of {agent}", "prompt": prompt, "agent": agent, **more})
    return f"tool_call: task{f'#{call_id}' if call_id else ''} {given}\n"


async def children(process: Process, thread: str) -> list[Thread]:
    return await process.threads.children(thread)


def order(events: Sequence[Event], kind: str) -> list[str]:
    """The threads of these events, in their order."""
    return [e.thread for e in events if e.kind == kind]
