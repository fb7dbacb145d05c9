"""Telemetry: what turns of this process took and what went wrong, as small records without anybody's words.

Off until the person turns it on, category by category; it stays on this machine. Knows the log by its port alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from quintet.domain.errors import ErrorInfo
from quintet.domain.event import Event, ItemAdded, StepFinished, ToolFinished, TurnFinished, TurnStarted
from quintet.domain.item import ResultStatus, ToolResult
from quintet.domain.model import Usage
from quintet.domain.ports import TelemetryLog
from quintet.domain.turn import TurnState
from quintet.engine.feed import Feed

CATEGORIES = ("tokens", "performance", "tools", "errors")
_WORDS = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("0", "false", "no", "off"), False),
}
_STATUS = {TurnState.DONE: "completed", TurnState.CANCELLED: "canceled", TurnState.INTERRUPTED: "canceled"}
Record = dict[str, Any]


def enabled_categories(settings: Mapping[str, Any], environment: Mapping[str, str], prefix: str) -> tuple[str, ...]:
    """Which are on: the variables go before the settings' table `logging`, and nothing is on without the switch."""
    said = settings.get("logging")
    said = said if isinstance(said, dict) else {}

    def on(key: str, variable: str) -> bool:
        given = _WORDS.get(environment.get(variable, "").strip().lower())
        return said.get(key) is True if given is None else given

    if not on("enabled", prefix):
        return ()
    return tuple(name for name in CATEGORIES if on(name, f"{prefix}_{name.upper()}"))


class Telemetry:
    def __init__(
        self,
        feed: Feed,
        log: TelemetryLog,
        categories: Callable[[], tuple[str, ...]],
        note: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._feed = feed
        self.log = log
        self.categories = categories
        self._note = note
        self._begun: dict[str, int] = {}  # turns of this process: when they began
        self._calls: dict[tuple[str, str], ToolFinished] = {}  # ended, and their result not seen yet
        self._records: list[Record] = []
        self._writing: asyncio.Task[None] | None = None
        self._stop = feed.handle(self._hear)

    async def settled(self) -> None:
        """Everything that was heard is written."""
        while self._writing is not None:
            await asyncio.wait({self._writing})

    async def close(self) -> None:
        self._stop()
        await self.settled()

    def _hear(self, event: Event) -> None:
        match event.payload:
            case TurnStarted(owner=owner) if owner == self._feed.journal.owner:
                self._begun[event.turn] = event.at_ms
            case TurnFinished() as finished if event.turn in self._begun:
                self._turn(event, finished, self._begun.pop(event.turn))
            case StepFinished() as finished if event.turn in self._begun:
                self._step(event, finished)
            case ToolFinished() as finished if event.turn in self._begun:
                self._calls[event.turn, finished.call_id] = finished
            case ItemAdded(item=item) if isinstance(item.body, ToolResult) and event.turn in self._begun:
                self._call(event, item.body)

    def _turn(self, event: Event, finished: TurnFinished, begun_ms: int) -> None:
        status = _STATUS.get(finished.state, "failed")
        self._keep(event, "performance", "turn", duration_ms=event.at_ms - begun_ms, status=status)
        if status == "failed" and finished.error is not None:
            self._keep(event, "errors", "turn_error", **_error(finished.error))
        for key in [key for key in self._calls if key[0] == event.turn]:
            del self._calls[key]

    def _step(self, event: Event, finished: StepFinished) -> None:
        provider, _, model = finished.model.partition("/")
        if finished.usage is not None:
            self._keep(event, "tokens", "model_usage", provider=provider, model=model, usage=_usage(finished.usage))

    def _call(self, event: Event, result: ToolResult) -> None:
        """A call that was refused has a result and never ran: so it took no time."""
        ended = self._calls.pop((event.turn, result.call_id), None)
        ended = ended or ToolFinished(result.call_id, result.name, result.status)
        more = {"tool_name": ended.name, "status": ended.status.value, "duration_ms": ended.elapsed_ms}
        self._keep(event, "tools", "tool_call", **more, result_bytes=len(result.text.encode("utf-8", "replace")))
        self._keep(event, "performance", "tool_call", **more)
        if ended.status is ResultStatus.ERROR:
            self._keep(event, "errors", "tool_error", tool_name=ended.name, error_class="tool")

    def _keep(self, event: Event, category: str, name: str, **more: Any) -> None:
        if category not in self.categories():
            return
        stamp = datetime.fromtimestamp(event.at_ms / 1000, UTC).isoformat(timespec="milliseconds")
        self._records.append({"timestamp": stamp.replace("+00:00", "Z"), "category": category, "event": name} | more)
        if self._writing is None:
            self._writing = asyncio.get_running_loop().create_task(self._write())

    async def _write(self) -> None:
        try:
            while self._records:
                records, self._records = self._records, []
                await self.log.append(records)
        except OSError as error:
            self._records = []
            self._note(f"Telemetry could not be written: {error.strerror}")
        finally:
            self._writing = None


def _usage(usage: Usage) -> Record:
    """What the provider said, under the names the log uses."""
    given, said = usage.input_tokens, usage.output_tokens
    total = None if given is None and said is None else (given or 0) + (said or 0)
    named = {
        "input_tokens": given,
        "output_tokens": said,
        "cache_read_tokens": usage.cached_tokens,
        "cache_write_tokens": usage.cache_written_tokens,
        "total_tokens": total,
    }
    return {name: number for name, number in named.items() if number is not None}


def _error(error: ErrorInfo) -> Record:
    """Its kind, never its words: they may hold anything."""
    said = {"provider": error.data.get("provider"), "error_code": error.data.get("reason")}
    return {"error_class": error.code} | {k: v for k, v in said.items() if isinstance(v, str) and v}
