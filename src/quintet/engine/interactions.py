"""Interactions: ask a person or client, wait within a bound, take the first answer. Silence is a denial."""

from __future__ import annotations

import contextlib
from enum import StrEnum

import msgspec

from quintet.domain.errors import AlreadyResolved, Denied, Invalid, NotFound, TimedOut
from quintet.domain.event import Event, InteractionRequested, InteractionResolved
from quintet.domain.grant import Grant, GrantOffer, Scope, Subject
from quintet.domain.ids import new_id
from quintet.domain.interaction import Approval, Decision, HookRequest, Interaction, Question, Request, Verdict
from quintet.domain.principal import ENGINE, Principal
from quintet.domain.turn import Lease
from quintet.engine.coverage import serves
from quintet.engine.feed import Feed
from quintet.engine.unbroken import unbroken

DEFAULT_TIMEOUT_S = 24 * 3600.0


class OnAsk(StrEnum):
    WAIT = "wait"
    DENY = "deny"  # nobody is there: deny and let the model go on
    FAIL = "fail"  # nobody is there: end the turn


class Answer(msgspec.Struct, frozen=True):
    """What a client answers with."""

    verdict: Verdict
    reason: str = ""
    answers: tuple[tuple[str, ...], ...] = ()
    result: dict[str, object] = {}
    remember: Scope = Scope.CALL
    protocol_only: bool = False  # the grant serves only turns started through the answering protocol
    broad: bool = False  # remember it for every call of this effect, where that may be
    ends_turn: bool = False  # with a denial: the turn rests, the model is not asked again


class Interactions:
    def __init__(self, feed: Feed) -> None:
        self._feed = feed

    async def ask(
        self,
        lease: Lease,
        root: str,
        call_id: str,
        request: Request,
        *,
        on_ask: OnAsk,
        timeout_s: float,
        subagent: str = "",
    ) -> Decision:
        """Request and wait. The event is always emitted, also where nobody can answer."""
        now = self._feed.clock.now_ms()
        interaction = Interaction(
            id=new_id("int"),
            thread=lease.thread,
            root=root,
            turn=lease.turn,
            call_id=call_id,
            request=request,
            created_ms=now,
            expires_ms=now + int(timeout_s * 1000),
            subagent=subagent,
        )

        def resolved(event: Event) -> bool:
            return isinstance(event.payload, InteractionResolved) and event.payload.interaction == interaction.id

        async def decided() -> Decision | None:
            return (await self._feed.journal.interaction(interaction.id)).decision

        await self._feed.say(lease, InteractionRequested(interaction))
        if on_ask is not OnAsk.WAIT:
            return await self._deny(interaction.id, f"on-ask {on_ask}")
        try:
            return await self._feed.until(resolved, decided, timeout_s)
        except TimedOut:
            return await self._deny(interaction.id, "timeout")

    async def answer(self, interaction: str, answer: Answer, by: Principal) -> Interaction:
        """Decide. The first answer wins; later ones get AlreadyResolved with that decision."""
        if not by.may_decide:
            raise Denied("A tool may not answer a request for approval.", next_step="Ask the person to answer it.")
        asked = await self._still_asked(interaction)
        self._check(asked, answer)
        grant = self._grant(asked, answer, by, await self._project_of(asked.thread))
        decision = Decision(
            verdict=answer.verdict,
            by=by,
            at_ms=self._feed.clock.now_ms(),
            reason=answer.reason,
            answers=answer.answers,
            result=dict(answer.result),
            grant=grant.id if grant else "",
            ends_turn=answer.ends_turn and answer.verdict is Verdict.DENY,
        )
        resolved = await self._feed.resolve(interaction, decision, grant)
        if grant is not None:
            # Not cut in two by a cancel: whoever waits for the same would wait on, though what is remembered says it.
            await unbroken(self._answer_alike(grant, decision))
        return resolved

    async def _answer_alike(self, grant: Grant, decision: Decision) -> None:
        """What is remembered answers whatever else waits that could have been remembered in the same words."""
        for other in await self.pending():
            request = other.request
            if not isinstance(request, Approval) or not any(_same(offer, grant) for offer in request.offers):
                continue
            with contextlib.suppress(AlreadyResolved, NotFound):  # somebody else was faster, or nobody waits any more
                turn = await self._feed.journal.turn(other.turn)
                project = await self._project_of(other.thread)
                if serves(grant, turn.principal.protocol, other.root, project):
                    await self._still_asked(other.id)
                    alike = Decision(decision.verdict, decision.by, self._feed.clock.now_ms(), f"rule {grant.id}")
                    await self._feed.resolve(other.id, alike)

    async def pending(self, root: str = "", project: str = "") -> list[Interaction]:
        """Of a root thread, of a project, or all."""
        found = await self._feed.journal.interactions(root=root)
        if not project:
            return found
        journal = self._feed.journal
        projects = {thread: await journal.project_of(thread) for thread in {asked.thread for asked in found}}
        return [asked for asked in found if projects[asked.thread] == project]

    async def orphaned(self, asked: Interaction) -> bool:
        """Whether the process that waits for the answer is gone. Looking ends nothing."""
        try:
            turn = await self._feed.journal.turn(asked.turn)
        except NotFound:
            return True  # its turn was lost with damage
        return not turn.state.ended and not await self._feed.journal.alive(turn.runner)

    async def _still_asked(self, interaction: str) -> Interaction:
        """The request; where nobody waits for the answer any more, nothing may be called allowed."""
        from quintet.engine.inbox import end_if_dead  # not above: an inbox knows turns, and turns know how to ask

        asked = await self._feed.journal.interaction(interaction)
        if asked.decision is None:
            try:
                await end_if_dead(self._feed, asked.turn)
            except NotFound:  # its turn was lost with damage, so nobody waits
                await self._feed.resolve(interaction, self._by_nobody("interrupted"))
            asked = await self._feed.journal.interaction(interaction)
        decision = asked.decision
        if decision is not None and decision.by == ENGINE and decision.reason == "interrupted":
            raise AlreadyResolved(
                "The process that asked is gone: the request was closed as interrupted.",
                next_step=f"Nothing was run; go on with `quintet run --thread {asked.thread}`.",
                interaction=interaction,
                decision=decision,
            )
        return asked

    def _by_nobody(self, reason: str) -> Decision:
        return Decision(Verdict.DENY, ENGINE, self._feed.clock.now_ms(), reason)

    async def _deny(self, interaction: str, reason: str) -> Decision:
        decision = self._by_nobody(reason)
        try:
            await self._feed.resolve(interaction, decision)
        except AlreadyResolved:
            # Somebody answered in the same moment: theirs came first.
            settled = (await self._feed.journal.interaction(interaction)).decision
            return settled or decision
        return decision

    def _check(self, asked: Interaction, answer: Answer) -> None:
        if isinstance(asked.request, Approval | HookRequest) and answer.verdict is Verdict.ANSWER:
            raise Invalid("This is answered with allow or deny.")
        if isinstance(asked.request, Question) and answer.verdict is Verdict.ANSWER:
            if len(answer.answers) != len(asked.request.items):
                raise Invalid(f"There are {len(asked.request.items)} questions, {len(answer.answers)} were answered.")
        elif not isinstance(asked.request, Approval | HookRequest) and answer.verdict is Verdict.ALLOW:
            raise Invalid("A question is answered with one of its options, or denied.")

    async def _project_of(self, thread: str) -> str:
        return (await self._feed.journal.thread(thread)).project

    def _grant(self, asked: Interaction, answer: Answer, by: Principal, project: str) -> Grant | None:
        if answer.verdict is Verdict.ANSWER or answer.remember is Scope.CALL:
            return None
        offer = _offer_for(asked.request, answer)
        return Grant(
            id=new_id("grt"),
            tool=offer.tool,
            subject=offer.subject,
            pattern=offer.pattern,
            scope=answer.remember,
            by=by,
            made_ms=self._feed.clock.now_ms(),
            thread=asked.root if answer.remember is Scope.THREAD else "",
            project=project if answer.remember is Scope.PROJECT else "",
            protocol=by.protocol if answer.protocol_only else "",
            exact=offer.exact,
            network=offer.network,
            scripts=offer.scripts,
            denies=answer.verdict is Verdict.DENY,
        )


def _same(offer: GrantOffer, grant: Grant) -> bool:
    """How far it reaches is the grant's own business."""
    names = ("tool", "subject", "pattern", "exact", "network", "scripts")
    return all(getattr(offer, name) == getattr(grant, name) for name in names)


def _offer_for(request: Request, answer: Answer) -> GrantOffer:
    approval, scope = request if isinstance(request, Approval) else None, answer.remember
    if approval is not None and answer.broad and approval.broad and scope is Scope.THREAD:
        return GrantOffer("", Subject.EFFECT, (approval.effect.value,), scope)
    for offer in approval.offers if approval and not answer.broad else ():
        if offer.scope is scope:
            return offer
    raise Invalid(
        f"This request cannot be remembered for {scope}.",
        next_step="Answer it for this call alone; it will be asked again.",
    )
