"""Statistics: what was used, per local day and model. A projection of the journal, read in pages and kept nowhere."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable

import msgspec

from quintet.domain.event import Event, StepFinished, ToolFinished, TurnFinished
from quintet.domain.item import ResultStatus
from quintet.domain.ports import Journal, Models
from quintet.domain.turn import Turn
from quintet.engine.costs import Tally

PAGE = 500


class ToolUse(msgspec.Struct):
    calls: int = 0
    failed: int = 0


class Statistics(msgspec.Struct):
    days: dict[str, dict[str, Tally]] = {}  # local day -> model -> what it used
    turns: dict[str, Counter[str]] = {}  # local day -> how turns ended
    tools: dict[str, ToolUse] = {}
    damaged: int = 0  # events that could not be read

    def by_model(self) -> dict[str, Tally]:
        return _joined((model, tally) for models in self.days.values() for model, tally in models.items())

    def by_day(self) -> dict[str, Tally]:
        return _joined((day, tally) for day, models in self.days.items() for tally in models.values())

    def total(self) -> Tally:
        return _joined(("", tally) for tally in self.by_day().values()).get("", Tally())


def _joined(tallies: Iterable[tuple[str, Tally]]) -> dict[str, Tally]:
    found: dict[str, Tally] = {}
    for name, tally in tallies:
        found.setdefault(name, Tally()).join(tally)
    return found


async def statistics(journal: Journal, models: Models, *, since_ms: int, root: str = "") -> Statistics:
    """Everything since then, of a root thread or of all."""
    found, after = Statistics(), 0
    while page := await journal.usage(after=after, since_ms=since_ms, root=root, limit=PAGE):
        after = page[-1].seq
        for event in page:
            if event.at_ms >= since_ms:
                _count(found, event, models)
    return found


def _count(found: Statistics, event: Event, models: Models) -> None:
    day = local_day(event.at_ms)
    match event.payload:
        case StepFinished(model=model, usage=usage):
            found.days.setdefault(day, {}).setdefault(model, Tally()).add(usage, models.info(model))
        case ToolFinished(name=name, status=status):
            use = found.tools.setdefault(name, ToolUse())
            use.calls += 1
            use.failed += status is not ResultStatus.OK
        case TurnFinished(state=state):
            found.turns.setdefault(day, Counter())[state.value] += 1
        case None:
            found.damaged += 1


def local_day(at_ms: int) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(at_ms / 1000))


async def used_by(journal: Journal, models: Models, turn: Turn, root: str) -> Tally:
    """What one turn used, its subagents with it: while it runs, whatever happens below its thread happens for it."""
    tally, after = Tally(), 0
    while page := await journal.usage(after=after, since_ms=turn.started_ms or turn.queued_ms, root=root, limit=PAGE):
        after = page[-1].seq
        for event in page:
            during = turn.started_ms <= event.at_ms <= (turn.finished_ms or event.at_ms)
            mine = event.turn == turn.id or (event.thread != turn.thread and during)
            if mine and isinstance(event.payload, StepFinished):
                tally.add(event.payload.usage, models.info(event.payload.model))
    return tally
