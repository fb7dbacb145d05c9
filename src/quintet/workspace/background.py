"""Commands that go on after their call has ended. Each belongs to a thread, keeps its last output within bounds, and
ends at the latest with this process. Knows no journal: whoever made this is told of each end, once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import msgspec
from msgspec.structs import replace

from quintet.domain.errors import Invalid, NotFound
from quintet.domain.ids import new_id
from quintet.workspace.child import Child, Ended, Receiver
from quintet.workspace.output import Decoder, Kept

AT_ONCE = 8  # running, per thread
REMEMBERED = 16  # running and ended, per thread
TOLD_WITHIN_S = 2.0  # a process that ends does not wait long
SETTLED_S = 0.05  # a line that still grows is not torn between two looks: half a secret is not recognised as one
Run = Callable[[Receiver, Callable[[], None]], Awaitable[Ended]]
Tell = Callable[[str, "Look"], Awaitable[None]]  # the thread, and what there is to see of the command that ended


class Look(msgspec.Struct, frozen=True):
    id: str
    command: str
    child: Child
    text: str  # what came since the last look
    seconds: float  # since its start, or from start to end
    ended: Ended | None = None  # None: it runs, or was stopped, or failed
    stopped: bool = False
    failure: str = ""
    left: bool = False  # stopped because this process ends
    description: str = ""  # a few words for people, where whoever started it had some

    @property
    def runs(self) -> bool:
        return self.ended is None and not self.stopped and not self.failure


class BackgroundCommand:
    def __init__(self, thread: str, command: str, child: Child, description: str = "") -> None:
        self.id = new_id("cal")
        self.thread = thread
        self.command = command
        self.child = child
        self.description = description
        self.task: asyncio.Future[Ended]
        self.over: float | None = None
        self._begun = self._last = time.monotonic()
        self._decoder, self._unread = Decoder(), Kept()

    def receive(self, stream: str, data: bytes) -> None:
        self._last = time.monotonic()
        self._unread.add(self._decoder.text(stream, data))

    def finish(self) -> None:
        self.over = time.monotonic()
        for _, text in self._decoder.rest():
            self._unread.add(text)

    def look(self) -> Look:
        text, self._unread = self._unread.text(), Kept()
        if self.over is None and time.monotonic() - self._last < SETTLED_S:
            text, line_end, growing = text.rpartition("\n")
            text += line_end
            self._unread.add(growing)
        return self.glance(text)

    def glance(self, text: str = "") -> Look:
        """How it stands; what it has written stays unread."""
        seconds = (self.over or time.monotonic()) - self._begun
        done = self.task.done()
        stopped = done and self.task.cancelled()
        error = self.task.exception() if done and not stopped else None
        ended = self.task.result() if done and not stopped and error is None else None
        failure = "" if error is None else str(error) or type(error).__name__
        told = (seconds, ended, stopped, failure)
        return Look(self.id, self.command, self.child, text, *told, description=self.description)


class Background:
    """`tell` is awaited beside everything else when a command has ended whose id somebody was given."""

    def __init__(self, tell: Tell | None = None) -> None:
        self._commands: dict[str, BackgroundCommand] = {}
        self._tell = tell
        self._telling: set[asyncio.Task[None]] = set()
        self._closing = False

    async def start(self, thread: str, command: str, child: Child, run: Run, description: str = "") -> str:
        """Its id, once it has been spawned; what kept it from that is raised."""
        self._make_room(thread)
        made = BackgroundCommand(thread, command, child, description)
        spawned = asyncio.Event()
        made.task = asyncio.ensure_future(self._follow(made, run, spawned.set))
        self._commands[made.id] = made
        ready = asyncio.ensure_future(spawned.wait())
        try:
            await asyncio.wait((ready, made.task), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await _end(made)
            raise
        finally:
            ready.cancel()
        if not spawned.is_set():
            del self._commands[made.id]
            await made.task
        made.task.add_done_callback(lambda ended: self._ended(made))
        return made.id

    async def look(self, thread: str, name: str, wait_s: float = 0.0) -> Look:
        """What came since the last look, after waiting at most so long for its end."""
        found = self._find(thread, name)
        if wait_s and not found.task.done():
            await asyncio.wait((found.task,), timeout=wait_s)
        return found.look()

    def known(self, thread: str) -> list[Look]:
        """How the thread's stand, oldest first; what they have written stays unread."""
        return [command.glance() for command in self._commands.values() if command.thread == thread]

    async def stop(self, thread: str, name: str) -> Look:
        """End it with everything it started; its last output."""
        found = self._find(thread, name)
        await _end(found)
        return found.look()

    async def close(self) -> None:
        """This process ends, and they with it."""
        self._closing = True
        await asyncio.gather(*map(_end, self._commands.values()))
        await asyncio.sleep(0)  # the loop calls what was to be called at their ends
        if self._telling:
            await asyncio.wait(set(self._telling), timeout=TOLD_WITHIN_S)

    def _ended(self, command: BackgroundCommand) -> None:
        if self._tell is not None:
            look = command.glance()
            told = replace(look, left=look.stopped and self._closing)
            task = asyncio.get_running_loop().create_task(self._told(command.thread, told))
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)

    async def _told(self, thread: str, look: Look) -> None:
        assert self._tell is not None
        await self._tell(thread, look)

    async def _follow(self, command: BackgroundCommand, run: Run, spawned: Callable[[], None]) -> Ended:
        try:
            return await run(command.receive, spawned)
        finally:
            command.finish()

    def _find(self, thread: str, name: str) -> BackgroundCommand:
        found = self._commands.get(name)
        if found is None or found.thread != thread:
            here = [c.id for c in self._commands.values() if c.thread == thread]
            raise NotFound(
                f"This thread has no background command {name!r}. "
                + (f"It has: {', '.join(here)}." if here else "They end with the process that ran them.")
            )
        return found

    def _make_room(self, thread: str) -> None:
        here = [c for c in self._commands.values() if c.thread == thread]
        running = [c.id for c in here if not c.task.done()]
        if len(running) >= AT_ONCE:
            raise Invalid(
                f"{AT_ONCE} commands of this thread run in the background already: {', '.join(running)}.",
                next_step="End one with shell_stop.",
            )
        over = [c.id for c in here if c.task.done()]
        for name in over[: max(0, len(here) - REMEMBERED + 1)]:
            del self._commands[name]


async def _end(command: BackgroundCommand) -> None:
    """Returns when it is dead. A cancel of ours does not end the ending."""
    command.task.cancel()
    await asyncio.wait((command.task,))
