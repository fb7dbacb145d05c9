"""Telemetry's sums over a range: a fold over records, one at a time. Pure; words of errors do not come into it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec


class Spread(msgspec.Struct):
    """How long something took, and how it ended."""

    count: int = 0
    statuses: Counter[str] = msgspec.field(default_factory=Counter)
    least: float | None = None
    most: float | None = None
    total: float = 0.0
    timed: int = 0

    def add(self, record: Mapping[str, Any]) -> None:
        self.count += 1
        _count(self.statuses, record.get("status"))
        took = _number(record.get("duration_ms"))
        if took is not None:
            self.least = took if self.least is None else min(self.least, took)
            self.most = took if self.most is None else max(self.most, took)
            self.total += took
            self.timed += 1

    @property
    def mean(self) -> float | None:
        return self.total / self.timed if self.timed else None


class TelemetryStats(msgspec.Struct):
    records: int = 0
    by_category: Counter[str] = msgspec.field(default_factory=Counter)
    by_event: Counter[str] = msgspec.field(default_factory=Counter)
    usages: int = 0
    tokens: Counter[str] = msgspec.field(default_factory=Counter)
    took: dict[str, Spread] = {}
    calls: int = 0
    result_bytes: int = 0
    tools: Counter[str] = msgspec.field(default_factory=Counter)
    tool_statuses: Counter[str] = msgspec.field(default_factory=Counter)
    errors: dict[str, Counter[str]] = {}
    error_count: int = 0

    def add(self, record: Mapping[str, Any]) -> None:
        category, event = record.get("category"), record.get("event")
        self.records += 1
        _count(self.by_category, category)
        _count(self.by_event, event)
        if category == "tokens" and event == "model_usage":
            self._usage(record.get("usage"))
        elif category == "performance" and isinstance(event, str) and event:
            self.took.setdefault(event, Spread()).add(record)
        elif category == "tools" and event == "tool_call":
            self.calls += 1
            self.result_bytes += int(_number(record.get("result_bytes")) or 0)
            _count(self.tools, record.get("tool_name"))
            _count(self.tool_statuses, record.get("status"))
        elif category == "errors":
            self.error_count += 1
            for key in ("event", "error_class", "provider", "error_code"):
                _count(self.errors.setdefault(key, Counter()), record.get(key))

    def _usage(self, usage: Any) -> None:
        self.usages += 1
        for name, value in usage.items() if isinstance(usage, dict) else ():
            number = _number(value)
            if isinstance(name, str) and number is not None:
                self.tokens[name] += int(number)


def _count(counter: Counter[str], key: object) -> None:
    if isinstance(key, str | int) and not isinstance(key, bool) and str(key):
        counter[str(key)] += 1


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
