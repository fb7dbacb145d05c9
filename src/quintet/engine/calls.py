"""Calls: from a model's wish to its result. Check, judge, ask, commit the intent, run, commit the result."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from quintet.domain.errors import STORAGE_ERRORS, Denied, QuintetError, as_quintet_error
from quintet.domain.event import ItemAdded, TodoUpdated, ToolFinished, ToolOutputDelta, ToolStarted
from quintet.domain.ids import new_id
from quintet.domain.interaction import Approval, Decision, ExternalCall, Question, QuestionItem, Verdict
from quintet.domain.item import Item, ResultStatus, ToolCall, ToolResult
from quintet.domain.ports import Tool
from quintet.domain.principal import ENGINE
from quintet.domain.tool import Effect, Prepared, Todo, ToolOutcome, ToolSpec
from quintet.engine.feed import Feed
from quintet.engine.interactions import Interactions, OnAsk
from quintet.engine.policy import Judgement, Policy
from quintet.engine.policy import Verdict as PolicyVerdict
from quintet.engine.redaction import HOLD_S, RedactedStream
from quintet.engine.running import RunningTurn
from quintet.engine.storable import storable, storable_outcome

UNTRUSTED_RESULT_LIMIT = 200_000  # characters a client's own tool may return


class Calls:
    def __init__(self, feed: Feed, interactions: Interactions, policy: Policy, running: RunningTurn) -> None:
        self._feed = feed
        self._interactions = interactions
        self._policy = policy
        self._running = running
        self.open: dict[str, ToolCall] = {}  # asked for by the model, no result in the journal yet
        self.started: set[str] = set()  # whose intent is in the journal

    async def run_all(self, calls: Sequence[ToolCall]) -> list[Item]:
        """All at once. If one must end the turn, or the turn is stopped, the others are cancelled with it."""
        self.open = {c.call_id: c for c in calls}
        tasks = [asyncio.ensure_future(self._run(call)) for call in calls]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, call: ToolCall) -> Item:
        begun_s = self._feed.clock.monotonic_s()
        try:
            prepared, spec, tool = await self._prepare(call)
            verdict = await self._allowed_by(call, spec, prepared)
            if tool is None:
                outcome = await self._external(call)
            else:
                intent = ToolStarted(call.call_id, spec.name, spec.effect, prepared.title, prepared.digest, verdict)
                await self._feed.say(self._running.lease, intent)
                self.started.add(call.call_id)
                await asyncio.sleep(0)  # a cancel that came meanwhile is heard before anything happens
                outcome = await self._use(tool, call, prepared)
        except STORAGE_ERRORS:
            raise  # not the tool's failure: the turn itself cannot go on
        except _TurnEnds as ends:
            raise ends.error from None
        except asyncio.CancelledError as error:
            if _being_cancelled():
                raise
            outcome = _failure(error)  # the tool gave up by itself
        except Exception as error:
            outcome = _failure(error)
        return await self._finish(call, storable_outcome(outcome), begun_s)

    async def _use(self, tool: Tool, call: ToolCall, prepared: Prepared) -> ToolOutcome:
        context = _CallContext(self, call, prepared)
        try:
            return await tool.run(prepared, context)
        finally:
            context.release()

    async def _prepare(self, call: ToolCall) -> tuple[Prepared, ToolSpec, Tool | None]:
        starter = self._running.starter
        tool = starter.tools.get(call.name)
        spec = tool.spec if tool else starter.external_tools.get(call.name)
        if spec is None:
            raise _Refused(
                f"There is no tool named {call.name!r}. Offered: {', '.join(s.name for s in starter.specs())}."
            )
        arguments = _arguments(call)
        cwd = self._running.thread.settings.cwd
        if tool is None:
            return Prepared(call.name, arguments, cwd=cwd), spec, None
        return await tool.prepare(arguments, cwd), spec, tool

    async def _allowed_by(self, call: ToolCall, spec: ToolSpec, prepared: Prepared) -> str:
        """What allows the call, in words for the record; raises _Refused when nothing does."""
        while True:
            verdict = await self._judge(spec, prepared)
            if verdict.judgement is Judgement.DENY:
                raise _Refused(f"Not allowed here ({verdict.rule}).", ResultStatus.DENIED)
            if verdict.judgement is Judgement.ALLOW:
                # A grant may have been used up by another client since it was read; then judge again without it.
                if not verdict.grant or await self._feed.journal.use_grant(verdict.grant):
                    return verdict.rule
                continue
            decision = await self._ask(call, spec, prepared, verdict)
            if decision.verdict is Verdict.ALLOW:
                return f"allowed by {decision.by.name} through {decision.by.protocol}"
            if _nobody_there(decision):
                raise _TurnEnds(
                    Denied(
                        f"Approval is needed for: {prepared.title}.",
                        next_step="Run again with `--on-ask wait:SECONDS`, or allow it with a rule in config.toml.",
                    )
                )
            raise _Refused(_denial(decision), ResultStatus.DENIED)

    async def _judge(self, spec: ToolSpec, prepared: Prepared) -> PolicyVerdict:
        running = self._running
        thread = running.thread
        asks = spec.effect is not Effect.NONE
        grants = await self._feed.journal.grants(root=thread.root, project=thread.project) if asks else []
        return self._policy.judge(
            spec,
            prepared,
            running.mode,
            grants,
            protocol=running.starter.principal.protocol,
            root=thread.root,
            project=thread.project,
            now_ms=self._feed.clock.now_ms(),
        )

    async def _ask(self, call: ToolCall, spec: ToolSpec, prepared: Prepared, verdict: PolicyVerdict) -> Decision:
        request = Approval(
            tool=spec.name,
            title=prepared.title,
            command=prepared.command,
            cwd=prepared.cwd,
            paths=prepared.paths,
            diff=prepared.diff,
            digest=prepared.digest,
            reason=verdict.rule,
            notes=prepared.notes,
            offers=verdict.offers,
        )
        return await self._interact(call.call_id, request)

    async def _interact(self, call_id: str, request: Approval | Question | ExternalCall) -> Decision:
        running, starter = self._running, self._running.starter
        on_ask = OnAsk.WAIT if isinstance(request, ExternalCall) else starter.on_ask
        return await self._interactions.ask(
            running.lease,
            running.thread.root,
            call_id,
            request,
            on_ask=on_ask,
            timeout_s=starter.interaction_timeout_s,
        )

    async def _external(self, call: ToolCall) -> ToolOutcome:
        decision = await self._interact(call.call_id, ExternalCall(call.name, call.input))
        if decision.verdict is not Verdict.ANSWER:
            return ToolOutcome(f"The client did not run this tool ({decision.reason}).", ResultStatus.ERROR)
        text = str(decision.result.get("text", ""))
        if len(text) > UNTRUSTED_RESULT_LIMIT:
            text = f"{text[:UNTRUSTED_RESULT_LIMIT]}\n[cut: the client returned {len(text)} characters]"
        status = ResultStatus.ERROR if decision.result.get("is_error") else ResultStatus.OK
        return ToolOutcome(text, status)

    async def _finish(self, call: ToolCall, outcome: ToolOutcome, begun_s: float) -> Item:
        lease = self._running.lease
        body = ToolResult(
            call.call_id,
            call.name,
            outcome.status,
            outcome.text,
            outcome.message,
            outcome.display,
            outcome.changed_files,
            outcome.diff,
        )
        item = Item(new_id("itm"), lease.thread, lease.turn, 0, self._feed.clock.now_ms(), body)
        elapsed_ms = int((self._feed.clock.monotonic_s() - begun_s) * 1000)
        done = (
            [ToolFinished(call.call_id, call.name, outcome.status, elapsed_ms)] if call.call_id in self.started else []
        )
        events = await self._feed.say(lease, *done, ItemAdded(item))
        self.open.pop(call.call_id, None)
        added = events[-1].payload
        assert isinstance(added, ItemAdded)
        return added.item

    # --- what a running tool may use ----------------------------------------------------------------------------------
    def emit(self, delta: ToolOutputDelta) -> None:
        self._feed.push(delta, self._running.lease)

    def redacted_stream(self) -> RedactedStream | None:
        return None if self._feed.redactor.idle else RedactedStream(self._feed.redactor)

    async def ask_person(self, call_id: str, questions: Sequence[QuestionItem]) -> tuple[tuple[str, ...], ...] | None:
        decision = await self._interact(call_id, Question(tuple(questions)))
        if _nobody_there(decision):
            raise _TurnEnds(
                Denied(
                    "The model has a question, and nobody is there to answer it.",
                    next_step="Run again with `--on-ask wait:SECONDS`.",
                )
            )
        return decision.answers if decision.verdict is Verdict.ANSWER else None

    async def set_todos(self, todos: Sequence[Todo]) -> None:
        await self._feed.say(self._running.lease, TodoUpdated(tuple(todos)))


class _CallContext:
    """The ToolContext of one call."""

    def __init__(self, calls: Calls, call: ToolCall, prepared: Prepared) -> None:
        self.cwd = prepared.cwd or calls._running.thread.settings.cwd
        self.thread = calls._running.thread.id
        self.call_id = call.call_id
        self._calls = calls
        self._name = call.name
        self._index = 0
        self._streams: dict[str, RedactedStream | None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def emit_output(self, stream: str, text: str) -> None:
        if stream not in self._streams:
            self._streams[stream] = self._calls.redacted_stream()
        redacted, text = self._streams[stream], storable(text)
        self._say(stream, text if redacted is None else redacted.add(text))
        if redacted is not None and redacted.holding and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(HOLD_S, self.release)

    def release(self) -> None:
        """Long enough, or the output has ended: what was held back as a possible secret's beginning goes out."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for stream, redacted in self._streams.items():
            if redacted is not None:
                self._say(stream, redacted.release())

    def _say(self, stream: str, text: str) -> None:
        if text:
            self._calls.emit(ToolOutputDelta(self.call_id, self._name, self._index, stream, text))
            self._index += 1

    async def ask(self, questions: Sequence[QuestionItem]) -> tuple[tuple[str, ...], ...] | None:
        return await self._calls.ask_person(self.call_id, questions)

    async def set_todos(self, todos: Sequence[Todo]) -> None:
        await self._calls.set_todos(todos)


class _Refused(Exception):
    """The call does not run; the model is told why."""

    def __init__(self, words: str, status: ResultStatus = ResultStatus.ERROR) -> None:
        super().__init__(words)
        self.status = status


class _TurnEnds(Exception):
    """The turn cannot go on without a person."""

    def __init__(self, error: QuintetError) -> None:
        super().__init__(error.message)
        self.error = error


def _nobody_there(decision: Decision) -> bool:
    """The starter wants the turn to end where somebody would have to be asked. The engine said so, not a person."""
    return decision.by == ENGINE and decision.reason == f"on-ask {OnAsk.FAIL}"


def _arguments(call: ToolCall) -> dict[str, Any]:
    try:
        arguments = msgspec.json.decode(call.input or "{}")
    except msgspec.DecodeError as error:
        raise _Refused(
            f"The input of {call.name} is not valid JSON: {error}. Send it again as one JSON object."
        ) from None
    if not isinstance(arguments, dict):
        raise _Refused(f"The input of {call.name} must be a JSON object.")
    return arguments


def _denial(decision: Decision) -> str:
    """Why the call did not run, in words for the model: a person's no is not the same as nobody's."""
    if decision.by == ENGINE:
        silent = "in time" if decision.reason == "timeout" else "because nobody can be asked here"
        return f"This call needs approval and was not approved {silent}. Do not try it again unchanged."
    return f"The person denied this call{f': {decision.reason}' if decision.reason else ''}."


def _being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _failure(error: BaseException) -> ToolOutcome:
    if isinstance(error, _Refused):
        return ToolOutcome(str(error), error.status, message=str(error))
    ours = as_quintet_error(error)
    return ToolOutcome(ours.message, ResultStatus.ERROR, message=ours.message)
