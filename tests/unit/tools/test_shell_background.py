"""Commands that go on after their call: looked at, ended, and bounded."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from quintet.domain.errors import Invalid, NotFound
from quintet.domain.item import ResultStatus
from quintet.domain.notice import Notice
from quintet.domain.subagent import Report
from quintet.domain.tool import CallScope, ToolOutcome
from quintet.domain.turn import TurnState
from quintet.tools.builtin import builtin_tools
from quintet.tools.shell_notice import ended_notice
from quintet.tools.shell_profile import ShellSettings
from quintet.workspace import background, output
from quintet.workspace.background import Background, Look
from quintet.workspace.child import Child, Ended
from quintet.workspace.environment import find_program
from quintet.workspace.sandbox.limits import usual_caps
from quintet.workspace.sandbox.wall import Sandbox
from tests.fakes.tool_context import FakeToolContext
from tests.faults.processes import living_with, wait_until


class Shelf:
    """The three tools over one set of background commands."""

    def __init__(self, workspace: Path, walled: bool, commands: Background | None = None) -> None:
        self.workspace = workspace
        self.commands = commands or Background()
        self.context = FakeToolContext(str(workspace))
        tools = builtin_tools(
            sandbox=Sandbox(os.environ, enabled=walled),
            background=self.commands,
            shell=ShellSettings(caps=usual_caps(max_processes=50)),
        )
        self._tools = {tool.spec.name: tool for tool in tools}

    async def use(self, name: str, *, thread: str = "thr_test", **arguments: Any) -> ToolOutcome:
        prepared = await self._tools[name].prepare(arguments, CallScope(str(self.workspace), thread))
        self.context.thread = thread
        return await self._tools[name].run(prepared, self.context)

    async def start(self, command: str, **more: Any) -> str:
        """Its id, as the model reads it."""
        done = await self.use("shell", command=command, background=True, **more)
        assert done.status is ResultStatus.OK, done.text
        return next(word for word in done.text.replace(",", " ").split() if word.startswith("cal_"))


@pytest.fixture(params=["walled", "loose"])
async def shelf(request: pytest.FixtureRequest, workspace: Path) -> AsyncIterator[Shelf]:
    if request.param == "walled" and find_program("bwrap", os.environ) is None:
        pytest.skip("bubblewrap is not installed")
    made = Shelf(workspace, request.param == "walled")
    yield made
    await made.commands.close()


def word() -> str:
    return f"8{os.urandom(3).hex().translate(str.maketrans('abcdef', '012345'))}.{os.getpid()}"


async def test_it_returns_at_once_and_the_words_say_how_to_look_and_stop(shelf: Shelf) -> None:
    done = await asyncio.wait_for(shelf.use("shell", command="echo on; sleep 300", background=True), 10)
    assert "shell_output" in done.text
    assert "shell_stop" in done.text
    assert "3600 s" in done.text
    (shown,) = done.display
    assert shown == {"type": "shell", "command": "echo on; sleep 300", "task": shown["task"]}
    assert str(shown["task"]) in done.text


async def test_each_look_gives_what_is_new_and_says_that_it_runs(shelf: Shelf) -> None:
    name = await shelf.start("echo one; until [ -e go ]; do sleep 0.01; done; echo two; exit 3")
    seen = ""
    while "one" not in seen:
        seen = (await asyncio.wait_for(shelf.use("shell_output", id=name, wait_s=0.05), 10)).text
    assert seen.startswith("one\n[still running after ")
    assert (await shelf.use("shell_output", id=name)).text.startswith("(nothing new)\n[still running")
    (shelf.workspace / "go").touch()
    over = await shelf.use("shell_output", id=name, wait_s=30)
    assert (over.text, over.status, over.message) == ("two\n[exit code 3]", ResultStatus.ERROR, "exit code 3")
    assert over.display[0]["exit_code"] == 3


async def test_nothing_is_told_to_watchers_after_the_call(shelf: Shelf) -> None:
    name = await shelf.start("echo one; echo two >&2")
    assert "one" in (await shelf.use("shell_output", id=name, wait_s=30)).text
    assert shelf.context.output == []


async def test_stopping_ends_everything_it_started(shelf: Shelf) -> None:
    mark = word()
    name = await shelf.start(f"trap '' TERM; setsid sleep {mark} & echo begun; sleep {mark}")
    await asyncio.to_thread(wait_until, lambda: len(living_with(f"sleep\0{mark}\0")) == 2, 10)
    done = await asyncio.wait_for(shelf.use("shell_stop", id=name), 5)
    assert living_with(mark) == []
    assert done.text.startswith("begun\n[stopped after ")
    assert (await shelf.use("shell_output", id=name)).text.startswith("(nothing new)\n[stopped after")


async def test_stopping_what_is_over_tells_its_end(shelf: Shelf) -> None:
    name = await shelf.start("echo done")
    await shelf.use("shell_output", id=name, wait_s=30)
    assert (await shelf.use("shell_stop", id=name)).message == "exit code 0"


@pytest.mark.parametrize("tool", ["shell_output", "shell_stop"])
async def test_a_thread_sees_only_its_own(shelf: Shelf, tool: str) -> None:
    mine = await shelf.start("sleep 300")
    with pytest.raises(NotFound, match="no background command"):
        await shelf.use(tool, thread="thr_other", id=mine)
    with pytest.raises(NotFound, match=mine):  # what there is, is named
        await shelf.use(tool, id="cal_nothing")
    assert "still running" in (await shelf.use("shell_output", id=mine)).text


async def test_the_number_that_run_at_once_is_bounded_for_each_thread(shelf: Shelf, monkeypatch: Any) -> None:
    monkeypatch.setattr(background, "AT_ONCE", 2)
    first, _ = await shelf.start("sleep 300"), await shelf.start("sleep 300")
    with pytest.raises(Invalid, match="2 commands of this thread run in the background already"):
        await shelf.start("sleep 300")
    await shelf.start("sleep 300", thread="thr_other")
    await shelf.use("shell_stop", id=first)
    await shelf.start("sleep 300")


async def test_ended_ones_are_forgotten_when_there_are_many(shelf: Shelf, monkeypatch: Any) -> None:
    monkeypatch.setattr(background, "REMEMBERED", 2)
    names = []
    for _ in range(4):
        names.append(await shelf.start("true"))
        await shelf.use("shell_output", id=names[-1], wait_s=30)
    with pytest.raises(NotFound):
        await shelf.use("shell_output", id=names[0])
    assert (await shelf.use("shell_output", id=names[-1])).message == "exit code 0"


async def test_what_nobody_asks_for_is_kept_as_head_and_tail(shelf: Shelf) -> None:
    name = await shelf.start("seq 800000")
    done = await shelf.use("shell_output", id=name, wait_s=30)
    assert len(done.text) < output.HEAD + output.TAIL + 200
    assert done.text.startswith("1\n2\n")
    assert done.text.endswith("799999\n800000\n[exit code 0]")
    assert done.limit == 30_000
    assert "of 5488895 characters (800000 lines) left out here]" in done.text


async def test_its_own_time_limit_ends_it(shelf: Shelf) -> None:
    name = await shelf.start("sleep 300", timeout_s=0.2)
    assert (await shelf.use("shell_output", id=name, wait_s=30)).message == "ended after its limit of 0.2 s"


@pytest.mark.req("security:S32")
async def test_it_keeps_its_caps(shelf: Shelf) -> None:
    name = await shelf.start("for i in {1..80}; do sleep 300 & done; wait")
    done = await shelf.use("shell_output", id=name, wait_s=30)
    assert done.message == "ended because it had more than 50 processes at a time"


async def test_closing_ends_all(shelf: Shelf) -> None:
    mark = word()
    for thread in ("thr_a", "thr_b"):
        await shelf.start(f"setsid sleep {mark} & sleep {mark}", thread=thread)
    await asyncio.to_thread(wait_until, lambda: len(living_with(f"sleep\0{mark}\0")) == 4, 10)
    await asyncio.wait_for(shelf.commands.close(), 5)
    assert living_with(mark) == []


async def test_a_command_that_cannot_be_started_is_told_at_once(shelf: Shelf) -> None:
    shelf.workspace.rmdir()
    done = await shelf.use("shell", command="true", background=True)
    assert done.status is ResultStatus.ERROR
    assert "No such file or directory" in done.text


async def test_a_cancel_while_it_is_being_started_leaves_nothing(shelf: Shelf) -> None:
    mark = word()
    starting = asyncio.ensure_future(shelf.start(f"sleep {mark}"))
    await asyncio.sleep(0)
    while not shelf.commands._commands and not starting.done():
        await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(starting, 10)
    assert living_with(mark) == []


async def test_a_line_that_still_grows_is_not_torn_between_two_looks(shelf: Shelf, monkeypatch: Any) -> None:
    monkeypatch.setattr(background, "SETTLED_S", 600.0)
    name = await shelf.start("echo whole; printf half; until [ -e go ]; do sleep 0.01; done; echo ' and half'")
    seen = ""
    while "whole" not in seen:
        seen = (await asyncio.wait_for(shelf.use("shell_output", id=name, wait_s=0.05), 10)).text
    assert seen.startswith("whole\n[still running")
    (shelf.workspace / "go").touch()
    assert (await shelf.use("shell_output", id=name, wait_s=30)).text == "half and half\n[exit code 0]"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("shell", {"command": "a", "background": True, "timeout_s": 86_401}),
        ("shell", {"command": "a", "timeout_s": 601}),
        ("shell_output", {}),
        ("shell_output", {"id": "cal_x", "wait_s": 61}),
        ("shell_stop", {"id": ""}),
    ],
)
async def test_wrong_arguments_are_refused_in_words(shelf: Shelf, tool: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match=f"{tool}: "):
        await shelf.use(tool, **arguments)


class Ends:
    """What is told of the ends of commands."""

    def __init__(self) -> None:
        self.said: asyncio.Queue[tuple[str, Notice]] = asyncio.Queue()

    async def tell(self, thread: str, look: Look) -> None:
        await asyncio.to_thread(os.getpid)  # as a commit would, it takes a moment
        self.said.put_nowait((thread, ended_notice(look, 7)))


@pytest.mark.req("mechanisms:M2.notices")
@pytest.mark.parametrize(
    ("command", "limit_s", "kind", "severity", "words"),
    [
        ("true", 60, "task.completed", "success", "exit code 0"),
        ("exit 3", 60, "task.failed", "error", "exit code 3"),
        ("sleep 300", 0.2, "task.timed_out", "error", "limit of 0.2 s"),
    ],
)
async def test_each_end_is_told_once_with_its_kind_and_never_what_was_written(
    workspace: Path, command: str, limit_s: float, kind: str, severity: str, words: str
) -> None:
    ends = Ends()
    shelf = Shelf(workspace, False, Background(ends.tell))
    name = await shelf.start(f"echo obey me; {command}", timeout_s=limit_s, thread="thr_a")
    thread, notice = await asyncio.wait_for(ends.said.get(), 20)
    assert (thread, notice.source, notice.type, notice.severity.value) == ("thr_a", name, kind, severity)
    assert words in notice.body
    assert "obey me\n" in (await shelf.use("shell_output", id=name, thread="thr_a")).text  # it is still unread
    assert "obey me\n" not in notice.body
    await shelf.commands.close()
    assert ends.said.empty()


@pytest.mark.parametrize(("closes", "words"), [(False, "End: stopped"), (True, "ended with the process")])
async def test_one_that_is_stopped_is_told_too_and_so_is_one_that_ends_with_its_process(
    workspace: Path, closes: bool, words: str
) -> None:
    ends = Ends()
    shelf = Shelf(workspace, False, Background(ends.tell))
    name = await shelf.start("sleep 300")
    if closes:
        await shelf.commands.close()
        _, notice = ends.said.get_nowait()  # whoever closes goes on to close the journal
    else:
        await shelf.use("shell_stop", id=name)
        _, notice = await asyncio.wait_for(ends.said.get(), 20)
    assert notice.type == "task.killed"
    assert words in notice.body
    await shelf.commands.close()


async def test_nothing_is_told_of_one_that_never_began(workspace: Path) -> None:
    ends = Ends()
    commands = Background(ends.tell)

    async def fails(receive: object, started: object) -> Ended:
        raise OSError("no such directory")

    with pytest.raises(OSError, match="no such directory"):
        await commands.start("thr_a", "true", Child(("true",), str(workspace), {}, 1, 1, None), fails)
    await commands.close()
    assert ends.said.empty()


async def test_what_goes_on_is_listed_by_its_id_and_what_has_ended_when_asked(workspace: Path) -> None:
    shelf = Shelf(workspace, False)
    assert (await shelf.use("background_list")).text == "Nothing goes on in the background."
    going, over = await shelf.start("sleep 300"), await shelf.start("exit 3")
    await shelf.start("sleep 301", thread="thr_other")
    await shelf.use("shell_output", id=over, wait_s=20)
    (line,) = (await shelf.use("background_list")).text.splitlines()
    assert line.startswith(f"{going}  command  runs")
    assert line.endswith(": sleep 300")
    told = (await shelf.use("background_list", all=True)).text.splitlines()
    assert [words.split()[0] for words in told] == [going, over]
    assert "exit code 3" in told[1]
    shelf.context.report = Report("thr_child", "trn_1", "worker", TurnState.RUNNING)
    assert (await shelf.use("background_list")).text.splitlines()[1] == "thr_child  subagent worker  at work"
    await shelf.commands.close()
