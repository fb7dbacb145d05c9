from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quintet.domain.errors import Invalid
from quintet.domain.item import ResultStatus
from quintet.domain.tool import CallScope
from quintet.tools.builtin import builtin_tools
from quintet.workspace import output
from quintet.workspace.environment import find_program
from quintet.workspace.process_tree import tree_of
from quintet.workspace.sandbox.wall import Sandbox
from tests.faults.processes import end_leftovers, living_with, wait_until

numbers = itertools.count()


@pytest.fixture(params=["walled", "loose"])
def tools(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """Every test of this file holds with a wall around the command and without one."""
    environment = {**os.environ, "MY_API_KEY": "sk-canary-1234", "SSH_AUTH_SOCK": "/run/agent"}
    if request.param == "walled" and find_program("bwrap", environment) is None:
        pytest.skip("bubblewrap is not installed")
    home = str(tmp_path / "workspace" / "quintet-home")
    sandbox = Sandbox(environment, home=home, enabled=request.param == "walled")
    return {tool.spec.name: tool for tool in builtin_tools(home=home, environment=environment, sandbox=sandbox)}


@pytest.fixture
def word() -> Iterator[str]:
    """Seconds to sleep, as nobody else sleeps them: what a command started is found by it, whatever number it has."""
    made = f"8{next(numbers):04d}.{os.getpid()}"
    yield made
    end_leftovers(living_with(made))


def sleepers(word: str) -> int:
    return len(living_with(f"sleep\0{word}\0"))


async def until_all_sleep(word: str, count: int) -> None:
    await asyncio.to_thread(wait_until, lambda: sleepers(word) == count, 10)


async def until_dead(word: str) -> None:
    await asyncio.to_thread(wait_until, lambda: not living_with(word), 2)


async def test_output_and_exit_code_are_returned(use, context):
    done = await use("shell", command="echo out; echo err >&2")
    assert (done.status, done.message) == (ResultStatus.OK, "exit code 0")
    assert sorted(done.text.split()) == ["err", "out"]
    assert context.said("stdout") == "out\n"
    assert context.said("stderr") == "err\n"


async def test_a_failing_command_is_an_error_told_in_words(use):
    done = await use("shell", command="echo no; exit 3")
    assert (done.status, done.text, done.message) == (ResultStatus.ERROR, "no\n[exit code 3]", "exit code 3")


async def test_death_by_signal_is_told_by_name(use):
    done = await use("shell", command="kill -SEGV $$")
    assert (done.status, done.message) == (ResultStatus.ERROR, "killed by SIGSEGV")


async def test_silence_is_told(use):
    assert (await use("shell", command="true")).text == "(no output)"


async def test_a_command_that_begins_with_a_dash_is_still_a_command(use):
    assert "-c: command not found" in (await use("shell", command="-c")).text


async def test_the_command_runs_in_the_working_directory_with_nothing_to_read(use, workspace):
    assert (await use("shell", command="pwd; cat")).text == f"{workspace}\n"


async def test_what_is_typed_into_quintet_never_reaches_a_command(use):
    ours, (there, here) = os.dup(0), os.pipe()
    os.write(here, b"typed\n")
    os.dup2(there, 0)
    try:
        done = await use("shell", command="cat", timeout_s=5)
    finally:
        os.dup2(ours, 0)
        for handle in (ours, there, here):
            os.close(handle)
    assert (done.text, done.message) == ("(no output)", "exit code 0")


@pytest.mark.req("security:S45")
async def test_a_secret_variable_is_not_visible_in_the_child(use, monkeypatch):
    done = await use("shell", command="env")
    assert "canary" not in done.text
    assert "SSH_AUTH_SOCK" not in done.text
    assert "PATH=" in done.text
    assert "QUINTET_CALL=thr_test:call_1:" in done.text


async def test_the_child_inherits_none_of_our_descriptors(use, tmp_path):
    with open(tmp_path / "lock", "w") as lock:
        os.set_inheritable(lock.fileno(), True)
        done = await use("shell", command="ls -l /proc/$$/fd")
    assert "lock" not in done.text
    assert len([line for line in done.text.splitlines() if "->" in line]) <= 4


async def test_output_comes_while_the_command_still_runs(use, context, workspace):
    running = asyncio.ensure_future(
        use("shell", command="echo started; until [ -e go ]; do sleep 0.01; done; echo over")
    )
    await context.until_said("started")
    assert not running.done()
    (workspace / "go").touch()
    assert (await asyncio.wait_for(running, 10)).text == "started\nover\n"


async def test_a_character_split_between_two_writes_arrives_whole(use, context, workspace):
    command = (
        "printf 'a\\303'; echo > half; until [ -e go ]; do sleep 0.01; done; printf '\\244b'; printf '\\342\\202' >&2"
    )
    running = asyncio.ensure_future(use("shell", command=command))
    await context.until_said("a")
    (workspace / "go").touch()
    done = await asyncio.wait_for(running, 10)
    assert context.said("stdout") == "aäb"
    assert context.said("stderr") == "\ufffd"
    assert done.text == "aäb\ufffd"


async def test_a_flood_is_kept_as_head_and_tail_with_true_totals(use, context):
    done = await use("shell", command="seq 800000")
    assert len(done.text) < output.HEAD + output.TAIL + 200
    assert done.limit == 30_000  # what of it a model gets at once, whatever is held
    assert done.text.startswith("1\n2\n")
    assert done.text.endswith("799999\n800000\n")
    assert "of 5488895 characters (800000 lines) left out here]" in done.text
    assert len(context.said()) <= output.LIVE_LIMIT + len(output.LIVE_STOP)
    assert context.said().endswith(output.LIVE_STOP)


async def test_a_command_that_writes_without_end_is_ended(use, context, monkeypatch):
    monkeypatch.setattr("quintet.tools.shell.OUTPUT_LIMIT", 4 * 1024 * 1024)
    done = await asyncio.wait_for(use("shell", command="yes"), 20)
    assert done.status is ResultStatus.ERROR
    assert done.message == "ended because it wrote more than 4 MiB"
    assert len(context.output) < 2_000


async def test_a_line_by_line_writer_does_not_become_one_event_per_line(use, context):
    done = await use("shell", command="for i in {1..3000}; do echo $i; done")
    assert context.said() == done.text
    assert len(context.output) < 500


async def test_the_timeout_ends_the_command_and_says_so(use):
    started = time.monotonic()
    done = await use("shell", command="echo begun; sleep 60", timeout_s=0.3)
    assert done.status is ResultStatus.ERROR
    assert done.text == "begun\n[ended after its limit of 0.3 s]"
    assert time.monotonic() - started < 5


async def test_a_background_process_that_holds_the_pipe_does_not_hold_the_tool(use, word):
    started = time.monotonic()
    done = await asyncio.wait_for(use("shell", command=f"sleep {word} & echo begun"), 10)
    assert time.monotonic() - started < 3
    assert done.status is ResultStatus.OK
    assert done.text.startswith("begun\n[1 process it had left running in the background ended with it")
    await until_dead(word)


async def test_a_background_process_that_floods_the_pipe_does_not_hold_the_tool(use):
    assert (await asyncio.wait_for(use("shell", command="yes & echo over"), 10)).status is ResultStatus.OK


TREE = """
trap '' TERM
sleep WORD &
(trap '' TERM; sleep WORD & wait) &
setsid sh -c 'trap "" TERM; sleep WORD & wait' &
(setsid sh -c 'exec sleep WORD' &) &
wait; sleep 305
"""


@pytest.mark.req("reliability:R14")
async def test_a_cancel_kills_the_whole_tree_also_what_left_its_session(use, word):
    running = asyncio.ensure_future(use("shell", command=TREE.replace("WORD", word)))
    await until_all_sleep(word, 4)
    started = time.monotonic()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 5)
    assert 0.25 < time.monotonic() - started < 1.0
    assert living_with(word) == []


async def test_a_cancel_gives_the_command_a_moment_to_tidy_up(use, context, workspace):
    command = "trap 'echo bye > tidy; exit' TERM; echo ready; while :; do sleep 0.01; done"
    running = asyncio.ensure_future(use("shell", command=command))
    await context.until_said("ready")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 5)
    assert (workspace / "tidy").read_text() == "bye\n"


async def test_a_second_cancel_does_not_leave_the_tree_alive(use, word):
    running = asyncio.ensure_future(use("shell", command=f"trap '' TERM; sleep {word} & wait; sleep 300"))
    await until_all_sleep(word, 1)
    for _ in range(3):
        running.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 5)
    assert living_with(word) == []


async def test_a_cancel_of_every_task_does_not_leave_the_tree_alive(use, word):
    running = asyncio.ensure_future(use("shell", command=f"trap '' TERM; sleep {word} & wait; sleep 300"))
    await until_all_sleep(word, 1)
    running.cancel()
    known = asyncio.all_tasks()
    for _ in range(100):
        await asyncio.sleep(0)
        if asyncio.all_tasks() - known:
            break  # the task that ends the tree has begun, and takes its time
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 5)
    assert living_with(word) == []


def test_a_loop_that_shuts_down_takes_the_tree_with_it(tools, context, workspace, word):
    async def main() -> None:
        command = f"trap '' TERM; sleep {word} & wait; sleep 300"
        prepared = await tools["shell"].prepare({"command": command}, CallScope(str(workspace)))
        running = asyncio.ensure_future(tools["shell"].run(prepared, context))
        await until_all_sleep(word, 1)
        assert not running.done()

    asyncio.run(main())  # cancels what is left, as a process on its way out does
    assert living_with(word) == []


async def test_a_watcher_that_fails_ends_the_command(use, context, monkeypatch, word):
    def full(stream: str, text: str) -> None:
        context.output.append((stream, text))
        raise RuntimeError("no room")

    monkeypatch.setattr(context, "emit_output", full)
    with pytest.raises(RuntimeError, match="no room"):
        await asyncio.wait_for(use("shell", command=f"echo begun; sleep {word}"), 10)
    assert living_with(word) == []


async def test_a_finished_command_leaves_no_descriptor_open(use):
    await use("shell", command="true")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        await use("shell", command="echo x")
    assert len(os.listdir("/proc/self/fd")) == before


async def test_another_call_with_the_same_id_is_left_alone(use, word):
    first = asyncio.ensure_future(use("shell", command=f"sleep {word}"))
    await until_all_sleep(word, 1)
    await use("shell", command="sleep 60", timeout_s=0.1)
    assert sleepers(word) == 1
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_a_working_directory_that_is_gone_is_told(tools, context, workspace):
    prepared = await tools["shell"].prepare({"command": "true"}, CallScope(str(workspace / "gone")))
    done = await tools["shell"].run(prepared, context)
    assert done.status is ResultStatus.ERROR
    assert "No such file or directory" in done.text


async def test_preparing_shows_the_whole_command_and_binds_to_it(tools, workspace):
    shell = tools["shell"]
    command = "echo " + "x" * 500 + "\n\x1b[2Jrm -rf /"
    shown = await shell.prepare({"command": command}, CallScope(str(workspace)))
    assert shown.command == command
    assert "\n" not in shown.title
    assert "\x1b" not in shown.title
    again = await shell.prepare({"command": command}, CallScope(str(workspace)))
    other = await shell.prepare({"command": command + " "}, CallScope(str(workspace)))
    elsewhere = await shell.prepare({"command": command}, CallScope("/usr"))
    assert shown.digest == again.digest
    assert len({shown.digest, other.digest, elsewhere.digest}) == 3


@pytest.mark.req("security:S26a")
@pytest.mark.parametrize(
    ("command", "which"), [("bash x.sh", 0), ("./x.sh", 0), ("ls && timeout 5 ./x.sh", 2), ("cd sub && sh ../x.sh", 1)]
)
async def test_each_command_that_runs_a_script_says_which_content_it_has(tools, workspace, command, which):
    (workspace / "sub").mkdir()
    (workspace / "x.sh").write_text("echo one")

    async def scripts() -> tuple[str, ...]:
        return (await tools["shell"].prepare({"command": command}, CallScope(str(workspace)))).scripts

    first = await scripts()
    assert [n for n, digest in enumerate(first) if digest] == [which]
    assert await scripts() == first
    (workspace / "x.sh").write_text("echo two")
    changed = await scripts()
    assert [n for n, digest in enumerate(changed) if digest != first[n]] == [which]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"command": ""},
        {"command": "  "},
        {"command": "a\0b"},
        {"command": 3},
        {"command": "a", "timeout_s": 601},
        {"command": "a", "timeout_s": 0},
        {"command": "a", "cwd": "/"},
    ],
)
async def test_wrong_arguments_are_refused_in_words(tools, workspace, arguments):
    with pytest.raises(Invalid, match="shell: "):
        await tools["shell"].prepare(arguments, CallScope(str(workspace)))


async def test_a_process_of_nobody_has_no_tree():
    assert tree_of(2**22 + 1, "no such marker") == set()
