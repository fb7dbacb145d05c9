"""RunningTurn: the live side of one turn in the process that runs it: cancel, steer and mode, within one event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator

from quintet.domain.agent import Agent
from quintet.domain.command import Command
from quintet.domain.errors import Denied
from quintet.domain.subagent import DEEPEST, NOT_BELOW, TOOL
from quintet.domain.thread import Thread
from quintet.domain.tool import ToolSpec
from quintet.domain.turn import Lease, Mode, Turn, TurnState, strictest
from quintet.engine.agents import CODER, may_use, offering
from quintet.engine.candidates import Candidates
from quintet.engine.hooks import AllHooks
from quintet.engine.moments import Moments
from quintet.engine.project_policy import ProjectPolicy
from quintet.engine.starter import Starter


class RunningTurn:
    def __init__(
        self,
        turn: Turn,
        thread: Thread,
        lease: Lease,
        starter: Starter,
        project: ProjectPolicy | None = None,
        compact: str | None = None,
        above: RunningTurn | None = None,
        hooks: AllHooks | None = None,
    ) -> None:
        self.turn = turn
        self.thread = thread
        self.lease = lease
        self.starter = starter
        self.project = project or ProjectPolicy()  # what the project's own files add, as they were when it began
        self.compact = compact  # not None: the turn is there to compact the thread, with these wishes
        self.above = above  # the turn whose call this one works for, in the thread above
        self.agent = CODER  # until it is known which one the thread wants
        self.others: tuple[Agent, ...] = ()  # whom it may give work to
        self.models: Candidates | None = None  # until the turn has chosen
        self.planning = thread.settings.plan_mode  # as it is now: the thread's setting may change while the turn runs
        self._mode = strictest(turn.mode, self.project.mode)
        self._loosest = self._mode  # what no change of mode goes beyond
        self.steers: deque[Command] = deque()  # accepted, not yet given to the model
        self.accepting = 0  # steers whose acceptance is being committed right now
        self.rests = False  # somebody said no and wants to speak next: no further step
        self.children: dict[str, asyncio.Task[None]] = {}  # by their turn: subagents at work in the background
        self.had_children = False
        self.refused: Denied | None = None  # one of them wanted what ends the turn where nobody can be asked
        self.closing = False  # the last commit is under way: commands that come now are too late
        self.stopped_as: TurnState | None = None
        self.stop_reason = ""
        self.moments = Moments(hooks, self)
        self.ask_beside: Callable[[str], None] | None = None  # begin an aside, once the turn is far enough for one
        self.prepared = asyncio.Event()  # it can be asked beside its work, or never will be
        self._work: asyncio.Task[None] | None = None
        self._steer_settled = asyncio.Event()

    @property
    def mode(self) -> Mode:
        """How much may happen now. In plan mode nothing is changed; after it the turn is what it was before."""
        own = Mode.READ_ONLY if self.planning else self._mode
        return strictest(own, self.above.mode) if self.above else own

    @property
    def loosest(self) -> Mode:
        """What it comes to when no plan holds it."""
        return strictest(self._mode, self.above.loosest) if self.above else self._mode

    @property
    def may_delegate(self) -> bool:
        return self.starter.has(TOOL) and self.thread.depth < DEEPEST and may_use(self.agent, TOOL)

    def upwards(self) -> Iterator[RunningTurn]:
        """This turn, the one it works for, and so on."""
        here: RunningTurn | None = self
        while here is not None:
            yield here
            here = here.above

    def works_as(self, agent: Agent) -> None:
        """The agent's mode is an upper bound, its tools are the only ones."""
        self.agent = agent
        self.tighten(agent.mode)

    def specs(self) -> tuple[ToolSpec, ...]:
        """What the model is offered."""
        hidden = NOT_BELOW if self.above else frozenset[str]()
        if not self.may_delegate:
            hidden |= {TOOL}
        offered = (s for s in self.starter.specs() if may_use(self.agent, s.known_as) and s.known_as not in hidden)
        return tuple(offering(spec, self.others) if spec.known_as == TOOL else spec for spec in offered)

    def offered(self, name: str) -> ToolSpec | None:
        """The tool a model means; also by its own name where it was offered under another."""
        specs = self.specs()
        return next((s for s in specs if s.name == name), None) or next((s for s in specs if s.own == name != ""), None)

    async def work(self, work: asyncio.Task[None]) -> None:
        """Run until done, failed or stopped. A stop that came before the work began still stops it."""
        self._work = work
        if self.stopped_as is not None:
            work.cancel()
        await work

    def stop(self, state: TurnState, reason: str) -> None:
        """Cancelled by someone, or interrupted by shutdown. The first word counts."""
        if self.stopped_as is None and not self.closing:
            self.stopped_as = state
            self.stop_reason = reason
            if self._work is not None:
                self._work.cancel()

    def set_mode(self, mode: Mode) -> None:
        """Stricter at will, and back, but never beyond what the turn began with or was bound to since."""
        self._mode = strictest(self._loosest, mode)

    def tighten(self, mode: Mode | None) -> None:
        """Someone stricter has spoken: the rest of the turn is that strict."""
        self._loosest = strictest(self._loosest, mode)
        self._mode = strictest(self._mode, mode)

    def begin_accepting(self) -> bool:
        """A steer is about to be accepted; False when the turn is already closing."""
        if self.closing or self.stopped_as is not None:
            return False
        self.accepting += 1
        return True

    def accepted(self, command: Command | None) -> None:
        self.accepting -= 1
        if command is not None:
            self.steers.append(command)
        self._steer_settled.set()

    async def next_steers(self) -> list[Command]:
        """Every accepted steer; waits for those whose acceptance is being committed. They stay in `steers` until
        their items are in the journal. Empty = the turn may end; whoever ends it closes it in the same breath."""
        while self.accepting:
            self._steer_settled.clear()
            await self._steer_settled.wait()
        return list(self.steers)

    async def one_of(self, tasks: Iterable[asyncio.Task[None]]) -> None:
        """Until one of these is over, or a steer has been accepted meanwhile, also just before."""
        if self.steers:
            return
        self._steer_settled.clear()
        steered = asyncio.ensure_future(self._steer_settled.wait())
        try:
            await asyncio.wait({*tasks, steered}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            steered.cancel()

    async def end_children(self) -> None:
        """Those in the background. They end before this turn does."""
        tasks = list(self.children.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def close(self) -> None:
        """From now on nothing is accepted; waits for what is being accepted."""
        self.closing = True
        self.prepared.set()
        await self.next_steers()
