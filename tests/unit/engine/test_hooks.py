"""Hooks in turns: real commands in the real sandbox, and clients that subscribed, on the real engine."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from quintet.domain.errors import AlreadyResolved, Invalid, ProviderFailed, StorageFull
from quintet.domain.event import (
    Event,
    HookResolved,
    HookTriggered,
    InteractionRequested,
    StepStarted,
    ToolStarted,
)
from quintet.domain.hook import ALLOWED, FIELDS_AT_MOST, Hook, HookAction, HookEvent, HookScope, HookVerdict
from quintet.domain.interaction import HookRequest, Verdict
from quintet.domain.item import ResultStatus, ToolResult, UserMessage, text_of
from quintet.domain.model import ModelRequest
from quintet.domain.tool import CallScope, Effect, Prepared, ToolSpec
from quintet.domain.turn import Mode, TurnState
from quintet.engine.hook_round import Moment, Round
from quintet.engine.hooks import LEAVING_AT_ONCE, LEAVING_S, NOT_LEFT
from quintet.engine.interactions import Answer
from quintet.workspace.environment import find_program
from quintet.workspace.hook_commands import HookCommands
from tests.fakes.clock import SettableClock
from tests.fakes.engine import ME, House, Process, parts
from tests.fakes.hooks import hook, real_commands, subscription
from tests.fakes.providers import Gate, GatedProvider, call, text
from tests.fakes.tools import FakeTool, failing
from tests.fakes.waiting import soon, until

pytestmark = pytest.mark.skipif(find_program("bwrap", os.environ) is None, reason="bubblewrap is not installed")
NO = "cat >/dev/null; echo 'not like this' >&2; exit 2"
SAVE = 'cat >"$(mktemp saved.XXXXXX)"'


@pytest.fixture
async def commands(tmp_path: Path) -> AsyncIterator[HookCommands]:
    async with real_commands(tmp_path / "hooks-home") as made:
        yield made


@pytest.fixture
def work(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    return made


@pytest.fixture
async def begin(house: House, commands: HookCommands) -> Callable[..., Any]:
    async def begun(*hooks: Any, **options: Any) -> Process:
        return await house.process(hooks=hooks, hook_commands=commands, **options)

    return begun


def saved(work: Path) -> list[dict[str, Any]]:
    """What hooks were given, by the first to the last of them."""
    files = sorted(work.glob("saved.*"), key=lambda path: path.stat().st_mtime_ns)
    return [json.loads(path.read_text()) for path in files]


async def outcomes(process: Process, thread: str) -> list[tuple[str, str, str]]:
    return [(p.event.value, p.target, p.action.value) for p in await process.payloads(thread, HookResolved)]


def said(request: ModelRequest) -> str:
    return "\n".join(text_of(i.body) for i in request.items if isinstance(i.body, UserMessage))


def of_hooks(event: Event) -> bool:
    return isinstance(event.payload, HookTriggered | HookResolved)


# --- calls ------------------------------------------------------------------------------------------------------------
@pytest.mark.req("models:H6")
async def test_a_blocked_call_is_neither_asked_about_nor_run_and_the_model_reads_why(begin: Any, work: Path) -> None:
    one = await begin(hook(HookEvent.BEFORE_TOOL, NO, "^put$"))
    thread, tool = await one.thread(str(work)), FakeTool("put", effect=Effect.WRITE)
    model = GatedProvider(call("put", '{"path": "a"}'), text("I see"))
    turn = await one.run(thread, model, [tool], mode=Mode.ASK)
    assert (turn.state, tool.count) == (TurnState.DONE, 0)
    assert not await one.payloads(thread, InteractionRequested)
    assert not await one.payloads(thread, ToolStarted)
    (result,) = await one.bodies(thread, ToolResult)
    assert (result.status, result.text) == (ResultStatus.DENIED, "A hook blocked this call: not like this")
    assert any(getattr(i.body, "text", "") == result.text for i in model.requests[1].items)


@pytest.mark.req("models:H1")
async def test_what_hooks_were_asked_and_said_is_two_events_around_it(begin: Any, work: Path) -> None:
    one = await begin(hook(HookEvent.BEFORE_TOOL, "true"), hook(HookEvent.BEFORE_TOOL, NO))
    thread = await one.thread(str(work))
    await one.run(thread, GatedProvider(call("put"), text("x")), [FakeTool("put")])
    (asked,) = await one.payloads(thread, HookTriggered)
    assert (asked.event, asked.target, asked.count, asked.call_id) == (HookEvent.BEFORE_TOOL, "put", 2, "c1")
    assert asked.sources == ("test PreToolUse",) * 2
    (told,) = await one.payloads(thread, HookResolved)
    assert (told.action, told.reason, told.by) == (HookAction.BLOCK, "not like this", "test PreToolUse")
    assert (told.event, told.target, told.call_id, told.problems) == (HookEvent.BEFORE_TOOL, "put", "c1", ())
    assert told.duration_ms > 0


@pytest.mark.req("models:H1")
async def test_all_hooks_of_a_moment_run_at_once(begin: Any, work: Path) -> None:
    """Each waits for the other's sign: one after the other they would never end."""
    wait = "touch {mine}; until [ -e {other} ]; do sleep 0.01; done; exit 2"
    one = await begin(
        hook(HookEvent.BEFORE_TOOL, wait.format(mine="a", other="b"), timeout_s=8),
        hook(HookEvent.BEFORE_TOOL, wait.format(mine="b", other="a"), timeout_s=8),
    )
    thread = await one.thread(str(work))
    await one.run(thread, GatedProvider(call("put"), text("x")), [FakeTool("put")])
    (told,) = await one.payloads(thread, HookResolved)
    assert (told.action, told.problems) == (HookAction.BLOCK, ())


@pytest.mark.req("models:H4")
async def test_the_first_block_counts(begin: Any, work: Path) -> None:
    late = "until [ -e first ]; do sleep 0.01; done; sleep 1.5; echo late >&2; exit 2"
    one = await begin(
        hook(HookEvent.BEFORE_TOOL, late), hook(HookEvent.BEFORE_TOOL, "touch first; echo soon >&2; exit 2")
    )
    thread = await one.thread(str(work))
    await one.run(thread, GatedProvider(call("put"), text("x")), [FakeTool("put")])
    (told,) = await one.payloads(thread, HookResolved)
    assert told.reason == "soon"


@pytest.mark.req("models:H16")
async def test_hooks_that_do_not_match_are_not_run_and_nothing_is_written(begin: Any, work: Path) -> None:
    one = await begin(hook(HookEvent.BEFORE_TOOL, SAVE, "^shell$"), hook(HookEvent.BEFORE_COMPACTION, SAVE))
    thread, tool = await one.thread(str(work)), FakeTool("put")
    await one.run(thread, GatedProvider(call("put"), text("x")), [tool])
    assert (tool.count, saved(work)) == (1, [])
    assert not [e for e in await one.events(thread) if of_hooks(e)]


@pytest.mark.req("models:H5")
async def test_a_hook_that_fails_or_hangs_lets_the_call_run_and_is_told_in_event_and_log(
    begin: Any, work: Path
) -> None:
    one = await begin(
        hook(HookEvent.BEFORE_TOOL, "echo broken >&2; exit 1"), hook(HookEvent.BEFORE_TOOL, "sleep 60", timeout_s=0.5)
    )
    thread, tool = await one.thread(str(work)), FakeTool("put")
    await one.run(thread, GatedProvider(call("put"), text("x")), [tool])
    assert tool.count == 1
    (told,) = await one.payloads(thread, HookResolved)
    assert told.action is HookAction.ALLOW
    problems = ["test PreToolUse: exit code 1: broken", "test PreToolUse: it was ended after 0.5 s"]
    assert sorted(told.problems) == problems
    assert sorted(one.told) == [f"Hook PreToolUse, {problem}" for problem in problems]


@pytest.mark.req("models:H7")
async def test_after_a_call_hooks_hear_what_came_of_it_and_their_words_go_to_the_model(begin: Any, work: Path) -> None:
    one = await begin(
        hook(HookEvent.AFTER_TOOL, f"{SAVE}; echo 'lint failed' >&2; exit 2"), hook(HookEvent.AFTER_TOOL_FAILED, SAVE)
    )
    thread = await one.thread(str(work))
    await one.run(thread, GatedProvider(call("put", '{"n": 1}'), text("x")), [FakeTool("put")])
    await one.run(thread, GatedProvider(call("fail", call_id="c2"), text("x")), [failing(ValueError("x"))])
    fine, failed = await one.bodies(thread, ToolResult)
    assert (fine.status, fine.text) == (ResultStatus.OK, "put done\n\n[a hook says: lint failed]")
    heard, other = saved(work)
    assert heard == {
        "hook_event_name": "PostToolUse",
        "session_id": thread,
        "cwd": str(work),
        "tool_name": "put",
        "tool_input": {"n": 1},
        "tool_call_id": "c1",
        "tool_output": "put done",
    }
    assert (other["hook_event_name"], other["tool_name"], other["error"]) == ("PostToolUseFailure", "fail", failed.text)


@pytest.mark.req("models:H7")
async def test_a_call_that_never_ran_has_no_afterwards(begin: Any, work: Path) -> None:
    one = await begin(hook(HookEvent.AFTER_TOOL_FAILED, SAVE), hook(HookEvent.AFTER_TOOL, SAVE))
    thread = await one.thread(str(work))
    model = GatedProvider([*call("absent"), *call("put", "[not json", "c2")], text("x"))
    await one.run(thread, model, [FakeTool("put")])
    assert [r.status for r in await one.bodies(thread, ToolResult)] == [ResultStatus.ERROR] * 2
    assert saved(work) == []
    assert not [e for e in await one.events(thread) if of_hooks(e)]


@pytest.mark.req("models:H7", "models:H13")
async def test_a_turn_cancelled_while_a_hook_hears_of_a_call_keeps_what_came_of_the_call(
    begin: Any, work: Path
) -> None:
    one = await begin(hook(HookEvent.AFTER_TOOL, "touch begun; sleep 60"))
    thread, tool = await one.thread(str(work)), FakeTool("put", effect=Effect.WRITE)
    started = await one.start(thread, GatedProvider(call("put"), text("x")), [tool])
    await until((work / "begun").exists)
    assert (await soon(one.turns.cancel(started.turn.id, ME))).state is TurnState.CANCELLED
    (result,) = await one.bodies(thread, ToolResult)
    assert (result.status, result.text) == (ResultStatus.OK, "put done")


@pytest.mark.req("models:H3")
async def test_known_secrets_are_masked_in_what_hooks_are_given(begin: Any, work: Path) -> None:
    secret = "canary-77aa41c09e"
    one = await begin(hook(HookEvent.BEFORE_TOOL, SAVE), hook(HookEvent.INPUT_GIVEN, SAVE), secrets=[secret])
    thread = await one.thread(str(work))
    await one.run(
        thread, GatedProvider(call("put", f'{{"key": "{secret}"}}'), text("x")), [FakeTool("put")], say=secret
    )
    assert len(saved(work)) == 2
    assert secret not in str(saved(work))


# --- the turn ---------------------------------------------------------------------------------------------------------
@pytest.mark.req("models:H8")
async def test_a_refused_input_ends_the_turn_before_any_model_is_asked_and_is_shown_to_none_later(
    begin: Any, work: Path
) -> None:
    one = await begin(hook(HookEvent.INPUT_GIVEN, "grep -q secret && { echo 'no secrets' >&2; exit 2; } || exit 0"))
    thread, model = await one.thread(str(work)), GatedProvider()
    await one.run(thread, model, say="hello")
    turn = await one.run(thread, model, say="the secret is 7")
    assert turn.state is TurnState.FAILED
    assert turn.error is not None
    assert (turn.error.code, turn.error.message) == ("denied", "A hook refused this input: no secrets")
    assert turn.error.data == {"hook": "UserPromptSubmit", "reason": "no secrets"}
    assert len(model.requests) == 1
    assert not [e for e in await one.events(thread) if e.turn == turn.id and isinstance(e.payload, StepStarted)]
    await one.run(thread, model, say="good day")
    assert said(model.requests[-1]) == "hello\ngood day"


@pytest.mark.req("models:H9")
async def test_a_turn_goes_on_with_a_hooks_reason_and_never_twice_in_a_row(begin: Any, work: Path) -> None:
    one = await begin(hook(HookEvent.TURN_RESTS, f"{SAVE}; echo 'tests are red' >&2; exit 2"))
    thread, model = await one.thread(str(work)), GatedProvider(text("done"), text("now it is"))
    turn = await one.run(thread, model)
    assert (turn.state, len(model.requests)) == (TurnState.DONE, 2)
    assert said(model.requests[1]) == "please\nA hook says that you are not done: tests are red"
    assert [given["stop_hook_active"] for given in saved(work)] == [False, True]
    assert [action for _, _, action in await outcomes(one, thread)] == ["block", "allow"]
    assert (await one.payloads(thread, HookResolved))[1].problems == (
        "test Stop: it blocked, which has no effect here",
    )


@pytest.mark.req("models:H9")
async def test_what_is_said_while_a_hook_is_asked_whether_to_rest_reaches_the_model(begin: Any, work: Path) -> None:
    one = await begin(hook(HookEvent.TURN_RESTS, "touch asked; until [ -e go ]; do sleep 0.01; done"))
    thread, model = await one.thread(str(work)), GatedProvider(text("done"), text("and that"))
    started = await one.start(thread, model)
    await until((work / "asked").exists)
    await soon(one.turns.steer(thread, parts("one more thing"), ME))
    (work / "go").touch()
    assert (await one.ended(started.turn.id)).state is TurnState.DONE
    assert said(model.requests[1]) == "please\none more thing"


@pytest.mark.req("models:H9")
async def test_once_somebody_has_said_more_a_hook_may_make_the_turn_go_on_again(begin: Any, work: Path) -> None:
    one = await begin(hook(HookEvent.TURN_RESTS, f"{SAVE}; echo 'not yet' >&2; exit 2"))
    gate = Gate()
    thread, model = await one.thread(str(work)), GatedProvider(text("a"), [gate, *text("b")], text("c"), text("d"))
    started = await one.start(thread, model)
    await gate.stopped()
    await soon(one.turns.steer(thread, parts("and this"), ME))
    gate.open()
    assert (await one.ended(started.turn.id)).state is TurnState.DONE
    assert [given["stop_hook_active"] for given in saved(work)] == [False, False, True]
    assert len(model.requests) == 4


@pytest.mark.req("models:H6")
async def test_what_a_hook_changes_before_a_call_is_seen_by_whoever_is_asked_about_it(begin: Any, work: Path) -> None:
    """The call is looked at again: what was agreed to is what is there then."""
    one = await begin(hook(HookEvent.BEFORE_TOOL, "echo new >what"))
    (work / "what").write_text("old\n")

    class Reading(FakeTool):
        async def prepare(self, arguments: dict[str, Any], scope: CallScope) -> Prepared:
            return Prepared(f"put {(work / 'what').read_text().strip()}", arguments, cwd=scope.cwd, digest="d")

    thread, tool = await one.thread(str(work)), Reading("put", effect=Effect.WRITE)
    started = await one.start(thread, GatedProvider(call("put"), text("x")), [tool], mode=Mode.ASK)
    asked = await one.asked(thread)
    (request,) = [p.interaction.request for p in await one.payloads(thread, InteractionRequested)]
    assert request.title == "put new"
    await soon(one.interactions.answer(asked, Answer(Verdict.ALLOW), ME))
    await one.ended(started.turn.id)


@pytest.mark.req("models:H5")
async def test_a_store_that_fails_while_hooks_are_asked_is_not_taken_for_a_hook_that_allows() -> None:
    said: list[Any] = []

    async def say(payload: Any) -> None:
        said.append(payload)

    async def ask(due: Any) -> HookVerdict:
        raise StorageFull("The disk is full.")

    moment = Moment(HookEvent.BEFORE_TOOL, "put")
    with pytest.raises(StorageFull):
        await Round(moment, [subscription(HookEvent.BEFORE_TOOL)], say, said.append).heard(ask, lambda: 0.0)
    assert [type(payload) for payload in said] == [HookTriggered]


@pytest.mark.parametrize("how", ["cancel", "close"])
async def test_a_turn_stopped_while_a_hook_hears_of_its_failure_keeps_what_it_failed_of(
    house: House, begin: Any, work: Path, how: str
) -> None:
    one = await begin(hook(HookEvent.TURN_FAILED, "touch heard; sleep 600"))
    thread = await one.thread(str(work))
    started = await one.start(thread, GatedProvider([ProviderFailed("out of order")]))
    await until((work / "heard").exists)
    if how == "cancel":
        turn = await soon(one.turns.cancel(started.turn.id, ME))
    else:
        await soon(one.close())
        turn = await (await begin()).journal.turn(started.turn.id)
    assert turn.state is TurnState.FAILED
    assert turn.error is not None
    assert (turn.error.code, turn.error.message) == ("provider_failed", "out of order")


@pytest.mark.req("models:H10")
async def test_hooks_hear_of_the_first_turn_here_of_a_failure_and_of_the_end(
    house: House, begin: Any, work: Path
) -> None:
    rows = [hook(event, SAVE) for event in (HookEvent.THREAD_BEGUN, HookEvent.TURN_FAILED, HookEvent.THREAD_LEFT)]
    one = await begin(*rows)
    thread = await one.thread(str(work))
    await one.run(thread)
    failed = await one.run(thread, GatedProvider([ProviderFailed("out of order")]))
    assert failed.state is TurnState.FAILED
    await one.close()
    two = await begin(*rows)
    await two.run(thread)
    await two.close()
    heard = [
        (g["hook_event_name"], g.get("source") or g.get("reason") or (g["error_type"], g["error_message"]))
        for g in saved(work)
    ]
    assert heard == [
        ("SessionStart", "startup"),
        ("StopFailure", ("provider_failed", "out of order")),
        ("SessionEnd", "exit"),
        ("SessionStart", "resume"),
        ("SessionEnd", "exit"),
    ]
    three = await begin()
    ends = [p.event for p in await three.payloads(thread, HookResolved)]
    assert ends.count(HookEvent.THREAD_LEFT) == 2


class Leaving:
    """Runs hooks of threads that are left: each takes a second of the clock, and it is counted how many do at once."""

    def __init__(self, clock: SettableClock) -> None:
        self._clock = clock
        self.ran = self.now = self.most = 0

    async def run(self, hook: Hook, given: dict[str, Any], scope: HookScope, *, agreed: str = "") -> HookVerdict:
        self.ran += 1
        self.now += 1
        self.most = max(self.most, self.now)
        for _ in range(10):
            await asyncio.sleep(0)
        self._clock.step(1.0)
        self.now -= 1
        return ALLOWED

    async def digest(self, hook: Hook, cwd: str) -> str:
        raise AssertionError("nobody is asked any more")


@pytest.mark.req("models:H10")
async def test_a_process_that_ends_runs_few_hooks_at_once_and_not_for_long_and_names_threads_it_left_out(
    tmp_path: Path,
) -> None:
    clock, house = SettableClock(), House("memory", tmp_path)
    leaving = Leaving(clock)
    one = await house.process(clock=clock, hooks=[hook(HookEvent.THREAD_LEFT, "x")], hook_commands=leaving)
    threads = [await one.thread() for _ in range(3 * LEAVING_AT_ONCE)]
    for thread in threads:
        await one.run(thread)
    await one.close()
    assert leaving.most == LEAVING_AT_ONCE
    assert LEAVING_AT_ONCE <= leaving.ran <= LEAVING_AT_ONCE + LEAVING_S
    left_out = [line.partition(":")[0] for line in one.told if NOT_LEFT in line]
    assert left_out == threads[leaving.ran :]


@pytest.mark.req("models:H13")
async def test_a_turn_cancelled_while_a_hook_runs_ends_as_cancelled_and_the_hook_is_gone(
    begin: Any, work: Path
) -> None:
    word = f"8{os.getpid()}.5"
    one = await begin(hook(HookEvent.BEFORE_TOOL, f"touch begun; sleep {word} & sleep {word}"))
    thread, tool = await one.thread(str(work)), FakeTool("put")
    started = await one.start(thread, GatedProvider(call("put"), text("x")), [tool])
    await until((work / "begun").exists)
    turn = await soon(one.turns.cancel(started.turn.id, ME))
    assert (turn.state, tool.count) == (TurnState.CANCELLED, 0)
    lines = [Path(f"/proc/{n}/cmdline") for n in os.listdir("/proc") if n.isdigit()]
    assert not [line for line in lines if line.exists() and f"sleep\0{word}".encode() in line.read_bytes()]
    kinds = [e.kind for e in await one.events(thread)]
    assert kinds.index("hook.resolved") < kinds.index("turn.finished") == len(kinds) - 1


@pytest.mark.req("models:H14")
async def test_a_notification_runs_beside_an_open_request_and_nothing_waits_for_it(begin: Any, work: Path) -> None:
    one = await begin(hook(HookEvent.NOTIFIED, f"{SAVE}; touch told; sleep 60", "approval"))
    thread, tool = await one.thread(str(work)), FakeTool("put", effect=Effect.WRITE)
    started = await one.start(thread, GatedProvider(call("put"), text("x")), [tool], mode=Mode.ASK)
    asked = await one.asked(thread)
    await until((work / "told").exists)
    await soon(one.interactions.answer(asked, Answer(Verdict.ALLOW), ME))
    assert (await one.ended(started.turn.id)).state is TurnState.DONE
    assert tool.count == 1
    (given,) = saved(work)
    assert (given["notification_type"], given["severity"]) == ("approval", "info")
    assert given["title"].startswith("Approval is needed: put")
    kinds = [e.kind for e in await one.events(thread)]
    assert kinds.index("hook.resolved") < kinds.index("turn.finished") == len(kinds) - 1  # it ended with the turn


# --- clients ----------------------------------------------------------------------------------------------------------
@pytest.mark.req("models:H12")
async def test_a_client_that_subscribed_is_asked_and_its_no_blocks_with_its_words(one: Process) -> None:
    thread, tool = await one.thread(), FakeTool("put")
    hooks = [subscription(HookEvent.BEFORE_TOOL, "^put$"), subscription(HookEvent.BEFORE_TOOL, "other", id="sub2")]
    started = await one.start(thread, GatedProvider(call("put", '{"n": 2}'), text("x")), [tool], hooks=hooks)
    asked = await one.asked(thread)
    (request,) = [i.request for i in await one.interactions.pending(thread)]
    assert isinstance(request, HookRequest)
    assert (request.subscription, request.event, request.target) == ("sub1", HookEvent.BEFORE_TOOL, "put")
    assert (request.input["tool_input"], request.input["session_id"]) == ({"n": 2}, thread)
    with pytest.raises(Invalid):
        await soon(one.interactions.answer(asked, Answer(Verdict.ANSWER), ME))
    await soon(one.interactions.answer(asked, Answer(Verdict.DENY, "not on Sundays"), ME))
    with pytest.raises(AlreadyResolved):
        await soon(one.interactions.answer(asked, Answer(Verdict.ALLOW), ME))
    await one.ended(started.turn.id)
    assert tool.count == 0
    (result,) = await one.bodies(thread, ToolResult)
    assert result.text == "A hook blocked this call: not on Sundays"
    kinds = [e.kind for e in await one.events(thread) if e.kind.startswith(("hook.", "interaction."))]
    assert kinds == ["hook.triggered", "interaction.requested", "interaction.resolved", "hook.resolved"]


@pytest.mark.req("models:H12")
async def test_a_clients_yes_and_its_silence_let_the_call_run_and_silence_is_told(one: Process) -> None:
    thread, tool = await one.thread(), FakeTool("put")
    hooks = [subscription(HookEvent.BEFORE_TOOL, timeout_s=0.2), subscription(HookEvent.AFTER_TOOL, id="sub2")]
    started = await one.start(thread, GatedProvider(call("put"), text("x")), [tool], hooks=hooks)
    await one.seen(lambda e: isinstance(e.payload, HookResolved), thread)
    await soon(one.interactions.answer(await one.asked(thread), Answer(Verdict.ALLOW), ME))
    await one.ended(started.turn.id)
    assert tool.count == 1
    before, after = await one.payloads(thread, HookResolved)
    assert before.problems == ("the client's hook sub1: no answer within 0.2 s",)
    assert (after.action, after.problems) == (HookAction.ALLOW, ())


@pytest.mark.req("models:H12", "security:S44")
async def test_a_secret_at_the_place_where_a_long_text_is_cut_is_not_told_in_part(house: House) -> None:
    secret = "hunter2-hunter2-hunter2"
    one = await house.process(secrets=[secret])
    thread, long = await one.thread(), "y" * (FIELDS_AT_MOST - 8)
    given = json.dumps({"content": long + secret + long})
    hooks = [subscription(HookEvent.BEFORE_TOOL)]
    started = await one.start(thread, GatedProvider(call("put", given), text("x")), [FakeTool("put")], hooks=hooks)
    asked = await one.asked(thread)
    (request,) = [i.request for i in await one.interactions.pending(thread)]
    assert isinstance(request, HookRequest)
    assert secret[:8] not in request.input["tool_input"]["content"]
    assert request.input["truncated"] == ["tool_input"]
    await soon(one.interactions.answer(asked, Answer(Verdict.ALLOW), ME))
    await one.ended(started.turn.id)


@pytest.mark.req("models:H12")
async def test_a_subscription_serves_the_turns_of_its_starter_only_and_a_clients_own_tools_too(one: Process) -> None:
    thread = await one.thread()
    spec = ToolSpec("ask_editor", "", {"type": "object"}, external=True)
    hooks = [subscription(HookEvent.BEFORE_TOOL)]
    model = GatedProvider(call("ask_editor"), text("x"))
    started = await one.start(thread, model, external_tools=[spec], hooks=hooks)
    await soon(one.interactions.answer(await one.asked(thread), Answer(Verdict.DENY, "no"), ME))
    await one.ended(started.turn.id)
    assert [type(p.interaction.request) for p in await one.payloads(thread, InteractionRequested)] == [HookRequest]
    tool = FakeTool("put")
    await one.run(thread, GatedProvider(call("put", call_id="c2"), text("x")), [tool])
    assert tool.count == 1
    assert len(await one.payloads(thread, HookTriggered)) == 1


@pytest.mark.req("models:H13")
async def test_a_turn_cancelled_while_a_client_is_asked_closes_the_request(one: Process) -> None:
    thread = await one.thread()
    started = await one.start(thread, GatedProvider(), hooks=[subscription(HookEvent.INPUT_GIVEN)])
    await one.asked(thread)
    assert (await soon(one.turns.cancel(started.turn.id, ME))).state is TurnState.CANCELLED
    assert not await one.interactions.pending(thread)
