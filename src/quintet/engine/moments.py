"""Moments: the points of a turn at which hooks are heard, each with what it tells them and what their block means.

The names of the fields are those that published hooks read. Everything here costs nothing where no hook is due.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from quintet.domain.errors import STORAGE_ERRORS, Denied, QuintetError
from quintet.domain.hook import HookEvent, HookVerdict
from quintet.domain.interaction import Approval, Question, Request
from quintet.domain.item import ResultStatus, TextPart, ToolCall, tool_of
from quintet.domain.notice import Notice, Severity
from quintet.domain.tool import ToolOutcome
from quintet.engine.hooks import AllHooks, TurnHooks

if TYPE_CHECKING:
    from quintet.engine.running import RunningTurn


class Moments:
    """Of one turn."""

    def __init__(self, whole: AllHooks | None, running: RunningTurn) -> None:
        self._whole = whole
        self._running = running
        self._hooks = TurnHooks(whole, running)
        self._notices: set[asyncio.Task[HookVerdict]] = set()
        self._held = False  # a hook has made the turn go on since somebody last said something

    # --- the turn ------------------------------------------------------------------------------------------------
    async def begun(self) -> None:
        """The thread's first turn in this process."""
        if self._whole is not None and self._whole.begins(self._running):
            source = "startup" if self._running.thread.last_ordinal <= 1 else "resume"
            await self._hooks.fire(HookEvent.THREAD_BEGUN, source, {"source": source})

    async def input_given(self) -> HookVerdict:
        turn = self._running.turn
        words = turn.aside or "\n".join(part.text for part in turn.parts if isinstance(part, TextPart))
        return await self._hooks.fire(HookEvent.INPUT_GIVEN, "", {"prompt": words})

    def steered(self) -> None:
        """Somebody said something: a hook may make the turn go on once more."""
        self._held = False

    async def rests(self) -> str:
        """Why the turn should go on although the model has ended; never twice in a row."""
        if not self._hooks.due(HookEvent.TURN_RESTS):
            return ""
        again, self._held = self._held, True
        fields = {"stop_hook_active": again}
        return (await self._hooks.fire(HookEvent.TURN_RESTS, "", fields, blockable=not again)).reason

    async def failed(self, error: QuintetError) -> None:
        """Not where nothing can be told any more, nor to hooks what a hook has ended."""
        if not isinstance(error, STORAGE_ERRORS) and "hook" not in error.data:
            fields = {"error_type": error.code, "error_message": error.message}
            await self._hooks.fire(HookEvent.TURN_FAILED, error.code, fields)

    # --- calls ---------------------------------------------------------------------------------------------------
    def hears_calls(self, call: ToolCall) -> bool:
        return bool(self._hooks.due(HookEvent.BEFORE_TOOL, call.name, tool_of(call)))

    async def before_call(self, call: ToolCall) -> HookVerdict:
        told, own = self._told(call)
        return await self._hooks.fire(HookEvent.BEFORE_TOOL, call.name, told, call_id=call.call_id, own=own)

    async def after_call(self, call: ToolCall, outcome: ToolOutcome) -> ToolOutcome:
        """A block's reason goes to the model, beside what came of the call."""
        fine = outcome.status is ResultStatus.OK
        event = HookEvent.AFTER_TOOL if fine else HookEvent.AFTER_TOOL_FAILED
        if not self._hooks.due(event, call.name, tool_of(call)):
            return outcome
        came = {"tool_output" if fine else "error": outcome.text}
        told, (name, own) = self._told(call)
        verdict = await self._hooks.fire(event, call.name, told | came, call_id=call.call_id, own=(name, own | came))
        if not verdict.blocks:
            return outcome
        return replace(outcome, text=f"{outcome.text}\n\n[a hook says: {verdict.reason}]")

    def _told(self, call: ToolCall) -> tuple[dict[str, Any], tuple[str, dict[str, Any]]]:
        """What hooks are told of a call: as the model wrote it, and under the tool's own name."""
        given = msgspec.json.decode(call.input or "{}")
        name, own = self._running.starter.spellings.own_call(call.name, given)
        fields = {"tool_name": call.name, "tool_input": given, "tool_call_id": call.call_id}
        return fields, (name, fields | {"tool_name": name, "tool_input": own})

    # --- compaction ----------------------------------------------------------------------------------------------
    async def before_compaction(self, trigger: str, tokens: int) -> Denied | None:
        fields = {"trigger": trigger, "token_count": tokens}
        verdict = await self._hooks.fire(HookEvent.BEFORE_COMPACTION, trigger, fields)
        if not verdict.blocks:
            return None
        words = f"A hook held the compaction back: {verdict.reason}"
        return Denied(words, next_step="Change the hook, or go on without.", hook=HookEvent.BEFORE_COMPACTION.value)

    async def after_compaction(self, trigger: str, tokens: int) -> None:
        fields = {"trigger": trigger, "estimated_token_count": tokens}
        await self._hooks.fire(HookEvent.AFTER_COMPACTION, trigger, fields)

    # --- subagents -----------------------------------------------------------------------------------------------
    async def subagent_started(self, agent: str, prompt: str) -> HookVerdict:
        """Before a subagent's turn is begun. A block means that it is not."""
        return await self._hooks.fire(HookEvent.SUBAGENT_STARTED, agent, {"agent_name": agent, "prompt": prompt})

    async def subagent_rests(self, agent: str, response: str) -> None:
        await self._hooks.fire(HookEvent.SUBAGENT_RESTS, agent, {"agent_name": agent, "response": response})

    # --- beside the turn -----------------------------------------------------------------------------------------
    def waits(self, request: Request) -> None:
        """Somebody should look. Goes on beside the turn, as long as that lasts; nothing waits for it."""
        if isinstance(request, Approval):
            kind, title, body = "approval", f"Approval is needed: {request.title}", request.command
        elif isinstance(request, Question):
            kind, title, body = "question", "The model has a question", request.items[0].text
        else:
            return  # a client's, which knows by itself
        self._notify(kind, title, body, Severity.INFO)

    def noticed(self, notice: Notice) -> None:
        """The model is told of something. The same way: nothing waits for it."""
        self._notify(notice.type, notice.title, notice.body, notice.severity, sink="llm")

    def _notify(self, kind: str, title: str, body: str, severity: Severity, **more: str) -> None:
        if self._hooks.due(HookEvent.NOTIFIED, kind):
            fields = {"notification_type": kind, "title": title, "body": body, "severity": severity.value, **more}
            self._notices.add(asyncio.ensure_future(self._hooks.fire(HookEvent.NOTIFIED, kind, fields)))

    async def close(self) -> None:
        """The turn ends: what still goes on beside it is ended."""
        for task in self._notices:
            task.cancel()
        await asyncio.gather(*self._notices, return_exceptions=True)
        self._notices.clear()
