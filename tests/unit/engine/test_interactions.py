"""Interactions: asked before anything runs, the first answer wins, silence is a denial."""

from __future__ import annotations

import asyncio

import pytest

from quintet.domain.errors import AlreadyResolved, Denied, Invalid, NotFound
from quintet.domain.event import InteractionRequested, InteractionResolved, ToolStarted
from quintet.domain.grant import Scope
from quintet.domain.interaction import Approval, ExternalCall, Interaction, Question, Verdict
from quintet.domain.item import ResultStatus, ToolResult
from quintet.domain.principal import ENGINE, Principal, Role, local
from quintet.domain.tool import Effect, ToolSpec
from quintet.domain.turn import Mode, TurnState
from quintet.engine.interactions import Answer, OnAsk
from tests.fakes.engine import ME, House, Process
from tests.fakes.providers import GatedProvider, call, text
from tests.fakes.tools import FakeTool, asking
from tests.fakes.waiting import soon

ALLOW, DENY = Answer(Verdict.ALLOW), Answer(Verdict.DENY, "not now")


def shell() -> FakeTool:
    return FakeTool("shell", effect=Effect.EXECUTE)


def runs(*commands: str) -> GatedProvider:
    steps = [call("shell", f'{{"command": "{c}"}}', f"c{n}") for n, c in enumerate(commands, 1)]
    return GatedProvider(*steps, text("x"))


@pytest.mark.req("security:S27")
async def test_nothing_runs_before_a_committed_decision_that_names_who_how_and_why(one: Process) -> None:
    thread, tool = await one.thread(), shell()
    started = await one.start(thread, runs("make"), [tool], mode=Mode.ASK)
    asked = await one.asked(thread)
    assert tool.count == 0
    answered = await soon(one.interactions.answer(asked, ALLOW, local("web", "ana")))
    await one.ended(started.turn.id)
    assert tool.count == 1
    assert answered.decision is not None
    assert (answered.decision.by.name, answered.decision.by.protocol) == ("ana", "web")
    (request,) = await one.payloads(thread, InteractionRequested)
    assert isinstance(request.interaction.request, Approval)
    assert request.interaction.request.command == "make"
    assert request.interaction.request.reason == "mode ask"
    kinds = [e.kind for e in await one.events(thread)]
    order = [kinds.index(k) for k in ("interaction.requested", "interaction.resolved", "tool.started", "tool.finished")]
    assert order == sorted(order)
    (intent,) = await one.payloads(thread, ToolStarted)
    assert intent.rule == "allowed by ana through web"


async def test_a_denied_call_is_told_to_the_model_with_the_persons_words(one: Process) -> None:
    thread, tool = await one.thread(), shell()
    started = await one.start(thread, runs("make"), [tool], mode=Mode.ASK)
    await soon(one.interactions.answer(await one.asked(thread), DENY, ME))
    assert (await one.ended(started.turn.id)).state is TurnState.DONE
    (result,) = await one.bodies(thread, ToolResult)
    assert result.status is ResultStatus.DENIED
    assert "not now" in result.text
    assert tool.count == 0


@pytest.mark.req("mechanisms:M2.answers", "security:S27c")
async def test_the_first_of_fifty_answers_wins_and_the_others_are_told_it(one: Process) -> None:
    thread, tool = await one.thread(), shell()
    started = await one.start(thread, runs("make"), [tool], mode=Mode.ASK)
    asked = await one.asked(thread)
    answers = [ALLOW if n % 2 else DENY for n in range(50)]
    results = await soon(
        asyncio.gather(
            *[one.interactions.answer(asked, a, local("p", f"n{n}")) for n, a in enumerate(answers)],
            return_exceptions=True,
        )
    )
    winners = [r for r in results if isinstance(r, Interaction)]
    losers = [r for r in results if isinstance(r, AlreadyResolved)]
    assert (len(winners), len(losers)) == (1, 49)
    assert all(r.data["decision"] == winners[0].decision for r in losers)
    await one.ended(started.turn.id)
    assert len(await one.payloads(thread, InteractionResolved)) == 1
    assert winners[0].decision is not None
    assert tool.count == (winners[0].decision.verdict is Verdict.ALLOW)


@pytest.mark.req("mechanisms:M4.expiry", "security:S27a")
async def test_an_unanswered_request_is_a_denial_and_the_turn_goes_on(one: Process) -> None:
    thread, tool = await one.thread(), shell()
    turn = await one.run(thread, runs("make"), [tool], mode=Mode.ASK, interaction_timeout_s=0.02)
    assert turn.state is TurnState.DONE
    assert tool.count == 0
    (resolved,) = await one.payloads(thread, InteractionResolved)
    assert (resolved.decision.verdict, resolved.decision.by, resolved.decision.reason) == (
        Verdict.DENY,
        ENGINE,
        "timeout",
    )
    with pytest.raises(AlreadyResolved):
        await one.interactions.answer(resolved.interaction, ALLOW, ME)


@pytest.mark.parametrize("answer", [ALLOW, DENY], ids=["allow", "deny"])
async def test_a_call_whose_process_is_gone_is_never_called_allowed(house: House, answer: Answer) -> None:
    dying, living = await house.process(), await house.process()
    thread, tool = await dying.thread(), shell()
    started = await dying.start(thread, runs("make"), [tool], mode=Mode.ASK)
    asked = await dying.asked(thread)
    assert not await living.interactions.orphaned(await living.journal.interaction(asked))
    await dying.die()
    assert await living.interactions.orphaned(await living.journal.interaction(asked))
    assert [i.id for i in await living.interactions.pending()] == [asked], "looking has ended something"
    for _ in range(2):
        with pytest.raises(AlreadyResolved, match="interrupted") as refused:
            await living.interactions.answer(asked, answer, ME)
        assert refused.value.data["decision"].reason == "interrupted"
    assert (await living.journal.turn(started.turn.id)).state is TurnState.INTERRUPTED
    assert tool.count == 0


@pytest.mark.req("mechanisms:M4.tools")
async def test_a_tool_can_never_answer(one: Process) -> None:
    thread = await one.thread()
    await one.start(thread, runs("make"), [shell()], mode=Mode.ASK)
    asked = await one.asked(thread)
    with pytest.raises(Denied):
        await one.interactions.answer(asked, ALLOW, Principal("agent", Role.TOOL, "shell"))
    assert (await one.journal.interaction(asked)).decision is None


@pytest.mark.req("mechanisms:M4.onask")
@pytest.mark.parametrize("kind", ["approval", "question"])
@pytest.mark.parametrize("on_ask", [OnAsk.DENY, OnAsk.FAIL])
async def test_where_nobody_can_be_asked_the_request_is_still_told(one: Process, on_ask: OnAsk, kind: str) -> None:
    thread, tool = await one.thread(), shell()
    provider = runs("make") if kind == "approval" else GatedProvider(call("ask"), text("x"))
    turn = await one.run(thread, provider, [tool, asking()], mode=Mode.ASK, on_ask=on_ask)
    assert turn.state is (TurnState.DONE if on_ask is OnAsk.DENY else TurnState.FAILED)
    assert len(await one.payloads(thread, InteractionRequested)) == 1
    (resolved,) = await one.payloads(thread, InteractionResolved)
    assert resolved.decision.reason == f"on-ask {on_ask}"
    assert len(provider.requests) == (2 if on_ask is OnAsk.DENY else 1)
    assert tool.count == 0
    assert len(await one.bodies(thread, ToolResult)) == 1
    if on_ask is OnAsk.FAIL:
        assert turn.error is not None
        assert turn.error.code == "denied"


async def test_a_persons_denial_in_the_engines_words_does_not_end_the_turn(one: Process) -> None:
    thread = await one.thread()
    started = await one.start(thread, runs("make"), [shell()], mode=Mode.ASK)
    await soon(one.interactions.answer(await one.asked(thread), Answer(Verdict.DENY, "on-ask fail"), ME))
    assert (await one.ended(started.turn.id)).state is TurnState.DONE


@pytest.mark.req("mechanisms:M4.holds")
@pytest.mark.parametrize("end", ["cancel", "shutdown"])
async def test_when_a_turn_ends_what_held_its_calls_is_denied_with_the_reason(one: Process, end: str) -> None:
    thread = await one.thread()
    started = await one.start(thread, runs("make"), [shell()], mode=Mode.ASK)
    asked = await one.asked(thread)
    if end == "cancel":
        await soon(one.turns.cancel(started.turn.id, ME))
    else:
        await soon(one.turns.shutdown())
    decision = (await one.journal.interaction(asked)).decision
    assert decision is not None
    reason = "cancelled" if end == "cancel" else "interrupted"
    assert (decision.verdict, decision.by, decision.reason) == (Verdict.DENY, ENGINE, reason)
    assert await one.interactions.pending(thread) == []
    with pytest.raises(AlreadyResolved):
        await one.interactions.answer(asked, ALLOW, ME)


async def test_a_remembered_answer_serves_later_calls_within_its_scope(one: Process) -> None:
    thread, tool = await one.thread(), shell()
    started = await one.start(thread, runs("git status -s", "git status -v", "git push"), [tool], mode=Mode.ASK)
    first = await one.asked(thread)
    answer = Answer(Verdict.ALLOW, remember=Scope.THREAD)
    decided = (await soon(one.interactions.answer(first, answer, ME))).decision
    second = await one.seen(
        lambda e: isinstance(e.payload, InteractionRequested) and e.payload.interaction.id != first, thread
    )
    assert isinstance(second.payload, InteractionRequested)
    assert isinstance(second.payload.interaction.request, Approval)
    assert second.payload.interaction.request.command == "git push"
    await soon(one.interactions.answer(second.payload.interaction.id, DENY, ME))
    await one.ended(started.turn.id)
    assert decided is not None
    rules = [p.rule for p in await one.payloads(thread, ToolStarted)]
    assert rules == ["allowed by me through test", decided.grant]
    elsewhere = await one.thread()
    await one.start(elsewhere, runs("git status -s"), [tool], mode=Mode.ASK)
    await one.asked(elsewhere)
    assert tool.count == 2


async def test_a_grant_of_one_protocol_does_not_serve_turns_of_another(one: Process) -> None:
    thread, tool = await one.thread(), shell()
    started = await one.start(thread, runs("make all"), [tool], mode=Mode.ASK, principal=local("wire"))
    answer = Answer(Verdict.ALLOW, remember=Scope.THREAD, protocol_only=True)
    await soon(one.interactions.answer(await one.asked(thread), answer, local("wire")))
    await one.ended(started.turn.id)
    other = await one.start(thread, runs("make all"), [tool], mode=Mode.ASK, principal=local("knp"))
    await soon(one.interactions.answer(await one.asked(thread), DENY, ME))
    await one.ended(other.turn.id)
    await one.run(thread, runs("make all"), [tool], mode=Mode.ASK, principal=local("wire"))
    assert tool.count == 2


async def test_uses_of_a_grant_are_counted_and_a_revoked_one_serves_no_more(one: Process) -> None:
    thread, tool = await one.thread(), shell()
    started = await one.start(thread, runs("make all"), [tool], mode=Mode.ASK)
    await soon(one.interactions.answer(await one.asked(thread), Answer(Verdict.ALLOW, remember=Scope.ALWAYS), ME))
    await one.ended(started.turn.id)
    (grant,) = await one.journal.grants()
    await one.journal.revoke_grant(grant.id)
    again = await one.start(thread, runs("make all"), [tool], mode=Mode.ASK)
    await soon(one.interactions.answer(await one.asked(thread), DENY, ME))
    await one.ended(again.turn.id)
    assert tool.count == 1


async def test_what_was_not_offered_cannot_be_remembered(one: Process) -> None:
    thread = await one.thread()
    await one.start(thread, runs("rm -rf /"), [shell()], mode=Mode.ASK)
    asked = await one.asked(thread)
    with pytest.raises(Invalid):
        await one.interactions.answer(asked, Answer(Verdict.ALLOW, remember=Scope.ALWAYS), ME)
    with pytest.raises(Invalid):
        await one.interactions.answer(asked, Answer(Verdict.ANSWER, answers=(("x",),)), ME)
    with pytest.raises(NotFound):
        await one.interactions.answer("int_00000000000000000000000000", ALLOW, ME)
    assert len(await one.interactions.pending(thread)) == 1


async def test_a_question_is_answered_with_choices(one: Process) -> None:
    thread = await one.thread()
    started = await one.start(thread, GatedProvider(call("ask"), text("x")), [asking()])
    asked = await one.asked(thread)
    assert isinstance((await one.journal.interaction(asked)).request, Question)
    for wrong in (ALLOW, Answer(Verdict.ANSWER), Answer(Verdict.ANSWER, answers=(("a",), ("b",)))):
        with pytest.raises(Invalid):
            await one.interactions.answer(asked, wrong, ME)
    await soon(one.interactions.answer(asked, Answer(Verdict.ANSWER, answers=(("blue",),)), ME))
    await one.ended(started.turn.id)
    assert [b.text for b in await one.bodies(thread, ToolResult)] == ["chosen: blue"]


@pytest.mark.parametrize("outcome", ["result", "error", "huge", "declined"])
async def test_a_clients_own_tool_is_run_by_the_client(one: Process, outcome: str) -> None:
    thread, spec = await one.thread(), ToolSpec("theirs", "", {}, external=True)
    provider = GatedProvider(call("theirs", '{"q": 1}'), text("x"))
    started = await one.start(thread, provider, external_tools=[spec], on_ask=OnAsk.DENY)
    asked = await one.asked(thread)
    assert (await one.journal.interaction(asked)).request == ExternalCall("theirs", '{"q": 1}')
    given = {
        "result": Answer(Verdict.ANSWER, result={"text": "42"}),
        "error": Answer(Verdict.ANSWER, result={"text": "no", "is_error": True}),
        "huge": Answer(Verdict.ANSWER, result={"text": "x" * 300_000}),
        "declined": Answer(Verdict.DENY, "closed"),
    }[outcome]
    await soon(one.interactions.answer(asked, given, ME))
    assert (await one.ended(started.turn.id)).state is TurnState.DONE
    (result,) = await one.bodies(thread, ToolResult)
    assert result.status is (ResultStatus.OK if outcome in ("result", "huge") else ResultStatus.ERROR)
    assert len(result.text) < 201_000
    if outcome == "result":
        assert result.text == "42"
    later = GatedProvider(text("y"))
    await one.run(thread, later)
    assert later.requests[0].tools == ()
