"""Clearance: what a call needs before it runs: a rule, a grant, or somebody's yes. Nothing runs without one of them."""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from quintet.domain.errors import Denied, QuintetError
from quintet.domain.interaction import Approval, Decision, ExternalCall, Question, QuestionItem, Verdict, client_result
from quintet.domain.item import ResultStatus, ToolCall
from quintet.domain.principal import ENGINE
from quintet.domain.tool import Prepared, ToolOutcome, ToolSpec
from quintet.domain.turn import Mode
from quintet.engine.feed import Feed
from quintet.engine.interactions import Interactions, OnAsk
from quintet.engine.policy import REQUIRED, UNCONFINED, Policy
from quintet.engine.policy import Verdict as PolicyVerdict
from quintet.engine.rules import Judgement
from quintet.engine.running import RunningTurn

COMMAND_SHOWN = 20_000  # characters of a command that a person can be shown whole
DIFF_SHOWN = 200_000
CHANGED = "it has changed since it was approved"
WITH_NETWORK = "with network"
HARD_TO_UNDO = "destructive: what it does is hard to undo"
EXIT = "exit_plan_mode"
PLANNING = (
    "Plan mode is on: nothing is changed until the person has agreed to a plan. Put one forward with exit_plan_mode."
)


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


class Cleared(msgspec.Struct, frozen=True):
    """What allows a call, in words for the record."""

    words: str
    asked: bool = False  # somebody was asked, so time has passed since it was looked at


class Clearance:
    """For the calls of one turn."""

    def __init__(self, feed: Feed, interactions: Interactions, policy: Policy, running: RunningTurn) -> None:
        self._feed = feed
        self._interactions = interactions
        self._policy = policy
        self._running = running

    async def of(self, call: ToolCall, spec: ToolSpec, prepared: Prepared, *, drifted: bool = False) -> Cleared:
        """What allows the call; raises Refused when nothing does. One that has changed since it was agreed to is not
        covered by what is remembered: what was remembered was the other one."""
        used: set[str] = set()
        while True:
            verdict = await self._judge(spec, prepared, remembering=not drifted)
            if verdict.judgement is Judgement.DENY:
                raise self._refused(verdict, prepared)
            if verdict.judgement is Judgement.ALLOW:
                # A grant may have been used up by another client since it was read; then judge again without it.
                if await self._use(verdict.grants, used):
                    return Cleared(verdict.rule)
                continue
            if self._begins_alone(verdict, prepared):
                return Cleared("nobody is at hand, and nothing else would be asked")
            decision = await self._ask(call, spec, prepared, verdict, drifted=drifted)
            if decision.verdict is Verdict.ALLOW:
                # The mode may have been tightened while the question was open; a yes does not reach beyond it.
                again = await self._judge(spec, prepared)
                if again.judgement is Judgement.DENY:
                    raise self._refused(again, prepared)
                return Cleared(f"allowed by {decision.by.name} through {decision.by.protocol}", asked=True)
            fix = self._fix(verdict, prepared)
            if _nobody_there(decision):
                usual = "Run again with `--on-ask wait:SECONDS`, or allow it with a rule in config.toml."
                raise TurnEnds(Denied(f"Approval is needed for: {prepared.title}.", next_step=fix or usual))
            if decision.ends_turn and self._running.above is None:
                self._running.rests = True
            raise Refused(f"{_denial(decision)} {fix if decision.by == ENGINE else ''}".strip(), ResultStatus.DENIED)

    def _begins_alone(self, verdict: PolicyVerdict, prepared: Prepared) -> bool:
        """A plan put forward where its person has left and lets everything in it be done. A rule still asks."""
        running = self._running
        free = not running.starter.attended and running.loosest is Mode.ALLOW
        return free and bool(prepared.plan) and verdict.rule == prepared.always_ask

    def _refused(self, verdict: PolicyVerdict, prepared: Prepared) -> Refused:
        if self._running.planning and verdict.rule == f"mode {Mode.READ_ONLY}":
            name = self._running.starter.spellings.name_of(EXIT)
            return Refused(PLANNING.replace(EXIT, name), ResultStatus.DENIED)
        why = prepared.unconfined if verdict.rule == REQUIRED else ""
        return Refused(f"Not allowed here ({verdict.rule}). {why}".strip(), ResultStatus.DENIED)

    async def _use(self, grants: Sequence[str], used: set[str]) -> bool:
        """Count one use of each; one that was counted for this call is not counted again."""
        for grant in grants:
            if grant not in used:
                if not await self._feed.journal.use_grant(grant):
                    return False
                used.add(grant)
        return True

    def _fix(self, verdict: PolicyVerdict, prepared: Prepared) -> str:
        if verdict.rule != UNCONFINED or self._running.mode is not Mode.ALLOW:
            return ""
        setting = "To let commands run without a sandbox, set `[sandbox] required = false` in config.toml."
        return f"{prepared.unconfined} {setting}".strip()

    async def _judge(self, spec: ToolSpec, prepared: Prepared, *, remembering: bool = True) -> PolicyVerdict:
        running = self._running
        thread = running.thread
        known = await self._feed.journal.grants(root=thread.root, project=thread.project)
        grants = [grant for grant in known if remembering or grant.denies]  # a no holds for what has changed, too
        return self._policy.judge(
            spec,
            prepared,
            running.mode,
            grants,
            protocol=running.starter.principal.protocol,
            root=thread.root,
            project=thread.project,
            now_ms=self._feed.clock.now_ms(),
            rules=running.project.rules,
            roots=running.project.roots,
        )

    async def _ask(
        self, call: ToolCall, spec: ToolSpec, prepared: Prepared, verdict: PolicyVerdict, *, drifted: bool
    ) -> Decision:
        if len(prepared.command) > COMMAND_SHOWN or max(len(prepared.diff), len(prepared.plan)) > DIFF_SHOWN:
            raise Refused(
                "This call needs approval and is too long to be shown whole, so nobody can approve it. "
                "Do it in smaller steps.",
                ResultStatus.DENIED,
            )
        notes = [
            *prepared.notes,
            prepared.always_ask,
            CHANGED if drifted else "",
            WITH_NETWORK if prepared.network else "",
            HARD_TO_UNDO if verdict.destructive else "",
        ]
        request = Approval(
            tool=spec.known_as,
            title=prepared.title,
            command=prepared.command,
            cwd=prepared.cwd,
            paths=prepared.paths,
            diff=prepared.diff,
            digest=prepared.digest,
            reason=verdict.rule,
            notes=tuple(dict.fromkeys(note for note in notes if note)),
            offers=verdict.offers,
            host=os.uname().nodename,
            plan=prepared.plan,
            effect=spec.effect,
            broad=verdict.broad,
        )
        return await self._interact(call.call_id, request)

    async def external(self, call: ToolCall) -> ToolOutcome:
        """Let the client that started the turn run its own tool."""
        decision = await self._interact(call.call_id, ExternalCall(call.name, call.input))
        status, text, media = client_result(decision)
        return ToolOutcome(text, status, images=media)

    async def ask_person(self, call_id: str, questions: Sequence[QuestionItem]) -> tuple[tuple[str, ...], ...] | None:
        if not self._running.starter.attended:
            return None
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
        if on_ask is OnAsk.WAIT:
            self._running.moments.waits(request)
        return await self._interactions.ask(
            running.lease,
            running.thread.root,
            call_id,
            request,
            on_ask=on_ask,
            timeout_s=starter.interaction_timeout_s,
            subagent=running.agent.name if running.above else "",
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
