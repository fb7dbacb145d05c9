"""What was agreed to is what runs: anything that changed meanwhile is put forward again."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from quintet.domain.errors import Drifted
from quintet.domain.event import InteractionRequested, ToolStarted
from quintet.domain.grant import Scope, Subject
from quintet.domain.interaction import Approval, Verdict
from quintet.domain.item import ResultStatus, ToolResult
from quintet.domain.ports import ToolContext
from quintet.domain.tool import CallScope, Effect, Prepared, ToolOutcome
from quintet.domain.turn import Mode
from quintet.engine.calls import ROUNDS
from quintet.engine.clearance import CHANGED, DIFF_SHOWN
from quintet.engine.interactions import Answer
from quintet.tools.shell import ShellTool
from quintet.workspace.command_digest import bound_to
from tests.fakes.engine import ME, Process
from tests.fakes.providers import GatedProvider, call, text
from tests.fakes.tools import FakeTool
from tests.fakes.waiting import soon

YES = Answer(Verdict.ALLOW)


class ChangingTool(FakeTool):
    """Another digest each time it is prepared, as long as there are some."""

    def __init__(self, *digests: str, **fields: Any) -> None:
        super().__init__("put", effect=Effect.WRITE)
        self._digests = list(digests)
        self._fields = fields

    async def prepare(self, arguments: dict[str, Any], scope: CallScope) -> Prepared:
        digest = self._digests.pop(0) if len(self._digests) > 1 else self._digests[0]
        return Prepared("put it", arguments, cwd=scope.cwd, paths=("/p/a",), digest=digest, **self._fields)


async def requests(process: Process, thread: str) -> list[Approval]:
    return [p.interaction.request for p in await process.payloads(thread, InteractionRequested)]


@pytest.mark.req("security:S26a")
async def test_a_call_that_changed_while_it_was_asked_about_is_asked_about_again(one: Process) -> None:
    thread, tool = await one.thread(), ChangingTool("first", "second")
    started = await one.start(thread, GatedProvider(call("put"), text("x")), [tool], mode=Mode.ASK)
    await soon(one.interactions.answer(await one.asked(thread), YES, ME))
    assert tool.count == 0
    await soon(one.interactions.answer(await one.asked(thread), YES, ME))
    await one.ended(started.turn.id)
    asked = await requests(one, thread)
    assert [a.digest for a in asked] == ["first", "second"]
    assert [CHANGED in a.notes for a in asked] == [False, True]
    assert tool.count == 1
    assert [p.digest for p in await one.payloads(thread, ToolStarted)] == ["second"]


@pytest.mark.req("security:S26a")
async def test_what_was_remembered_of_the_first_does_not_cover_the_changed_one(one: Process) -> None:
    thread, tool = await one.thread(), ChangingTool("first", "second")
    started = await one.start(thread, GatedProvider(call("put"), text("x")), [tool], mode=Mode.ASK)
    await soon(one.interactions.answer(await one.asked(thread), Answer(Verdict.ALLOW, remember=Scope.THREAD), ME))
    await soon(one.interactions.answer(await one.asked(thread), Answer(Verdict.DENY), ME))
    await one.ended(started.turn.id)
    assert tool.count == 0


@pytest.mark.req("security:S26a")
async def test_a_call_that_changes_every_time_is_given_up(one: Process) -> None:
    thread, tool = await one.thread(), ChangingTool(*[f"d{n}" for n in range(20)])
    started = await one.start(thread, GatedProvider(call("put"), text("x")), [tool], mode=Mode.ASK)
    for _ in range(ROUNDS):
        await soon(one.interactions.answer(await one.asked(thread), YES, ME))
    await one.ended(started.turn.id)
    assert (tool.count, len(await requests(one, thread))) == (0, ROUNDS)
    (result,) = await one.bodies(thread, ToolResult)
    assert result.status is ResultStatus.DENIED
    assert "changed each time" in result.text


@pytest.mark.req("security:S26a")
async def test_a_tool_that_finds_a_change_at_the_last_moment_is_asked_about_again(one: Process) -> None:
    left = [1]

    async def run(prepared: Prepared, context: ToolContext) -> ToolOutcome:
        if left:
            left.pop()
            raise Drifted("it changed")
        return ToolOutcome("done")

    thread, tool = await one.thread(), FakeTool("put", run, effect=Effect.WRITE)
    started = await one.start(thread, GatedProvider(call("put"), text("x")), [tool], mode=Mode.ASK)
    for _ in range(2):
        await soon(one.interactions.answer(await one.asked(thread), YES, ME))
    await one.ended(started.turn.id)
    (result,) = await one.bodies(thread, ToolResult)
    assert (result.status, tool.count) == (ResultStatus.OK, 2)


@pytest.mark.req("security:S26a")
@pytest.mark.parametrize("command", ["./x.sh", "bash x.sh", "timeout 20 sh x.sh", "true && ./x.sh"])
async def test_a_script_that_changed_between_yes_and_start_is_asked_about_again(
    one: Process, tmp_path: Path, command: str
) -> None:
    script = tmp_path / "x.sh"
    script.write_text("#!/bin/sh\necho shown\n")
    script.chmod(0o755)
    thread = await one.thread(str(tmp_path))
    wish = call("shell", json.dumps({"command": command}))
    started = await one.start(thread, GatedProvider(wish, text("x")), [ShellTool(os.environ)], mode=Mode.ASK)
    first = await one.asked(thread)
    script.write_text("#!/bin/sh\necho changed\n")
    await soon(one.interactions.answer(first, YES, ME))
    second = await one.asked(thread)
    assert second != first
    await soon(one.interactions.answer(second, Answer(Verdict.DENY), ME))
    await one.ended(started.turn.id)
    assert await one.payloads(thread, ToolStarted) == []


def test_the_digest_of_a_command_covers_words_directory_names_and_scripts(tmp_path: Path) -> None:
    root = str(tmp_path)
    (tmp_path / "x.sh").write_text("echo 1")
    (tmp_path / "Makefile").write_text("all:")

    def made(command: str = "sh x.sh", cwd: str = root, names: tuple[str, ...] = ("A", "B")) -> str:
        return bound_to(command, cwd, names, root).digest

    first = made()
    assert made() == first == made(names=("B", "A"))
    others = [made("sh  x.sh"), made(cwd="/"), made(names=("A",)), made("make"), made("sh -c 'sh x.sh'")]
    assert len({first, *others}) == 6
    (tmp_path / "x.sh").write_text("echo 2")
    assert made() != first
    assert made("sh -c 'sh x.sh'") != others[-1]
    assert made("make") == others[3]
    (tmp_path / "Makefile").write_text("all: x")
    assert made("make") != others[3]


def test_a_file_outside_the_workspace_and_a_pipe_are_not_read_for_the_digest(tmp_path: Path) -> None:
    outside, root = tmp_path / "outside.sh", tmp_path / "root"
    root.mkdir()
    outside.write_text("1")
    os.mkfifo(root / "pipe")
    (root / "link.sh").symlink_to(outside)
    commands = ("sh ../outside.sh", "sh link.sh", "sh pipe")
    before = [bound_to(c, str(root), (), str(root)) for c in commands]
    outside.write_text("2")
    assert before == [bound_to(c, str(root), (), str(root)) for c in commands]


@pytest.mark.req("security:S25")
async def test_a_request_carries_everything_whole(one: Process, tmp_path: Path) -> None:
    thread = await one.thread(str(tmp_path))
    command = "echo " + "x" * 9_000 + "; echo tail"
    wish = call("shell", json.dumps({"command": command, "network": True}))
    started = await one.start(thread, GatedProvider(wish, text("x")), [ShellTool(os.environ)], mode=Mode.ASK)
    await soon(one.interactions.answer(await one.asked(thread), Answer(Verdict.DENY), ME))
    await one.ended(started.turn.id)
    (asked,) = await requests(one, thread)
    assert (asked.command, asked.cwd, asked.host) == (command, str(tmp_path), os.uname().nodename)
    assert "with network" in asked.notes


@pytest.mark.req("security:S27")
@pytest.mark.parametrize(("command", "said"), [("rm -rf build", True), ("ls build", False)])
async def test_a_request_for_a_destructive_command_says_so(
    one: Process, tmp_path: Path, command: str, said: bool
) -> None:
    thread = await one.thread(str(tmp_path))
    wish = call("shell", json.dumps({"command": command}))
    started = await one.start(thread, GatedProvider(wish, text("x")), [ShellTool(os.environ)], mode=Mode.ASK)
    await soon(one.interactions.answer(await one.asked(thread), Answer(Verdict.DENY), ME))
    await one.ended(started.turn.id)
    (asked,) = await requests(one, thread)
    assert ("destructive: what it does is hard to undo" in asked.notes) is said


@pytest.mark.req("security:S25")
async def test_what_cannot_be_shown_whole_is_refused_unasked(one: Process) -> None:
    thread, tool = await one.thread(), ChangingTool("d", diff="+x\n" * DIFF_SHOWN)
    await one.run(thread, GatedProvider(call("put"), text("x")), [tool], mode=Mode.ASK)
    (result,) = await one.bodies(thread, ToolResult)
    assert result.status is ResultStatus.DENIED
    assert "too long to be shown whole" in result.text
    assert await requests(one, thread) == []


@pytest.mark.req("security:S27")
@pytest.mark.parametrize("mode", [Mode.ASK, Mode.ALLOW])
async def test_when_a_command_starts_its_decision_is_on_record(one: Process, mode: Mode) -> None:
    seen: list[tuple[str, str, str, bool]] = []
    thread = await one.thread()

    async def run(prepared: Prepared, context: ToolContext) -> ToolOutcome:
        events = await one.journal.events(0, root=thread)
        begun = next(e for e in events if isinstance(e.payload, ToolStarted))
        turn = await one.journal.turn(begun.turn)
        assert isinstance(begun.payload, ToolStarted)
        seen.append((begun.payload.rule, turn.principal.name, turn.principal.protocol, begun.at_ms > 0))
        return ToolOutcome("ran")

    tool = FakeTool("shell", run, effect=Effect.EXECUTE)
    started = await one.start(thread, GatedProvider(call("shell", '{"command": "make"}'), text("x")), [tool], mode=mode)
    if mode is Mode.ASK:
        await soon(one.interactions.answer(await one.asked(thread), YES, ME))
    await one.ended(started.turn.id)
    rule = "mode allow" if mode is Mode.ALLOW else "allowed by me through test"
    assert seen == [(rule, "me", "test", True)]


async def test_two_grants_that_cover_a_line_are_each_used_once(one: Process) -> None:
    from tests.unit.engine.test_grants import granted

    thread, tool = await one.thread(), FakeTool("shell", effect=Effect.EXECUTE)
    fields: dict[str, Any] = {"tool": "shell", "subject": Subject.COMMAND, "uses_left": 1}
    first = await granted(one, thread, **fields, pattern=("make",))
    second = await granted(one, thread, **fields, pattern=("npm", "test"))
    wish = call("shell", '{"command": "make && npm test && make x"}')
    await one.run(thread, GatedProvider(wish, text("x")), [tool], mode=Mode.ASK)
    assert [p.rule for p in await one.payloads(thread, ToolStarted)] == [f"{first}; {second}"]
    assert await one.journal.grants(root=thread) == []
