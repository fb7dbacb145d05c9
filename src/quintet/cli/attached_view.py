"""What an attached terminal shows of a server's events. Writes; asks nobody."""

from __future__ import annotations

import json
from typing import Any

from quintet.cli.terminal import Screen, safe_line
from quintet.client.envelope import Envelope
from quintet.domain.errors import NotFound
from quintet.domain.shown import shown

WIDTH = 160


class AttachedView:
    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._waiting: dict[str, dict[str, Any]] = {}
        self._in_line = False  # text stands on the line that has not ended

    def oldest(self) -> str:
        """The approval that waits longest."""
        if not self._waiting:
            raise NotFound("Nothing waits for an answer.", next_step="")
        return next(iter(self._waiting))

    def asked(self, approval: dict[str, Any]) -> None:
        self._waiting[approval["id"]] = approval
        self._break()
        tool = approval.get("tool") or {}
        self._screen.line(f"? {approval['id']}  {tool.get('name') or tool.get('id', '')}  ({approval.get('tid', '')})")
        for name, value in (approval.get("input") or {}).items():
            text = value if isinstance(value, str) else json.dumps(value)
            self._screen.line(f"    {safe_line(name)}: {shown(text)}")
        self._screen.line("  allow | deny WHY | always | never")

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
                if self._waiting.pop(str(data.get("id")), None) is not None:
                    self.note(f"{data.get('id')}: {data.get('decision')} {data.get('reason') or ''}".rstrip())
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
