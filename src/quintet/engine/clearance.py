"""Clearance: what a call needs before it runs: a rule, a grant, or somebody's yes. Nothing runs without one of them."""

from __future__ import annotations

from collections.abc import Sequence

from quintet.domain.errors import Denied, QuintetError
from quintet.domain.interaction import Approval, Decision, ExternalCall, Question, QuestionItem, Verdict, client_result
from quintet.domain.item import ResultStatus, ToolCall
from quintet.domain.principal import ENGINE
from quintet.domain.tool import Effect, Prepared, ToolOutcome, ToolSpec
from quintet.engine.feed import Feed
from quintet.engine.interactions import Interactions, OnAsk
from quintet.engine.policy import Judgement, Policy
from quintet.engine.policy import Verdict as PolicyVerdict
from quintet.engine.running import RunningTurn


class Refused(Exception):
    """The call does not run; the model is told why."""

    def __init__(self, words: str, status: ResultStatus = ResultStatus.ERROR) -> None:
        super().__init__(words)
        self.status = status


class TurnEnds(Exception):
    """The turn cannot go on without a person."""

    def __init__(self, error: QuintetError) -> None:
        super().__init__(error.message)
        self.error = error


class Clearance:
    """For the calls of one turn."""

    def __init__(self, feed: Feed, interactions: Interactions, policy: Policy, running: RunningTurn) -> None:
        self._feed = feed
        self._interactions = interactions
        self._policy = policy
        self._running = running

    async def of(self, call: ToolCall, spec: ToolSpec, prepared: Prepared) -> str:
        """What allows the call, in words for the record; raises Refused when nothing does."""
        while True:
            verdict = await self._judge(spec, prepared)
            if verdict.judgement is Judgement.DENY:
                raise Refused(f"Not allowed here ({verdict.rule}).", ResultStatus.DENIED)
            if verdict.judgement is Judgement.ALLOW:
                # A grant may have been used up by another client since it was read; then judge again without it.
                if not verdict.grant or await self._feed.journal.use_grant(verdict.grant):
                    return verdict.rule
                continue
            decision = await self._ask(call, spec, prepared, verdict)
            if decision.verdict is Verdict.ALLOW:
                # The mode may have been tightened while the question was open; a yes does not reach beyond it.
                again = await self._judge(spec, prepared)
                if again.judgement is Judgement.DENY:
                    raise Refused(f"Not allowed here ({again.rule}).", ResultStatus.DENIED)
                return f"allowed by {decision.by.name} through {decision.by.protocol}"
            if _nobody_there(decision):
                raise TurnEnds(
                    Denied(
                        f"Approval is needed for: {prepared.title}.",
                        next_step="Run again with `--on-ask wait:SECONDS`, or allow it with a rule in config.toml.",
                    )
                )
            raise Refused(_denial(decision), ResultStatus.DENIED)

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

    async def external(self, call: ToolCall) -> ToolOutcome:
        """Let the client that started the turn run its own tool."""
        decision = await self._interact(call.call_id, ExternalCall(call.name, call.input))
        status, text = client_result(decision)
        return ToolOutcome(text, status)

    async def ask_person(self, call_id: str, questions: Sequence[QuestionItem]) -> tuple[tuple[str, ...], ...] | None:
        decision = await self._interact(call_id, Question(tuple(questions)))
        if _nobody_there(decision):
            raise TurnEnds(
                Denied(
                    "The model has a question, and nobody is there to answer it.",
                    next_step="Run again with `--on-ask wait:SECONDS`.",
                )
            )
        return decision.answers if decision.verdict is Verdict.ANSWER else None

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


def _nobody_there(decision: Decision) -> bool:
    """The starter wants the turn to end where somebody would have to be asked. The engine said so, not a person."""
    return decision.by == ENGINE and decision.reason == f"on-ask {OnAsk.FAIL}"


def _denial(decision: Decision) -> str:
    """Why the call did not run, in words for the model: a person's no is not the same as nobody's."""
    if decision.by == ENGINE:
        silent = "in time" if decision.reason == "timeout" else "because nobody can be asked here"
        return f"This call needs approval and was not approved {silent}. Do not try it again unchanged."
    return f"The person denied this call{f': {decision.reason}' if decision.reason else ''}."
