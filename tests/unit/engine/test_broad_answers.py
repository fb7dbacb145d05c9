"""A yes for every call of an effect, a no that ends the turn, and steers that die with theirs."""

from __future__ import annotations

import pytest

from quintet.domain.errors import Invalid
from quintet.domain.event import InteractionResolved, TurnSteered
from quintet.domain.grant import Grant, GrantOffer, Scope, Subject
from quintet.domain.interaction import Verdict
from quintet.domain.item import ResultStatus, ToolResult, UserMessage
from quintet.domain.tool import Effect, Prepared
from quintet.domain.turn import Mode, TurnState
from quintet.engine.interactions import Answer
from quintet.engine.rules import Judgement
from tests.fakes.engine import ME, Process, parts
from tests.fakes.providers import Gate, GatedProvider, call, text
from tests.fakes.tools import FakeTool
from tests.unit.engine.test_policy import READ, SHELL, WRITE, grant, judge, run

FOR_COMMANDS = Answer(Verdict.ALLOW, remember=Scope.THREAD, broad=True)


def every(effect: Effect, **more: object) -> Grant:
    return grant(tool="", subject=Subject.EFFECT, pattern=(effect.value,), **more)


@pytest.mark.req("wire:S56")
@pytest.mark.parametrize(
    "call",
    [run("ls"), run("python x.py"), run("echo hi > file"), run("make a && make b")],
    ids=lambda c: c.command,
)
def test_a_grant_of_an_effect_covers_every_command_that_can_be_read(call: Prepared) -> None:
    assert judge(call).broad
    assert judge(call, grants=(every(Effect.EXECUTE),)).judgement is Judgement.ALLOW


@pytest.mark.req("wire:S56")
@pytest.mark.parametrize(
    "call",
    [
        run("rm -rf x"),
        run("ls && git push --force"),
        run('eval "$(cat x)"'),
        run("ls", network=True),
        run("ls", confined=False),
        run("ls", always_ask="it wants to be asked about"),
    ],
    ids=lambda c: c.command,
)
def test_it_covers_nothing_that_has_to_be_seen_and_is_not_offered_for_it(call: Prepared) -> None:
    verdict = judge(call, grants=(every(Effect.EXECUTE),))
    assert verdict.judgement is Judgement.ASK
    assert not verdict.broad


def test_a_rule_that_asks_goes_before_it() -> None:
    verdict = judge(run("ls"), rules={"shell: ls *": "ask"}, grants=(every(Effect.EXECUTE),))
    assert verdict.judgement is Judgement.ASK
    assert not verdict.broad


def test_it_is_of_one_effect_one_thread_and_one_protocol() -> None:
    written = Prepared("write", {}, paths=("/p/a",))
    assert judge(written, WRITE, grants=(every(Effect.WRITE),)).judgement is Judgement.ALLOW
    assert judge(written, WRITE, grants=(every(Effect.EXECUTE),)).judgement is Judgement.ASK
    assert judge(run("ls"), SHELL, grants=(every(Effect.WRITE),)).judgement is Judgement.ASK
    for other in (every(Effect.EXECUTE, thread="thr_other"), every(Effect.EXECUTE, protocol="wire")):
        assert judge(run("ls"), grants=(other,)).judgement is Judgement.ASK
    assert not judge(Prepared("read", {}), READ).broad


async def test_it_is_remembered_only_where_the_request_says_so(lone: Process) -> None:
    thread = await lone.thread()
    model = GatedProvider(
        call("shell", '{"command": "rm -rf x"}'), call("shell", '{"command": "ls"}', "c2"), text("end")
    )
    shell = FakeTool("shell", effect=Effect.EXECUTE)
    started = await lone.start(thread, model, [shell], mode=Mode.ASK)
    first = await lone.asked(thread)
    with pytest.raises(Invalid, match="cannot be remembered"):
        await lone.interactions.answer(first, FOR_COMMANDS, ME)
    await lone.interactions.answer(first, Answer(Verdict.ALLOW), ME)
    await lone.seen(lambda e: e.kind == "interaction.requested" and first not in str(e.payload), thread)
    await lone.interactions.answer(await lone.asked(thread), FOR_COMMANDS, ME)
    await lone.ended(started.turn.id)
    (made,) = await lone.journal.grants(root=thread)
    assert (made.subject, made.pattern, made.thread) == (Subject.EFFECT, ("execute",), thread)
    shown = GrantOffer(made.tool, made.subject, made.pattern, made.scope).words()
    assert shown == "any tool: every call that would execute (thread)"
    assert shell.count == 2


@pytest.mark.req("wire:S54")
async def test_a_no_that_ends_the_turn_leaves_every_call_a_result_and_asks_no_model_again(one: Process) -> None:
    thread = await one.thread()
    model = GatedProvider([*call("shell", '{"command": "ls"}'), *call("look", "{}", "c2")], text("never"))
    tools = [FakeTool("shell", effect=Effect.EXECUTE), FakeTool("look")]
    started = await one.start(thread, model, tools, mode=Mode.ASK)
    await one.interactions.answer(await one.asked(thread), Answer(Verdict.DENY, ends_turn=True), ME)
    assert (await one.ended(started.turn.id)).state is TurnState.DONE
    assert len(model.requests) == 1
    assert {r.status for r in await one.bodies(thread, ToolResult)} == {ResultStatus.DENIED, ResultStatus.OK}
    (resolved,) = await one.payloads(thread, InteractionResolved)
    assert resolved.decision.ends_turn


async def test_a_yes_never_ends_the_turn(lone: Process) -> None:
    thread = await lone.thread()
    model = GatedProvider(call("shell", '{"command": "ls"}'), text("end"))
    started = await lone.start(thread, model, [FakeTool("shell", effect=Effect.EXECUTE)], mode=Mode.ASK)
    await lone.interactions.answer(await lone.asked(thread), Answer(Verdict.ALLOW, ends_turn=True), ME)
    await lone.ended(started.turn.id)
    assert len(model.requests) == 2


@pytest.mark.req("wire:S110")
@pytest.mark.parametrize("keeps", [True, False])
async def test_steers_the_model_never_got_stay_only_where_they_are_kept(one: Process, keeps: bool) -> None:
    thread, gate = await one.thread(), Gate()
    started = await one.start(thread, GatedProvider([*text("a"), gate]), keeps_steers=keeps)
    await gate.stopped()
    await one.turns.steer(thread, parts("late"), ME)
    await one.turns.cancel(started.turn.id, ME)
    said = [body for body in await one.bodies(thread, UserMessage) if body.steered]
    assert len(said) == len(await one.payloads(thread, TurnSteered)) == keeps


@pytest.mark.req("wire:S75")
async def test_a_withheld_tool_is_not_offered_and_says_why_when_it_is_called(lone: Process) -> None:
    thread = await lone.thread()
    model, tool = GatedProvider(call("look"), text("end")), FakeTool("look")
    await lone.run(thread, model, [tool], withheld={"look": "Nobody looks here."})
    assert model.requests[0].tools == ()
    (result,) = await lone.bodies(thread, ToolResult)
    assert (result.status, result.text) == (ResultStatus.ERROR, "Nobody looks here.")
    assert tool.count == 0
