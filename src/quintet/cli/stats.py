"""stats: turns, tokens, cost, cache hits and tools, per day and model. Computed from the journal, as it stands."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from typing import Any

from quintet.cli.amounts import used
from quintet.cli.event_json import encode_line
from quintet.cli.invoke import Invocation, positive
from quintet.engine.costs import Tally
from quintet.engine.spending import local_midnight_ms
from quintet.engine.statistics import Statistics, local_day, statistics

DAYS = 30
BAR = 30
DAY_MS = 24 * 3600 * 1000
MOST_TOOLS = 15


def add_flags(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    parser.add_argument("--days", type=positive, default=DAYS, metavar="N", help="today and the days before it")
    parser.add_argument("--thread", default="", help="of this thread and its subagents only")


async def run(invocation: Invocation) -> int:
    flags = invocation.flags
    async with invocation.open() as app:
        root = ""
        if flags.thread:
            root = (await app.threads.get(await app.threads.find(flags.thread))).thread.root
        # From noon to noon is a whole number of days, whatever the clocks do in between.
        noon = local_midnight_ms(app.clock.now_ms()) + DAY_MS // 2
        since_ms = max(1, local_midnight_ms(noon - (flags.days - 1) * DAY_MS))
        found = await statistics(app.journal, app.models, since_ms=since_ms, root=root)
    if invocation.json:
        invocation.screen.raw(encode_line(_json(found, since_ms)))
    elif not found.turns and not found.days:
        invocation.screen.note(f"Nothing was done since {local_day(since_ms)}.")
    else:
        _show(invocation, found, since_ms)
    return 0


def _json(found: Statistics, since_ms: int) -> dict[str, Any]:
    return {
        "since": local_day(since_ms),
        "turns": sum(_ends(found).values()),
        "turns_by_end": dict(_ends(found)),
        "total": _tally_json(found.total()),
        "days": [
            {"day": day, "turns": sum(found.turns.get(day, {}).values()), **_tally_json(tally)}
            | {"models": {m: _tally_json(t) for m, t in found.days[day].items()}}
            for day, tally in sorted(found.by_day().items())
        ],
        "models": {model: _tally_json(tally) for model, tally in found.by_model().items()},
        "tools": {name: {"calls": use.calls, "failed": use.failed} for name, use in found.tools.items()},
        "damaged": found.damaged,
    }


def _tally_json(tally: Tally) -> dict[str, Any]:
    return {
        "steps": tally.steps,
        "input_tokens": tally.input_tokens,
        "output_tokens": tally.output_tokens,
        "cached_tokens": tally.cached_tokens,
        "cache_hit_ratio": tally.cache_hits,
        "cost_usd": tally.cost,  # null: not all of it is known
        "known_cost_usd": tally.usd,
        "exact": tally.exact,
        "steps_of_unknown_cost": tally.unknown_cost,
        "steps_of_unknown_usage": tally.unknown_usage,
    }


def _ends(found: Statistics) -> Counter[str]:
    return sum(found.turns.values(), Counter())


def _show(invocation: Invocation, found: Statistics, since_ms: int) -> None:
    screen, total, ends = invocation.screen, found.total(), _ends(found)
    how = ", ".join(f"{n} {end}" for end, n in ends.most_common())
    screen.row(f"Since {local_day(since_ms)}: {sum(ends.values())} turns ({how}), {total.steps} model calls")
    screen.row(f"  {used(total)}")
    if total.unknown_usage:
        screen.row(f"  {total.unknown_usage} calls were not counted by their provider")
    screen.line("\nPer day")
    for line in _bars(found.by_day()):
        screen.row(f"  {line}")
    screen.line("\nPer model")
    for model, tally in sorted(found.by_model().items(), key=lambda row: -row[1].usd):
        screen.row(f"  {model:<38} ", f"{tally.steps:>5} calls  {used(tally)}")
    if found.tools:
        screen.line("\nTools")
        ranked = sorted(found.tools.items(), key=lambda row: -row[1].calls)
        for name, use in ranked[:MOST_TOOLS]:
            screen.line(f"  {name:<20} {use.calls:>6}{f'  {use.failed} failed' if use.failed else ''}")
        if ranked[MOST_TOOLS:]:
            screen.line(f"  and {len(ranked) - MOST_TOOLS} more (all with --json)")
    if found.damaged:
        screen.note(f"{found.damaged} damaged events are not in this.")


def _bars(days: dict[str, Tally]) -> list[str]:
    """A bar per day with something on it: by cost where any is known, else by tokens, else by model calls."""
    sizes = {day: tally.usd for day, tally in days.items()}
    if not any(sizes.values()):
        sizes = {day: float(t.input_tokens + t.output_tokens) for day, t in days.items()}
    if not any(sizes.values()):
        sizes = {day: float(t.steps) for day, t in days.items()}
    largest = max(sizes.values(), default=0.0) or 1.0
    lines = []
    for day in sorted(days):
        bar = "█" * max(round(BAR * sizes[day] / largest), 1 if sizes[day] else 0)
        weekday = time.strftime("%a", time.strptime(day, "%Y-%m-%d"))
        lines.append(f"{weekday} {day}  {bar:<{BAR}}  {used(days[day])}".rstrip())
    return lines
