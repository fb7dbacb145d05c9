"""What an attached terminal shows of a server's events. Writes; asks nobody."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from quintet.cli.terminal import Screen, safe_line
from quintet.client.envelope import Envelope
from quintet.domain.errors import NotFound
from quintet.domain.shown import shown

WIDTH = 160


class AttachedView:
    """One request is shown at a time, and an answer is for that one: what nobody has read cannot be allowed."""

    def __init__(self, screen: Screen, forget_typed: Callable[[], bool]) -> None:
        self._screen = screen
        self._forget_typed = forget_typed
        self._waiting: dict[str, dict[str, Any]] = {}  # the first of them is shown
        self._in_line = False  # text stands on the line that has not ended

    def asks(self) -> str:
        """The request that is shown."""
        if not self._waiting:
            raise NotFound("Nothing waits for an answer.", next_step="")
        return next(iter(self._waiting))

    def asked(self, approval: dict[str, Any]) -> None:
        if approval["id"] in self._waiting:
            return
        self._waiting[approval["id"]] = approval
        if len(self._waiting) == 1:
            self._show_request()
        else:
            self.note(f"  (one more request waits: {approval['id']})")

    def _show_request(self) -> None:
        approval = self._waiting[self.asks()]
        self._break()
        if self._forget_typed():
            self.note("  (what you typed before this was not sent)")
        tool = approval.get("tool") or {}
        self._screen.line(f"? {approval['id']}  {tool.get('name') or tool.get('id', '')}  ({approval.get('tid', '')})")
        for name, value in (approval.get("input") or {}).items():
            text = value if isinstance(value, str) else json.dumps(value)
            self._screen.line(f"    {safe_line(name)}: {shown(text)}")
        self._screen.line("  allow | deny WHY | always | never")

    def _resolved(self, data: dict[str, Any]) -> None:
        name = str(data.get("id"))
        was_shown = bool(self._waiting) and name == self.asks()
        if self._waiting.pop(name, None) is None:
            return
        self.note(f"{name}: {data.get('decision')} {data.get('reason') or ''}".rstrip())
        if was_shown and self._waiting:
            self._show_request()

    def note(self, words: str) -> None:
        self._break()
        self._screen.note(words)

    def show(self, envelope: Envelope) -> None:
        data = envelope.data
        match envelope.kind:
            case "text.delta":
                self._screen.write(str(data.get("delta", "")))
                self._in_line = True
            case "text.end":
                self._break()
            case "approval.requested":
                self.asked(data)
            case "approval.resolved":
                self._resolved(data)
            case "tool.input.end":
                self.note(f"→ {safe_line(json.dumps(data.get('input')))[:WIDTH]}")
            case "tool.result":
                self.note("← " + safe_line(str(data.get("error") or data.get("result") or "done"))[:WIDTH])
            case "run.started":
                self.note(f"run {data.get('runId')} in {data.get('tid')}")
            case "run.finished":
                error = data.get("error") or {}
                self.note(f"run {data.get('runId')}: {data.get('status')} {error.get('message', '')}".rstrip())
            case "replay.gap" | "replay.reset":
                self.note("--- some of what happened meanwhile is no longer kept ---")
            case "connected":
                self.note("attached; Ctrl-C leaves")

    def _break(self) -> None:
        if self._in_line:
            self._in_line = False
            self._screen.line()
