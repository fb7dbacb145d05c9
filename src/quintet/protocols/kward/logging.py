"""logging/stats: figures of this machine's own log, over a range of the calendar. Nobody's words are in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from quintet.domain.errors import Invalid
from quintet.engine.calendar import Range, range_of
from quintet.engine.telemetry_stats import Spread, TelemetryStats
from quintet.protocols.kward import models as wire
from quintet.protocols.kward.client import Client
from quintet.protocols.kward.errors import BadArgument
from quintet.rpc.call import Call
from quintet.rpc.rows import Family

LOGGING = Family("logging", form="either")
OFF = "Telemetry logging is disabled. Enable logging and at least one category in the settings' table `logging`."


class StatsParams(wire.Wire, frozen=True):
    range: Any = None


class Period(wire.Wire, frozen=True):
    input: str
    count: int
    unit: str
    start_at: str
    end_at: str


class Stats(wire.Wire, frozen=True):
    range: Period
    log_dir: str
    enabled_categories: list[str]
    record_count: int
    records_by_category: dict[str, int]
    records_by_event: dict[str, int]
    usage_stats: dict[str, Any]
    performance: dict[str, Any]
    tools: dict[str, Any]
    errors: dict[str, Any]


@LOGGING.method(
    "logging/stats", params=StatsParams, result=Stats, summary="What was used, how long it took, what failed."
)
async def stats(call: Call[Client], params: StatsParams) -> Stats:
    telemetry, clock = call.state.house.keeping.telemetry, call.state.house.feed.clock
    categories = telemetry.categories()
    if not categories:
        raise BadArgument(OFF)
    said = params.range if isinstance(params.range, str) else "" if params.range is None else "?"
    try:
        period = range_of(said, datetime.fromtimestamp(clock.now_ms() / 1000, UTC))
    except Invalid as error:
        raise BadArgument(error.message) from None
    found = TelemetryStats()

    def take(record: Mapping[str, Any]) -> None:
        if record.get("category") in categories:
            found.add(record)

    await telemetry.settled()
    await telemetry.log.read(period.start, period.end, take)
    return _told(found, period, telemetry.log.directory, list(categories))


def _told(found: TelemetryStats, period: Range, directory: str, categories: list[str]) -> Stats:
    errors = {key: _counts(found.errors.get(name, Counter())) for key, name in _ERRORS.items()}
    return Stats(
        Period(period.said, period.count, period.unit, _second(period.start), _second(period.end)),
        directory,
        categories,
        found.records,
        _counts(found.by_category),
        _counts(found.by_event),
        {"modelUsageEvents": found.usages, "totals": dict(sorted(found.tokens.items()))},
        {"events": {event: _spread(spread) for event, spread in sorted(found.took.items())}},
        {
            "calls": found.calls,
            "resultBytes": found.result_bytes,
            "byName": _counts(found.tools),
            "byStatus": _counts(found.tool_statuses),
        },
        {"count": found.error_count} | errors,
    )


_ERRORS = {"byEvent": "event", "byClass": "error_class", "byProvider": "provider", "byCode": "error_code"}


def _spread(spread: Spread) -> dict[str, Any]:
    took = {"min": spread.least, "avg": spread.mean, "max": spread.most}
    rounded = {name: None if value is None else round(value, 1) for name, value in took.items()}
    return {"count": spread.count, "statuses": _counts(spread.statuses), "durationMs": rounded}


def _counts(counter: Counter[str]) -> dict[str, int]:
    return dict(sorted(counter.items()))


def _second(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
