"""Approvals: what waits for somebody's word, that word, and what was remembered of earlier ones."""

from __future__ import annotations

from typing import Literal

import msgspec

from quintet.domain.errors import AlreadyResolved, Invalid, NotFound
from quintet.domain.grant import Grant, Scope
from quintet.domain.interaction import Decision, Interaction, Question, Verdict
from quintet.domain.item import ToolCall
from quintet.engine.interactions import Answer
from quintet.protocols.knp import models as knp
from quintet.protocols.knp.house import House, principal
from quintet.protocols.knp.namespaces import Namespace
from quintet.protocols.knp.wording import approval_object, decision_word, is_shown, rule_object
from quintet.rpc.http.call import HttpCall
from quintet.rpc.http.routes import HOLDER, Routes

APPROVALS = Routes("approvals", who=HOLDER, since="0.1")
NO_APPROVAL = "Approval not found."
NO_RULE = "Rule not found."


class ListApprovals(msgspec.Struct, frozen=True):
    namespace: str = ""
    tid: str = ""


@APPROVALS.get("/approvals", summary="what waits for somebody's decision", params=ListApprovals, result=knp.Approvals)
async def pending(call: HttpCall[House], params: ListApprovals, body: None) -> knp.Approvals:
    house = call.state
    namespace = await house.namespace(call, params.namespace)
    if not namespace.project:
        return knp.Approvals([])
    found = await house.interactions.pending(project=namespace.project)
    wanted = [asked for asked in found if is_shown(asked) and params.tid in ("", asked.thread, asked.root)]
    # Nobody waits for the answer to what a dead process asked; whoever opens its thread closes it.
    waiting = [asked for asked in wanted if not await house.interactions.orphaned(asked)]
    return knp.Approvals([await _shown(house, asked) for asked in waiting])


async def _shown(house: House, asked: Interaction) -> knp.Approval:
    item = await house.lookup.call(asked.thread, asked.call_id)
    call = item.body if item is not None and isinstance(item.body, ToolCall) else None
    return approval_object(asked, call, dated=True)


class OneApproval(msgspec.Struct, frozen=True):
    id: str
    namespace: str = ""


class Word(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    decision: Literal["allow", "deny", "allow-always", "deny-always"]
    message: str = ""  # of a denial: what the model is told; of a question: the answer, where there is one question
    answers: list[list[str]] | None = None  # of a question: what was chosen, question by question


@APPROVALS.post(
    "/approvals/{id}", summary="decide: the first answer counts", params=OneApproval, body=Word, result=knp.Decided
)
async def decide(call: HttpCall[House], params: OneApproval, body: Word) -> knp.Decided:
    house = call.state
    asked = await _asked(house, params.id, await house.namespace(call, params.namespace))
    if asked.decision is not None:
        raise _decided_before(asked.decision)
    try:
        await house.interactions.answer(asked.id, _answer(asked, body), principal(call.caller))
    except AlreadyResolved as late:
        first = (await house.journal.interaction(asked.id)).decision
        raise (_decided_before(first) if first is not None else late) from None
    return knp.Decided(asked.id, body.decision)


async def _asked(house: House, name: str, namespace: Namespace) -> Interaction:
    try:
        asked = await house.journal.interaction(name)
    except NotFound:
        raise NotFound(NO_APPROVAL, next_step="List what waits with GET /approvals.") from None
    if not is_shown(asked) or await house.journal.project_of(asked.thread) != namespace.project:
        raise NotFound(NO_APPROVAL, next_step="List what waits with GET /approvals.")
    return asked


def _decided_before(decision: Decision) -> AlreadyResolved:
    word = decision_word(decision)
    return AlreadyResolved(f"This was decided before: {word}.", next_step="", decision=word)


def _answer(asked: Interaction, word: Word) -> Answer:
    allows, always = word.decision.startswith("allow"), word.decision.endswith("-always")
    if isinstance(asked.request, Question) and allows:
        if always:
            raise Invalid("An answer to a question is not remembered.", next_step="Send `allow`.")
        return Answer(Verdict.ANSWER, answers=_answers(asked.request, word))
    verdict = Verdict.ALLOW if allows else Verdict.DENY
    return Answer(verdict, reason=word.message, remember=Scope.PROJECT if always else Scope.CALL)


def _answers(question: Question, word: Word) -> tuple[tuple[str, ...], ...]:
    if word.answers is not None:
        return tuple(tuple(chosen) for chosen in word.answers)
    if word.message and len(question.items) == 1:
        return ((word.message,),)
    raise Invalid("A question needs an answer.", next_step="Send `answers`, a list of choices for each question.")


class InNamespace(msgspec.Struct, frozen=True):
    namespace: str = ""


@APPROVALS.get("/approvals/rules", summary="what was decided for good", params=InNamespace, result=knp.ApprovalRules)
async def rules(call: HttpCall[House], params: InNamespace, body: None) -> knp.ApprovalRules:
    namespace = await call.state.namespace(call, params.namespace)
    return knp.ApprovalRules([rule_object(grant) for grant in await remembered(call.state, namespace)])


async def remembered(house: House, namespace: Namespace) -> list[Grant]:
    """What holds in this namespace: its own rules, those for everywhere and those of its threads."""
    found = []
    for grant in await house.journal.grants():
        threads = grant.scope is Scope.THREAD and await house.journal.project_of(grant.thread)
        if grant.scope is Scope.ALWAYS or (namespace.project and namespace.project in (grant.project, threads)):
            found.append(grant)
    return found


@APPROVALS.delete("/approvals/rules/{id}", summary="forget one of them", params=OneApproval, result=knp.Deleted)
async def forget(call: HttpCall[House], params: OneApproval, body: None) -> knp.Deleted:
    house = call.state
    namespace = await house.namespace(call, params.namespace)
    if params.id not in [grant.id for grant in await remembered(house, namespace)]:
        raise NotFound(NO_RULE, next_step="List them with GET /approvals/rules.")
    await house.journal.revoke_grant(params.id)
    return knp.Deleted()
