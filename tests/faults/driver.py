"""The process that is killed: runs turns through the real engine on a real home and writes down all it is told.

    python -m tests.faults.driver HOME SEED ROUND [answers=inside|outside] [boot=ID] [turns=N] [storm=1]
                                                  [extras=prune,delete] [large=1]

Prints `ready`, then works until its turns are done or it is killed.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from quintet.app import App
from quintet.config import load_config
from quintet.domain.errors import QuintetError
from quintet.domain.event import Event, InteractionRequested, TextDelta
from quintet.domain.ids import new_id
from quintet.domain.interaction import Verdict
from quintet.domain.item import AssistantMessage, Item, TextPart
from quintet.domain.model import Chunk, ModelInfo, ModelRequest
from quintet.domain.ports import Provider, ToolContext
from quintet.domain.principal import local
from quintet.domain.thread import ThreadSettings
from quintet.domain.tool import CallScope, Effect, Prepared, ToolOutcome, ToolSpec
from quintet.domain.turn import Mode
from quintet.engine.interactions import Answer
from quintet.engine.starter import Starter
from quintet.journal.opening import open_journal
from quintet.providers.scripted import ScriptedProvider
from quintet.tools.shell import ShellTool
from tests.faults.acks import Acks
from tests.faults.syncs import NAME, NotingSyncs

ME = local("faults")
WORKERS = 3


class Mark:
    """A tool whose every run leaves one line in a file: effects can be counted."""

    spec = ToolSpec("mark", "leaves a line", {"type": "object"}, Effect.WRITE)

    def __init__(self, effects: Path, dice: random.Random) -> None:
        self._effects = effects
        self._dice = dice

    async def prepare(self, arguments: dict[str, Any], scope: CallScope) -> Prepared:
        tag = str(arguments["tag"])
        return Prepared(f"mark {tag}", arguments, cwd=scope.cwd, paths=(str(self._effects),), digest=tag)

    async def run(self, prepared: Prepared, context: ToolContext) -> ToolOutcome:
        await asyncio.sleep(self._dice.random() * 0.003)
        fd = os.open(self._effects, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(fd, f"{prepared.arguments['tag']}\n".encode())
        os.close(fd)
        context.emit_output("stdout", "marked")
        await asyncio.sleep(self._dice.random() * 0.003)
        return ToolOutcome("marked")


class OneScript:
    """Models of a turn that has a script of its own."""

    def __init__(self, script: str) -> None:
        self._provider = ScriptedProvider(script)

    def info(self, reference: str) -> ModelInfo:
        return ModelInfo(reference)

    def resolve(self, reference: str) -> tuple[str, Provider]:
        return "fake/scripted", self

    def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        return self._provider.stream(request)


class Driver:
    def __init__(self, home: Path, app: App, acks: Acks, dice: random.Random, round_: int, *, inside: bool) -> None:
        self.app = app
        self.acks = acks
        self.dice = dice
        self.effects = home.parent / f"{home.name}.effects"
        self.tag = f"r{round_}"
        self.inside = inside
        self.cwd = str(home.parent)
        self.storm = False  # every turn is steered and cancelled, at any moment
        self.tasks: set[asyncio.Task[Any]] = set()
        self.streaming: dict[str, asyncio.Event] = {}

    def see(self, event: Event) -> None:
        self.acks.event(event)
        if isinstance(event.payload, TextDelta) and event.turn in self.streaming:
            self.streaming[event.turn].set()
        if self.inside and isinstance(event.payload, InteractionRequested):
            self.spawn(self.allow(event.payload.interaction.id, event.thread))

    def spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def allow(self, interaction: str, thread: str) -> None:
        await asyncio.sleep(self.dice.random() * 0.01)
        try:
            await self.app.interactions.answer(interaction, Answer(Verdict.ALLOW), ME)
        except QuintetError:
            return  # the turn was cancelled, which answered it
        self.acks.write("answered", interaction=interaction, thread=thread)

    async def watch(self) -> None:
        async for entry in self.app.feed.follow(None):
            assert isinstance(entry, Event)
            self.see(entry)

    def script(self, tag: str, *, asks: bool) -> str:
        """Thoughts and words in many pieces, calls in parallel, a child process now and then."""
        steps = [
            f'think: "{tag} thinks"\nrepeat: 15 every 0.001 text: "{tag} says "\n'
            f'tool_call: mark#{tag}a {{"tag": "{tag}a"}}\ntool_call: mark#{tag}b {{"tag": "{tag}b"}}'
        ]
        if not asks and self.dice.random() < 0.5:
            steps.append(
                f'text: "now a child"\ntool_call: shell#{tag}c {{"command": "echo {tag}c >> {self.effects}; echo out"}}'
            )
        steps.append(f'repeat: 40 text: "{tag} ends "')
        return "scope: turn\n" + "\n---\n".join(steps)

    def starter(self, tag: str) -> Starter:
        asks = self.dice.random() < 0.35
        tools = [Mark(self.effects, self.dice), ShellTool()]
        return Starter(ME, OneScript(self.script(tag, asks=asks)), tools, mode=Mode.ASK if asks else Mode.ALLOW)

    async def turn(self, thread: str, tag: str) -> None:
        started = await self.app.turns.start(thread, (TextPart(f"prompt {tag}"),), self.starter(tag))
        turn = started.turn.id
        self.acks.write("started", turn=turn, thread=thread, prompt=f"prompt {tag}")
        chance = self.dice.random()
        if self.storm:
            await asyncio.sleep(self.dice.random() * 0.06)
            self.spawn(self.steer(thread, f"steer {tag}"))
            await asyncio.sleep(self.dice.random() * 0.005)
            await self.cancel(turn)
        elif chance < 0.35:
            self.streaming[turn] = asyncio.Event()
            await asyncio.wait_for(self.streaming[turn].wait(), 10)
            if chance < 0.25:
                await self.steer(thread, f"steer {tag}")
            else:
                await self.cancel(turn)
        ended = await self.app.turns.wait(turn, 30)
        self.acks.write("ended", turn=turn, state=ended.state.value)

    async def steer(self, thread: str, words: str) -> None:
        try:
            command = await self.app.turns.steer(thread, (TextPart(words),), ME)
        except QuintetError:
            return
        self.acks.write("steered", command=command.id, words=words, thread=thread)

    async def cancel(self, turn: str) -> None:
        try:
            ended = await self.app.turns.cancel(turn, ME, "for the test")
        except QuintetError:
            return
        self.acks.write("ended", turn=turn, state=ended.state.value)

    async def work(self, worker: int, turns: int) -> None:
        thread = (await self.app.threads.create(ThreadSettings(self.cwd))).id
        self.acks.write("created", thread=thread, items=0)
        for number in range(turns):
            await self.turn(thread, f"{self.tag}w{worker}t{number}")
            if self.dice.random() < 0.3:
                await self.compact(thread)
            if self.dice.random() < 0.3:
                source = (await self.app.threads.get(thread)).thread
                thread = (await self.app.threads.fork(thread)).id
                self.acks.write("created", thread=thread, items=source.last_ordinal)

    async def compact(self, thread: str) -> None:
        script = 'scope: turn\nrepeat: 20 every 0.001 text: "in short "'
        started = await self.app.turns.compact(thread, Starter(ME, OneScript(script), []))
        ended = await self.app.turns.wait(started.turn.id, 30)
        self.acks.write("ended", turn=started.turn.id, state=ended.state.value)

    async def large(self) -> None:
        """A thread and its fork, each one transaction of more than the two MiB of SQLite's page cache: such a one is
        in the log, in part, before it is committed."""
        items = [Item(new_id("itm"), "", "", n + 1, 1, AssistantMessage(os.urandom(2000).hex())) for n in range(1500)]
        thread = (await self.app.threads.create(ThreadSettings(self.cwd), items=items)).id
        self.acks.write("created", thread=thread, items=len(items))
        thread = (await self.app.threads.fork(thread)).id
        self.acks.write("created", thread=thread, items=len(items))

    async def extra(self, what: str) -> None:
        self.acks.write(what)
        if what == "prune":
            await self.app.journal.prune(now_ms=self.app.clock.now_ms() + 3_600_000)
        elif what == "delete":
            thread = (await self.app.threads.create(ThreadSettings(self.cwd))).id
            self.acks.write("deleting", thread=thread)
            await self.turn(thread, f"{self.tag}x0")
            await self.app.threads.delete(thread, ME)
            self.acks.write("deleted", thread=thread)


async def main(home: Path, seed: str, round_: int, options: dict[str, str]) -> None:
    dice = random.Random(f"{seed}/{round_}")
    disk = NotingSyncs(home) if "boot" in options else None  # whoever starts anew loses power before
    journal = await open_journal(home, protocol="faults", boot_id=options.get("boot"), vfs=disk and NAME)
    app = App(home, load_config(str(home)), journal)
    acks = Acks(home.parent / f"{home.name}.acks")
    driver = Driver(home, app, acks, dice, round_, inside=options.get("answers", "inside") == "inside")
    driver.storm = "storm" in options
    watching = asyncio.ensure_future(driver.watch())
    await asyncio.sleep(0)
    await journal.recover()
    print("ready", flush=True)
    turns = int(options.get("turns", "1000"))
    if "large" in options:
        await driver.large()
    await asyncio.gather(*(driver.work(n, turns) for n in range(WORKERS)))
    for what in filter(None, options.get("extras", "").split(",")):
        await driver.extra(what)
    while driver.tasks:
        await asyncio.wait(driver.tasks)
    watching.cancel()
    await app.close()
    print("done", flush=True)


if __name__ == "__main__":
    given = dict(word.split("=", 1) for word in sys.argv[4:])
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), given))
