"""Conversation: one thread at a time at one terminal. What is typed becomes a turn, a steer, an answer or a command;
what happens in the thread, here or in another process, is shown as it happens.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from quintet.app import App
from quintet.cli.chat.asked import Asked
from quintet.cli.chat.attached import Attached
from quintet.cli.chat.commands import is_command, obey
from quintet.cli.chat.face import Face
from quintet.cli.chat.live_turns import LiveTurns
from quintet.cli.chat.tasks import Tasks
from quintet.cli.chat.transcript import Transcript
from quintet.cli.invoke import Invocation
from quintet.cli.styled import Line
from quintet.domain.errors import QuintetError, TurnOver
from quintet.domain.event import (
    Event,
    Gap,
    InteractionRequested,
    InteractionResolved,
    ThreadDeleted,
    ThreadUpdated,
    TurnFinished,
)
from quintet.domain.item import TextPart
from quintet.domain.principal import local
from quintet.domain.thread import Thread, ThreadSettings
from quintet.domain.turn import WhenBusy
from quintet.engine.starter import Starter

ME = local("cli")
INSTEAD = {"`quintet threads list`": "`/threads`", "`--redo`": "`/redo`", "with `-m`": "with `/model`"}  # said here
LOADED = 200  # of the last items; a long thread is not read whole to be gone on with


class Conversation:
    def __init__(
        self,
        app: App,
        invocation: Invocation,
        face: Face,
        starter: Callable[[str], Starter],
        settings: ThreadSettings,
    ) -> None:
        self.app = app
        self.invocation = invocation
        self.face = face
        self.settings = settings  # of the next thread, or of this one as they are now
        self.thread: Thread | None = None
        self.model = invocation.flags.model  # for this conversation's turns, before what the thread says
        self.attached = Attached(app)
        self.ended_by_signal = False
        self._starter = starter
        self.transcript = Transcript(
            face.write, face.width, app.clock.monotonic_s, lambda: app.models, app.journal.owner
        )
        self._tasks = Tasks(failed=face.close)
        self._asked = Asked(face, app.interactions, ME, self._tasks.keep, self.transcript.diff_shown)
        self._turns = LiveTurns(app.turns, self._tasks.keep, self._fail)
        self._stopping = False  # Ctrl-C was pressed once
        self._said: asyncio.Queue[str] = asyncio.Queue()
        self._watching: asyncio.Task[None] | None = None

    async def hold(self, thread: Thread | None) -> None:
        """Until the person leaves."""
        self._tasks.keep(self._hear())
        try:
            self.transcript.note("Type what is to be done. /help lists commands, Ctrl-D leaves.")
            for warning in self.app.project_policy(thread.settings.cwd if thread else self.settings.cwd).warnings:
                self.transcript.note(f"quintet: {warning}", "yellow")
            if thread is not None:
                await self.open(thread)
            await self.face.run(self)
        finally:
            await self._tasks.close()

    def farewell(self, problem: str) -> list[str]:
        words = [f"quintet: {problem}."] if problem else []
        if self.running:
            words.append("The turn that was running here ends as interrupted.")
        if self.thread is not None:
            words.append(f"Go on with: quintet chat --thread {self.thread.id}")
        return words

    # --- what the face tells -----------------------------------------------------------------------------------------
    def submit(self, text: str) -> None:
        self._stopping = False
        if self._asked.open and not is_command(text):
            self._asked.answer(text.removeprefix("/") if text.startswith("//") else text)
        elif text.strip():
            self._said.put_nowait(text)

    def interrupt(self) -> None:
        if self._stopping:
            self.leave()
            return
        self._stopping = True
        if self.running:
            self.transcript.note("  stopping the turn; Ctrl-C again leaves")
            self._tasks.keep(self._cancel())
        else:
            self.transcript.note("  Ctrl-C again, or Ctrl-D, leaves")

    def leave(self) -> None:
        self.face.close()

    def end(self) -> None:
        """SIGTERM or SIGHUP: what runs here is ended as interrupted on the way out."""
        self.ended_by_signal = True
        self.leave()

    @property
    def running(self) -> bool:
        return bool(self._turns)

    def live(self) -> list[Line]:
        return self.transcript.live()

    def status(self) -> str:
        settings = self.settings
        model = self.model or settings.model or self.app.models.default
        words = [model, *([f"agent {settings.agent}"] * bool(settings.agent)), *(["plan mode"] * settings.plan_mode)]
        if self._asked.open:
            words.append("waits for your answer")
        elif self.running:
            words += ["running: Enter steers, Ctrl-C stops"]
            words += [f"{self._turns.queued} queued"] if self._turns.queued else []
        else:
            words.append("/help")
        return " · ".join(words)

    # --- what is said ------------------------------------------------------------------------------------------------
    async def _hear(self) -> None:
        """One after the other, in the order they were typed."""
        while True:
            text = await self._said.get()
            try:
                if is_command(text):
                    await obey(self, text)
                else:
                    await self.say(text.removeprefix("/") if text.startswith("//") else text)
            except QuintetError as error:
                self._fail(error)

    async def say(self, text: str, when_busy: WhenBusy = WhenBusy.STEER) -> None:
        """Into the running turn if there is one, else as a turn of its own."""
        thread = await self.here()
        parts = (TextPart(text), *self.attached.parts)
        await self.app.turns.start(thread.id, parts, self.starter(), when_busy=when_busy)
        self.attached.forget()

    def starter(self) -> Starter:
        return self._starter(self.model)

    async def here(self) -> Thread:
        """The thread; made with the first thing that is said in it."""
        if self.thread is None:
            await self.open(await self.app.threads.create(self.settings))
        assert self.thread is not None
        return self.thread

    async def configure(self, change: ThreadUpdated) -> None:
        """Of the thread from now on, or of the one that will be."""
        if self.thread is not None:
            await self.app.threads.configure(self.thread.id, change)
        else:
            self._changed(change)

    async def _cancel(self) -> None:
        assert self.thread is not None
        try:
            turn = await self.app.turns.active(self.thread.id)
            await self.app.turns.cancel(turn.id, ME, "interrupted by the user")
        except TurnOver:
            pass  # it ended in the same moment
        except QuintetError as error:
            self._fail(error)

    # --- what happens ------------------------------------------------------------------------------------------------
    async def open(self, thread: Thread) -> None:
        """Look at this thread from now on: what was said, what waits for an answer, what happens next."""
        self.close()
        journal = self.app.journal
        cursor = (await journal.marks()).last
        opened = (await self.app.threads.get(thread.id)).thread
        self.thread, self.settings = opened, opened.settings
        loaded = await journal.items(thread.id, after=max(0, opened.last_ordinal - LOADED), limit=LOADED)
        self.transcript.begin(opened, loaded)
        self._turns.begin(await journal.turns(thread.id, live=True))
        for interaction in await self.app.interactions.pending(opened.root):
            self._asked.add(interaction)
        self._watching = self._tasks.keep(self._watch(opened, cursor))

    def close(self) -> None:
        """Look at no thread."""
        if self._watching is not None:
            self._watching.cancel()
        self._watching, self.thread = None, None
        self._turns.begin(())
        self._asked.clear()

    async def _watch(self, thread: Thread, cursor: int) -> None:
        with self.app.feed.follow(cursor, root=thread.root) as subscription:
            async for entry in subscription:
                if not isinstance(entry, Gap):  # what is gone comes whole with its items
                    self._see(entry)
                    self.face.refresh()

    def _see(self, event: Event) -> None:
        if self.thread is not None and event.thread == self.thread.id:
            self._turns.see(event)
            self._follow(event)
        self.transcript.show(event)
        match event.payload:
            case InteractionRequested(interaction=interaction):
                self._asked.add(interaction)
            case InteractionResolved() as resolution:
                self._asked.resolved(resolution)

    def _follow(self, event: Event) -> None:
        match event.payload:
            case TurnFinished():
                self._stopping = False
            case ThreadUpdated() as change:
                self._changed(change)
            case ThreadDeleted():
                self.transcript.note("The thread was deleted. What you type next begins a new one.", "yellow")
                self.thread = None

    def _changed(self, change: ThreadUpdated) -> None:
        given = {name: getattr(change, name) for name in ("cwd", "agent", "model", "plan_mode")}
        changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        self.settings = msgspec.structs.replace(self.settings, **changes)

    def _fail(self, error: QuintetError) -> None:
        words = error.line()
        for typed, here in INSTEAD.items():
            words = words.replace(typed, here)
        self.transcript.note(f"quintet: {words}", "red")
