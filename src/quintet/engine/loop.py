"""The loop: one turn from its input to its one terminal event. Context, model, tools, and again; only emits events."""

from __future__ import annotations

import asyncio

from quintet.domain.errors import Denied, ErrorInfo, ProviderFailed, QuintetError, StepLimit, as_quintet_error
from quintet.domain.event import AnyPayload, StepFellBack, TurnFinished, ViewChanged
from quintet.domain.hook import HookEvent
from quintet.domain.ids import has_prefix
from quintet.domain.item import ToolCall
from quintet.domain.notice import Notice
from quintet.domain.ports import Results, SurroundingsReader
from quintet.domain.surroundings import with_directories
from quintet.domain.turn import TurnState
from quintet.domain.view import ViewReason
from quintet.engine.agents import Agents
from quintet.engine.answer_form import Answering
from quintet.engine.asides import Asides
from quintet.engine.calls import Calls
from quintet.engine.candidates import Candidates
from quintet.engine.checkpoints import Checkpoints
from quintet.engine.compaction import TOO_LONG, Compaction
from quintet.engine.context import Context
from quintet.engine.ending import Ending
from quintet.engine.feed import Feed
from quintet.engine.giving import Giving
from quintet.engine.interactions import Interactions
from quintet.engine.policy import Policy
from quintet.engine.recalling import Recalling, Remembered
from quintet.engine.requesting import Requesting
from quintet.engine.running import RunningTurn
from quintet.engine.spending import Spending
from quintet.engine.step import Step
from quintet.engine.subagents import Subagents
from quintet.engine.unbroken import unbroken


class Loop:
    def __init__(
        self,
        feed: Feed,
        interactions: Interactions,
        policy: Policy,
        checkpoints: Checkpoints,
        surroundings: SurroundingsReader,
        running: RunningTurn,
        subagents: Subagents,
        *,
        agents: Agents | None = None,
        results: Results | None = None,
        recalling: Recalling | None = None,
    ) -> None:
        self._feed = feed
        self._surroundings = surroundings
        self._running = running
        self._models: Candidates | None = None
        self._spending = self._new_spending()
        self._agents = agents or Agents()
        self._recalling = recalling
        self._answering = Answering(running.starter.answer_form)
        self._calls = Calls(feed, interactions, policy, checkpoints, running, subagents, results=results)
        self._context: Context | None = None
        self._giving: Giving | None = None
        self._requesting: Requesting | None = None
        self._compaction: Compaction | None = None
        self._asides: Asides | None = None
        self._step: Step | None = None
        self._steps = 0
        self._call_ids: set[str] = set()
        self._notices: tuple[Notice, ...] = ()  # that the model has not been given, as of the last look
        self._failure: QuintetError | None = None  # what ended the turn's work
        self.ending = Ending(feed, running, self._leftovers)

    async def run(self) -> TurnFinished:
        """The whole turn. Never raises for what happens inside a turn; a lost lease or broken store does raise."""
        try:
            await self._running.work(asyncio.ensure_future(self._work()))
            return await self.ending.finish(TurnState.DONE, self._steps)
        except asyncio.CancelledError as gave_up:
            if self._running.stopped_as is not None:
                if self._failure is not None:  # it had failed already, and was stopped while hooks were told of that
                    return await self.ending.finish(TurnState.FAILED, self._steps, self._failure.info())
                return await self.ending.finish_stopped(self._steps)
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise  # not the turn was stopped but the process's own task; recovery ends the turn
            # The model did, by itself.
            return await self.ending.finish(TurnState.FAILED, self._steps, as_quintet_error(gave_up).info())
        except Exception as error:
            if self.ending.begun:
                raise  # the turn is over, only its last commit failed: that is repeated, not replaced
            return await self.ending.finish(TurnState.FAILED, self._steps, as_quintet_error(error).info())

    async def _work(self) -> None:
        try:
            await self._go()
        except Exception as error:
            self._failure = as_quintet_error(error)
            await self._running.moments.failed(self._failure)
            raise
        finally:
            await unbroken(self._end_beside())

    async def _end_beside(self) -> None:
        """Whatever goes on beside the turn ends before it does."""
        await self._running.end_children()
        if self._asides is not None:
            await self._asides.close()

    async def _hear_hooks(self) -> None:
        """Before anything is done with the input. One that is refused is never shown to a model."""
        running = self._running
        await running.moments.begun()
        verdict = await running.moments.input_given()
        if verdict.blocks:
            if not running.turn.aside:
                hidden = ViewChanged(ViewReason.REVERT, keep_through=running.thread.last_ordinal - 1)
                await self._feed.say(running.lease, hidden)
            raise Denied(
                f"A hook refused this input: {verdict.reason}",
                next_step="Say it in another way, or change the hook.",
                hook=HookEvent.INPUT_GIVEN.value,
                reason=verdict.reason,
            )

    async def _held(self) -> bool:
        """Whether the turn goes on although the model has ended: a hook wants that, or somebody spoke meanwhile."""
        assert self._giving is not None
        words = await self._running.moments.rests()
        if words:
            await self._giving.words(f"A hook says that you are not done: {words}")
        return await self._giving.steers() or bool(words)

    async def _prepare(self) -> None:
        """Everything that has to be known before the first step."""
        running = self._running
        starter, settings = running.starter, running.thread.settings
        running.works_as(starter.agent or await self._agents.named(settings.agent, settings.cwd))
        if running.may_delegate:
            found = (await self._agents.all(settings.cwd)).agents
            brought = starter.subagents
            running.others = (*brought.values(), *(agent for agent in found if agent.name not in brought))
        if running.compact is None:
            await self._hear_hooks()
            await self._calls.agree()
        late = await starter.told_late() if starter.told_late else ""
        self._models = Candidates(starter.models, starter.model or settings.model or running.agent.model)
        running.models = self._models
        around = with_directories(await self._surroundings.look(settings.cwd), settings.directories)
        remembered = await self._recalling.before(running) if self._recalling is not None else Remembered()
        self._context = await Context.load(self._feed.journal, running.thread.id, running.thread.view)
        self._call_ids |= self._context.call_ids()
        self._giving = Giving(self._feed, running, self._context)
        ask = self._requesting = Requesting(running, self._models, self._context, around, remembered, late)
        self._compaction = Compaction(self._feed, running, self._models, self._context, ask.request)
        self._asides = Asides(self._feed, running, self._models, ask.request, self._new_spending)
        running.ask_beside = self._asides.begin
        running.prepared.set()

    async def _go(self) -> None:
        running = self._running
        await self._prepare()
        assert self._context is not None
        assert self._giving is not None
        if running.starter.agreement is not None:
            await self._giving.words(running.starter.agreement.words)
        if running.compact is not None or running.turn.aside:
            await self._serve()
            if not await self._goes_on():
                running.closing = True
                return
        while self._steps < running.starter.max_steps:
            if running.stopped_as is not None:
                raise asyncio.CancelledError  # whatever ran has swallowed the cancel
            await self._look_at_settings()
            await self._giving.notices(self._notices)
            step = await self._ask()
            for item in step.items:
                self._context.add(item)
            await self._answer_calls(step.calls)
            corrected = not step.calls and await self._correct(step)
            if await self._steered():
                continue
            rests = running.rests or (not step.calls and not corrected and not await self._held())
            if rests and not await self._goes_on():
                running.closing = True  # in the same breath: no steer is accepted between this look and the end
                return
        raise StepLimit(f"The turn reached its limit of {running.starter.max_steps} steps.")

    async def _serve(self) -> None:
        """What a turn without an input is there for."""
        assert self._compaction is not None
        assert self._asides is not None
        if self._running.compact is not None:
            await self._compaction.requested(self._running.compact)
        else:
            await self._asides.ask(self._running.turn.aside)

    async def _goes_on(self) -> bool:
        """Whether there is more to do after all, once what goes on beside the turn is over. False: end it at once."""
        assert self._asides is not None
        running = self._running
        if running.rests:
            await running.end_children()
        while not running.steers:
            if running.had_children and not running.rests and await self._reports_wait():
                return True
            beside = [*self._asides.tasks, *running.children.values()]
            if not beside:
                break
            await running.one_of(beside)
        return await self._steered()

    async def _reports_wait(self) -> bool:
        """Whether a subagent has ended whose end the model does not know."""
        if self._running.refused is not None:
            raise self._running.refused
        await self._look_at_settings()
        return any(has_prefix(notice.source, "thr") for notice in self._notices)

    async def _steered(self) -> bool:
        """Whether somebody has spoken meanwhile. Who said no before has then said what is to be done instead."""
        assert self._giving is not None
        if not await self._giving.steers():
            return False
        self._running.rests = False
        return True

    def _new_spending(self) -> Spending:
        feed, running, starter = self._feed, self._running, self._running.starter
        return Spending(feed.journal, feed.clock, starter.models, starter.budget, running.thread, running.turn)

    async def _ask(self) -> Step:
        """One answer of the model; when it has none, of the next one in its list."""
        assert self._models is not None
        assert self._compaction is not None
        assert self._requesting is not None
        while True:
            await self._compaction.make_room()
            model = self._models.model
            await self._spending.allow(model)
            self._steps += 1
            request = self._requesting.request()
            step = self._step = Step(
                self._feed,
                self._running.lease,
                self._steps,
                model,
                self._call_ids,
                self._running.starter.spellings.own_names,
                agent=self._running.agent.name,
                restarts=self._running.starter.restarts,
            )
            chunks = self._models.provider.stream(request)
            try:
                await step.run(chunks)
                self._compaction.answered(request, step.usage)
                return step
            except ProviderFailed as error:
                if step.has_spoken:
                    raise
                if error.data.get("reason") == TOO_LONG:
                    await self._feed.say(self._running.lease, *step.cut_off(error.info()))
                    if await self._compaction.refused(error):
                        continue
                if not self._models.fall_back():
                    raise self._compaction.given_up(error) from None
                fallen = StepFellBack(step.id, model, self._models.model, error.message)
                await self._feed.say(self._running.lease, *step.cut_off(error.info()), fallen)
            finally:
                await _close(chunks)

    async def _look_at_settings(self) -> None:
        """Plan mode may be set while the turn runs, by anybody and from any process; also above a subagent. Notices may
        come the same way."""
        for running in self._running.upwards():
            thread = await self._feed.journal.thread(running.thread.id)
            running.planning = thread.settings.plan_mode
            if running is self._running:
                self._notices = thread.notices

    async def _answer_calls(self, calls: list[ToolCall]) -> None:
        assert self._context is not None
        if calls:
            self._calls.expect(calls)
            await self._look_at_settings()
            for item in await self._calls.run_all(calls):
                self._context.add(item)

    async def _correct(self, step: Step) -> bool:
        """Tell the model what is wrong with its last words, where they must have a form."""
        assert self._giving is not None
        words = "" if self._running.steers else self._answering.correction(step.items)
        if words:
            await self._giving.words(words)
        return bool(words)

    def _leftovers(self, error: ErrorInfo | None) -> list[AnyPayload]:
        leftovers: list[AnyPayload] = self._step.cut_off(error) if self._step else []
        leftovers += self._compaction.leftovers(error) if self._compaction else []
        leftovers += self._asides.leftovers(error) if self._asides else []
        return leftovers + self._calls.leftovers()


async def _close(chunks: object) -> None:
    """Stop the model where its stream is a generator; it must not go on speaking to nobody."""
    close = getattr(chunks, "aclose", None)
    if close is not None:
        await close()
