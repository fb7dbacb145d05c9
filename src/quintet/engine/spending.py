"""Spending: asked before each model call whether there is money left for it. Budgets of a turn, a thread and a day.

What other turns and processes spend meanwhile counts too: it is read from the journal, from where it was last read.
A budget that cannot be kept is never ignored: a model whose price nobody knows is not asked at all.
"""

from __future__ import annotations

import time

import msgspec

from quintet.domain.errors import BudgetSpent, NotConfigured
from quintet.domain.event import Event, StepFinished
from quintet.domain.model import ModelInfo
from quintet.domain.ports import Clock, Journal, Models
from quintet.domain.thread import Thread
from quintet.domain.turn import Turn
from quintet.engine.costs import Tally, dollars, is_priced

PAGE = 500


class Budget(msgspec.Struct, frozen=True):
    """US dollars; None: no limit."""

    turn: float | None = None
    thread: float | None = None
    day: float | None = None

    @property
    def limited(self) -> bool:
        return any(limit is not None for limit in (self.turn, self.thread, self.day))


def refuse_unpriced(budget: Budget, info: ModelInfo) -> None:
    """With a budget, a model without a price is refused before anything is spent on it."""
    if budget.limited and not is_priced(info):
        raise NotConfigured(
            f"A budget is set, but nobody knows what {info.reference} costs, so it could not be kept.",
            next_step=f'Write `input_price` and `output_price` (dollars per million tokens) under [models."'
            f'{info.reference}"] in config.toml, or leave the budget out.',
            model=info.reference,
        )


def local_midnight_ms(now_ms: int) -> int:
    """When the local day began in which this moment lies."""
    here = time.localtime(now_ms / 1000)
    return int(time.mktime((here.tm_year, here.tm_mon, here.tm_mday, 0, 0, 0, 0, 0, -1)) * 1000)


class Spending:
    def __init__(
        self, journal: Journal, clock: Clock, models: Models, budget: Budget, thread: Thread, turn: Turn
    ) -> None:
        self._journal = journal
        self._clock = clock
        self._models = models
        self._budget = budget
        self._thread = thread
        self._turn = turn
        self._outer = ""  # the turn of the root thread that this one works for; itself, unless it is a subagent's
        self._outer_began = 0
        self._in_turn, self._in_thread, self._in_day = Tally(), Tally(), Tally()
        self._tree_read = self._day_read = self._midnight_ms = 0
        self._silent = False  # a step of this turn succeeded without a word of what it used

    async def allow(self, model: str) -> None:
        """Returns if the next call may be made; BudgetSpent or NotConfigured if not."""
        if not self._budget.limited:
            return
        refuse_unpriced(self._budget, self._models.info(model))
        if self._budget.turn is not None or self._budget.thread is not None:
            await self._read_tree()
        if self._budget.day is not None:
            await self._read_day()
        self._check("turn", self._in_turn, self._budget.turn, "--budget or `turn_budget` in [limits]")
        self._check("thread", self._in_thread, self._budget.thread, "`thread_budget` in [limits]")
        self._check("day", self._in_day, self._budget.day, "`day_budget` in [limits]")
        if self._silent:
            raise BudgetSpent(
                f"A budget is set, but {model} did not say what its last answer used, so it could not be kept.",
                next_step="Leave the budget out, or use a model whose provider reports usage.",
            )

    def _check(self, whose: str, tally: Tally, limit: float | None, where: str) -> None:
        if limit is None or tally.usd < limit:
            return
        steps = "one step" if tally.unknown_cost == 1 else f"{tally.unknown_cost} steps"
        apart = f", not counting {steps} whose cost is unknown" if tally.unknown_cost else ""
        raise BudgetSpent(
            f"The budget of this {whose} is spent: {dollars(tally.usd)} of {dollars(limit)}{apart}.",
            next_step=f"What was done is kept. Raise it with {where} and go on, or wait for another {whose}.",
            budget=whose,
            spent=round(tally.usd, 6),
            limit=limit,
        )

    async def _read_tree(self) -> None:
        """What this thread and those around and below it have spent."""
        if not self._outer:
            root = await self._journal.thread(self._thread.root)
            self._outer = root.active_turn or self._turn.id
        while page := await self._journal.usage(after=self._tree_read, root=self._thread.root, limit=PAGE):
            for event in page:
                self._tree_read = event.seq
                if isinstance(event.payload, StepFinished):
                    self._count_in_tree(event, event.payload)

    def _count_in_tree(self, event: Event, step: StepFinished) -> None:
        info = self._models.info(step.model)
        cost = self._in_thread.add(step.usage, info)
        if event.turn == self._outer and not self._outer_began:
            self._outer_began = event.seq
        # While the outer turn runs, whatever happens in its tree happens for it.
        if event.turn == self._turn.id or (self._outer_began and event.seq >= self._outer_began):
            self._in_turn.add(step.usage, info)
        if event.turn == self._turn.id and step.error is None and cost.usd is None:
            self._silent = True

    async def _read_day(self) -> None:
        """What everybody has spent since midnight, here."""
        midnight = local_midnight_ms(self._clock.now_ms())
        if midnight != self._midnight_ms:
            self._midnight_ms, self._day_read, self._in_day = midnight, 0, Tally()
        while page := await self._journal.usage(after=self._day_read, since_ms=midnight, limit=PAGE):
            for event in page:
                self._day_read = event.seq
                if isinstance(event.payload, StepFinished) and event.at_ms >= midnight:
                    cost = self._in_day.add(event.payload.usage, self._models.info(event.payload.model))
                    own = event.turn == self._turn.id and event.payload.error is None
                    self._silent = self._silent or (own and cost.usd is None)
