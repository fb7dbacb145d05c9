"""A project's hooks: never run before somebody agreed to exactly what would run."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from quintet.domain.event import Draft, GrantMade, HookResolved, HookTriggered, InteractionRequested
from quintet.domain.grant import Scope, Subject
from quintet.domain.hook import HookAction, HookEvent
from quintet.domain.ids import new_id
from quintet.domain.interaction import Approval, Verdict
from quintet.domain.principal import local
from quintet.domain.turn import Mode
from quintet.engine.hook_trust import NOT_AGREED, OF_PROJECT
from quintet.engine.interactions import Answer, OnAsk
from quintet.engine.project_policy import project_policy
from quintet.workspace.environment import find_program
from quintet.workspace.hook_commands import HookCommands
from quintet.workspace.project_config import read_project_config
from tests.fakes.engine import ME, House, Process
from tests.fakes.hooks import hook, real_commands
from tests.fakes.providers import GatedProvider, call, text
from tests.fakes.tools import FakeTool
from tests.fakes.waiting import soon, until

pytestmark = pytest.mark.skipif(find_program("bwrap", os.environ) is None, reason="bubblewrap is not installed")
ROW = '[[hooks]]\nevent = "PreToolUse"\nmatcher = "^put$"\ncommand = "bash check.sh"\n'


@pytest.fixture
async def commands(tmp_path: Path) -> AsyncIterator[HookCommands]:
    async with real_commands(tmp_path / "hooks-home") as made:
        yield made


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A checkout that brings a hook along, which notes that it ran."""
    made = tmp_path / "work"
    (made / ".quintet").mkdir(parents=True)
    (made / ".quintet" / "config.toml").write_text(ROW)
    (made / "check.sh").write_text("echo x >>ran\n")
    return made


@pytest.fixture
async def begin(house: House, commands: HookCommands) -> Callable[..., Any]:
    async def begun() -> Process:
        project = lambda directory: project_policy(read_project_config(directory))  # noqa: E731
        return await house.process(hook_commands=commands, project=project)

    return begun


def ran(work: Path) -> int:
    return len((work / "ran").read_text().split()) if (work / "ran").exists() else 0


async def turn(process: Process, thread: str, *answers: Answer, calls: int = 1, **starter: Any) -> FakeTool:
    """A turn with so many calls; each answer is given to the next request."""
    tool = FakeTool("put")
    steps = [call("put", call_id=f"c{n}-{os.urandom(2).hex()}") for n in range(calls)]
    started = await process.start(thread, GatedProvider(*steps, text("x")), [tool], mode=Mode.ALLOW, **starter)
    for answer in answers:
        await soon(process.interactions.answer(await process.asked(thread), answer, ME))
    await process.ended(started.turn.id)
    return tool


async def requests(process: Process, thread: str) -> list[Approval]:
    return [p.interaction.request for p in await process.payloads(thread, InteractionRequested)]


@pytest.mark.req("models:H15", "security:S23-hooks", "security:S21")
async def test_a_projects_hook_is_asked_about_with_its_command_and_digest_before_it_runs(
    begin: Any, work: Path
) -> None:
    one = await begin()
    thread, tool = await one.thread(str(work)), FakeTool("put")
    started = await one.start(thread, GatedProvider(call("put"), text("x")), [tool], mode=Mode.ALLOW)
    asked = await one.asked(thread)
    assert (ran(work), tool.count) == (0, 0)
    (request,) = await requests(one, thread)
    assert (request.tool, request.command, request.reason) == ("hook", "bash check.sh", OF_PROJECT)
    assert request.cwd == str(work)
    assert str(work / ".quintet" / "config.toml") in " ".join(request.notes)
    assert {(o.subject, o.pattern[-1]) for o in request.offers} == {(Subject.CONTENT, request.digest)}
    await soon(one.interactions.answer(asked, Answer(Verdict.ALLOW), ME))
    await one.ended(started.turn.id)
    assert (ran(work), tool.count) == (1, 1)


@pytest.mark.req("models:H15", "security:S23-hooks")
async def test_a_yes_for_this_call_holds_for_the_turn_and_is_asked_for_again_in_the_next(
    begin: Any, work: Path
) -> None:
    one = await begin()
    thread = await one.thread(str(work))
    await turn(one, thread, Answer(Verdict.ALLOW), calls=2)
    assert (ran(work), len(await requests(one, thread))) == (2, 1)
    await turn(one, thread, Answer(Verdict.DENY))
    assert (ran(work), len(await requests(one, thread))) == (2, 2)


@pytest.mark.req("models:H15", "security:S23-hooks")
@pytest.mark.parametrize("changed", ["check.sh", ".quintet/config.toml"])
async def test_a_remembered_yes_holds_until_the_row_or_its_script_changes(begin: Any, work: Path, changed: str) -> None:
    one = await begin()
    thread = await one.thread(str(work))
    await turn(one, thread, Answer(Verdict.ALLOW, remember=Scope.PROJECT))
    await turn(one, thread)
    assert (ran(work), len(await requests(one, thread))) == (2, 1)
    if changed == "check.sh":
        (work / changed).write_text("echo evil >>ran\n")
    else:
        (work / changed).write_text(ROW.replace("check.sh", "check.sh --evil"))
    await turn(one, thread, Answer(Verdict.DENY))
    assert (ran(work), len(await requests(one, thread))) == (2, 2)
    first, second = await requests(one, thread)
    assert first.digest != second.digest


@pytest.mark.req("models:H15", "security:S23-hooks")
async def test_after_a_no_the_call_runs_without_the_hook_which_is_told_and_not_asked_again(
    begin: Any, work: Path
) -> None:
    one = await begin()
    thread = await one.thread(str(work))
    tool = await turn(one, thread, Answer(Verdict.DENY), calls=2)
    assert (ran(work), tool.count, len(await requests(one, thread))) == (0, 2, 1)
    told = await one.payloads(thread, HookResolved)
    assert [t.action for t in told] == [HookAction.ALLOW] * 2
    assert all(NOT_AGREED in problem for t in told for problem in t.problems)


@pytest.mark.req("models:H15", "security:S27a")
@pytest.mark.parametrize("on_ask", [OnAsk.DENY, OnAsk.FAIL])
async def test_where_nobody_can_be_asked_the_turn_goes_on_without_the_hook(
    begin: Any, work: Path, on_ask: OnAsk
) -> None:
    one = await begin()
    thread = await one.thread(str(work))
    tool = await turn(one, thread, on_ask=on_ask)
    assert (ran(work), tool.count) == (0, 1)


@pytest.mark.req("models:H15", "security:S23-hooks")
async def test_a_script_changed_while_the_question_was_open_is_not_run(begin: Any, work: Path) -> None:
    one = await begin()
    thread = await one.thread(str(work))
    started = await one.start(thread, GatedProvider(call("put"), text("x")), [FakeTool("put")], mode=Mode.ALLOW)
    asked = await one.asked(thread)
    (work / "check.sh").write_text("echo evil >>ran\n")
    await soon(one.interactions.answer(asked, Answer(Verdict.ALLOW), ME))
    await one.ended(started.turn.id)
    assert ran(work) == 0
    (told,) = await one.payloads(thread, HookResolved)
    assert "it changed while it was being agreed to" in told.problems[0]


@pytest.mark.req("models:H15", "security:S23-hooks")
@pytest.mark.parametrize("lost", ["another thread", "another protocol", "revoked", "used up", "expired"])
async def test_a_yes_reaches_no_further_than_it_was_given(begin: Any, work: Path, lost: str) -> None:
    one = await begin()
    thread = await one.thread(str(work))
    yes = Answer(Verdict.ALLOW, remember=Scope.THREAD if lost == "another thread" else Scope.ALWAYS)
    if lost == "another protocol":
        yes = replace(yes, protocol_only=True)
    await turn(one, thread, yes)
    (grant,) = await one.journal.grants()
    if lost == "another thread":
        thread = await one.thread(str(work))
    elif lost == "revoked":
        await soon(one.journal.revoke_grant(grant.id))
    elif lost == "expired":
        await soon(one.journal.revoke_grant(grant.id))
        await soon(one.journal.append([Draft(GrantMade(replace(grant, id=new_id("grt"), expires_ms=1)), thread)]))
    elif lost == "used up":
        await soon(one.journal.revoke_grant(grant.id))
        once = replace(grant, id=new_id("grt"), uses_left=1)
        await soon(one.journal.append([Draft(GrantMade(once), thread)]))
        await turn(one, thread)
        assert ran(work) == 2, "once more without a question"
    other = {"principal": local("other")} if lost == "another protocol" else {}
    before, asked = ran(work), len(await requests(one, thread))
    await turn(one, thread, Answer(Verdict.DENY), **other)
    assert (ran(work), len(await requests(one, thread))) == (before, asked + 1)


@pytest.mark.req("models:H15")
async def test_calls_made_at_once_ask_once_about_the_hook_they_share(begin: Any, work: Path) -> None:
    one = await begin()
    thread, tool = await one.thread(str(work)), FakeTool("put")
    at_once = [*call("put", call_id="a"), *call("put", call_id="b"), *call("put", call_id="c")]
    started = await one.start(thread, GatedProvider(at_once, text("x")), [tool], mode=Mode.ALLOW)
    asked = await one.asked(thread)
    await one.seen(lambda e: isinstance(e.payload, HookTriggered) and e.payload.call_id == "c", thread)
    await soon(one.interactions.answer(asked, Answer(Verdict.ALLOW), ME))
    await one.ended(started.turn.id)
    assert (ran(work), tool.count, len(await requests(one, thread))) == (3, 3, 1)


@pytest.mark.req("models:H14", "models:H15")
async def test_a_person_is_called_when_a_projects_hook_waits_for_their_yes(
    house: House, commands: HookCommands, work: Path
) -> None:
    project = lambda directory: project_policy(read_project_config(directory))  # noqa: E731
    calling = hook(HookEvent.NOTIFIED, "cat >called.new && mv called.new called", "approval")
    one = await house.process(hooks=[calling], hook_commands=commands, project=project)
    thread = await one.thread(str(work))
    started = await one.start(thread, GatedProvider(call("put"), text("x")), [FakeTool("put")], mode=Mode.ALLOW)
    asked = await one.asked(thread)
    await until((work / "called").exists)
    await soon(one.interactions.answer(asked, Answer(Verdict.ALLOW), ME))
    await one.ended(started.turn.id)
    assert "bash check.sh" in (work / "called").read_text()


@pytest.mark.req("models:H15", "security:S23-hooks")
@pytest.mark.parametrize("last_look", ["run", "_child"])
async def test_a_script_changed_between_the_yes_and_the_run_is_not_run(
    begin: Any, commands: HookCommands, work: Path, monkeypatch: pytest.MonkeyPatch, last_look: str
) -> None:
    one = await begin()
    thread = await one.thread(str(work))
    await turn(one, thread, Answer(Verdict.ALLOW, remember=Scope.PROJECT))
    usual = getattr(commands, last_look)

    def meddled(*given: Any, **more: Any) -> Any:
        (work / "check.sh").write_text("echo evil >>ran\n")
        return usual(*given, **more)

    monkeypatch.setattr(commands, last_look, meddled)
    tool = await turn(one, thread)
    assert (ran(work), tool.count, len(await requests(one, thread))) == (1, 1, 1)
    told = (await one.payloads(thread, HookResolved))[-1]
    assert "changed" in told.problems[0]


@pytest.mark.req("security:S21")
def test_rows_of_a_project_that_are_wrong_are_ignored_by_name_and_the_others_are_read(work: Path) -> None:
    rows = '[[hooks]]\nevent = "x"\ncommand = "y"\n[[hooks]]\nevent = "Stop"\ncommand = "y"\nmatcher = "(a+)+"\n'
    (work / ".quintet" / "config.toml").write_text(ROW + rows + '[[hooks]]\nevent = "Stop"\ncommand = "y"\nenv = {}\n')
    found = project_policy(read_project_config(str(work)))
    assert [(h.event, h.command, h.of_project) for h in found.hooks] == [(HookEvent.BEFORE_TOOL, "bash check.sh", True)]
    (warning,) = found.warnings
    for name in (
        "`hooks[1]` (Invalid enum value 'x'",
        "`hooks[2]` (the matcher '(a+)+' could",
        "`hooks[3]` (Object contains",
    ):
        assert name in warning
    assert found.mode is None
