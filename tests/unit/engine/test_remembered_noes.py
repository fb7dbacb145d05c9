"""A no that is remembered, what else a remembered word answers, and what streams told piece by piece."""

from __future__ import annotations

import pytest

from quintet.domain import event as ev
from quintet.domain.errors import AlreadyResolved
from quintet.domain.grant import Grant, Scope, Subject
from quintet.domain.interaction import Verdict
from quintet.domain.item import ToolCall, ToolResult
from quintet.domain.thread import ThreadSettings
from quintet.domain.tool import Effect, Prepared, ToolSpec
from quintet.domain.turn import Mode
from quintet.engine.interactions import Answer
from quintet.engine.policy import Policy
from quintet.engine.rules import Judgement, parse_rules
from quintet.engine.statistics import used_by
from quintet.workspace.commands import ShellCommandParser
from tests.fakes.engine import ME, Process
from tests.fakes.providers import GatedProvider, call, text
from tests.fakes.tools import FakeTool
from tests.fakes.waiting import soon

SHELL = ToolSpec("shell", "", {}, Effect.EXECUTE)
WRITE = ToolSpec("write", "", {}, Effect.WRITE)


def no(tool: str, subject: Subject, *pattern: str, exact: bool = False) -> Grant:
    return Grant("grt_no", tool, subject, pattern, Scope.PROJECT, ME, 0, project="prj", exact=exact, denies=True)


def yes(tool: str, subject: Subject, *pattern: str) -> Grant:
    return Grant("grt_yes", tool, subject, pattern, Scope.PROJECT, ME, 0, project="prj")


def judged(
    spec: ToolSpec, prepared: Prepared, *grants: Grant, mode: Mode = Mode.ASK, project: str = "prj"
) -> Judgement:
    policy = Policy(parse_rules({"shell: git push *": "allow"}), ShellCommandParser())
    verdict = policy.judge(spec, prepared, mode, grants, protocol="knp", root="thr", project=project, now_ms=1)
    return verdict.judgement


def command(line: str) -> Prepared:
    return Prepared(f"run {line}", {}, command=line, cwd="/work")


@pytest.mark.req("knp:K29")
@pytest.mark.parametrize("mode", [Mode.ASK, Mode.ALLOW])
@pytest.mark.parametrize(
    "line", ["git push", "git push -f", "cd x && git push", "env A=1 git push", "/usr/bin/git push"]
)
def test_a_remembered_no_wins_over_rules_grants_and_modes_however_it_is_spelled(line: str, mode: Mode) -> None:
    grants = (no("shell", Subject.COMMAND, "git", "push"), yes("shell", Subject.TOOL))
    assert judged(SHELL, command(line), *grants, mode=mode) is Judgement.DENY
    assert judged(SHELL, command("git status"), *grants, mode=mode) is Judgement.ALLOW


@pytest.mark.req("knp:K29")
def test_a_remembered_no_holds_where_it_was_said_and_for_what_was_shown() -> None:
    exact = no("shell", Subject.COMMAND, "make", "clean", exact=True)
    assert judged(SHELL, command("make clean"), exact) is Judgement.DENY
    assert judged(SHELL, command("make clean all"), exact) is Judgement.ASK
    assert judged(SHELL, command("make clean"), exact, project="another") is Judgement.ASK
    path = no("write", Subject.PATH, "/work/a[*]b c")
    for target, expected in (("/work/a*b c", Judgement.DENY), ("/work/axb c", Judgement.ASK)):
        assert judged(WRITE, Prepared("write", {}, paths=(target,), cwd="/work"), path) is expected
    assert judged(WRITE, Prepared("write", {}, paths=("/x",)), no("write", Subject.TOOL)) is Judgement.DENY


@pytest.mark.req("knp:K29")
async def test_a_word_for_good_answers_what_waits_alike_in_the_same_project(one: Process) -> None:
    tool = FakeTool("put", effect=Effect.WRITE)
    here = [await one.thread() for _ in range(2)]
    far = (await one.threads.create(ThreadSettings("/project/elsewhere"))).id
    started = {}
    for thread in (*here, far):
        started[thread] = await one.start(thread, GatedProvider(call("put"), text("x")), [tool], mode=Mode.ASK)
        await one.asked(thread)
    await one.interactions.answer(
        await one.asked(here[0]), Answer(Verdict.DENY, reason="no", remember=Scope.PROJECT), ME
    )
    for thread in here:
        await one.ended(started[thread].turn.id)
        (result,) = await one.bodies(thread, ToolResult)
        assert result.status == "denied"
    assert [asked.thread for asked in await one.interactions.pending()] == [far]
    for thread, waiting in ((far, [far]), (here[0], [])):
        project = (await one.journal.thread(thread)).project
        assert [asked.thread for asked in await one.interactions.pending(project=project)] == waiting
    (grant,) = await one.journal.grants()
    assert grant.denies
    await soon(one.turns.cancel(started[far].turn.id, ME))
    again = await one.run(here[0], GatedProvider(call("put", call_id="c9"), text("y")), [tool], mode=Mode.ASK)
    assert again.state == "done"
    assert (await one.bodies(here[0], ToolResult))[-1].status == "denied"


async def test_the_first_answer_still_counts(one: Process) -> None:
    thread, tool = await one.thread(), FakeTool("put", effect=Effect.WRITE)
    started = await one.start(thread, GatedProvider(call("put"), text("x")), [tool], mode=Mode.ASK)
    asked = await one.asked(thread)
    await one.interactions.answer(asked, Answer(Verdict.ALLOW, remember=Scope.PROJECT), ME)
    with pytest.raises(AlreadyResolved):
        await one.interactions.answer(asked, Answer(Verdict.DENY, remember=Scope.PROJECT), ME)
    await one.ended(started.turn.id)
    assert [g.denies for g in await one.journal.grants()] == [False]


@pytest.mark.req("knp:K20")
async def test_what_is_whole_is_told_before_the_next_thing_begins(one: Process) -> None:
    script = "think: hm\ntext: a\ntext: b\ntool_call: put#c1 {}\ntext: c\n---\ntext: end"
    thread = await one.thread()
    await one.run(thread, script, [FakeTool("put")])
    told = [e for e in await one.events(thread) if e.turn and not e.kind.startswith(("turn.", "thread."))]
    shown = [type(e.payload.item.body).__name__ if isinstance(e.payload, ev.ItemAdded) else e.kind for e in told]
    assert shown[: shown.index("step.finished") + 1] == [
        *(
            "UserMessage",
            "step.started",
            "reasoning.delta",
            "Reasoning",
            "text.delta",
            "text.delta",
            "AssistantMessage",
        ),
        *("tool.called", "tool.input_delta", "text.delta", "AssistantMessage", "ToolCall", "step.finished"),
    ]
    called = next(e.payload for e in told if isinstance(e.payload, ev.ToolCalled))
    item = next(i for i in await one.threads.items(thread) if isinstance(i.body, ToolCall))
    assert (called.item, called.call_id, called.name) == (item.id, "c1", "put")
    assert [i.ordinal for i in await one.threads.items(thread)] == list(range(1, 8))


async def test_an_answer_that_may_begin_anew_is_kept_whole_or_not_at_all(one: Process) -> None:
    thread = await one.thread()
    await one.run(thread, "think: hm\ntext: a\n", restarts=True)
    told = [e.kind for e in await one.events(thread) if e.turn and e.kind.startswith(("item.", "text.", "step."))]
    assert told == ["item.added", "step.started", "text.delta", "item.added", "item.added", "step.finished"]


async def test_a_failure_after_a_whole_piece_keeps_it_once(one: Process) -> None:
    thread = await one.thread()
    ended = await one.run(thread, "think: hm\ntext: a\nerror: 500 broken")
    assert ended.state == "failed"
    assert [type(b).__name__ for b in await one.bodies(thread)] == ["UserMessage", "Reasoning", "AssistantMessage"]


async def test_a_turns_usage_is_its_own(one: Process) -> None:
    thread = await one.thread()
    for _ in range(2):
        turn = await one.run(thread, "scope: turn\ntext: a\nusage: in=10 out=5 cached=2 reasoning=1")
    tally = await used_by(one.journal, one.starter("text: a").models, turn, thread)
    assert (tally.steps, tally.input_tokens, tally.output_tokens, tally.cached_tokens) == (1, 10, 5, 2)
    assert tally.reasoning_tokens == 1
