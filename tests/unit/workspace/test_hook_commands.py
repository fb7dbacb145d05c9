"""The commands of hooks, run for real in the sandbox: what they are given, what they may, what their end means."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from quintet.domain.hook import REASON_AT_MOST, HookEvent, HookScope, HookVerdict
from quintet.domain.tool import Confine
from quintet.domain.turn import Mode
from quintet.workspace.environment import find_program
from quintet.workspace.hook_commands import HookCommands
from tests.fakes.hooks import hook, real_commands
from tests.fakes.waiting import soon, until

pytestmark = pytest.mark.skipif(find_program("bwrap", os.environ) is None, reason="bubblewrap is not installed")
CANARY = "canary-5d1f0a8e7c"


@pytest.fixture
async def commands(tmp_path: Path) -> AsyncIterator[HookCommands]:
    around = {**os.environ, "MY_API_KEY": CANARY, "ANTHROPIC_API_KEY": CANARY}
    async with real_commands(tmp_path / "home", around) as made:
        yield made


@pytest.fixture
def work(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    return made


async def ran(
    commands: HookCommands, work: Path, command: str, *, mode: Mode = Mode.ALLOW, timeout_s: float = 20.0, **given: Any
) -> HookVerdict:
    row = hook(HookEvent.BEFORE_TOOL, command, timeout_s=timeout_s)
    return await soon(commands.run(row, given, HookScope(str(work), "thr_x", mode)))


@pytest.mark.req("models:H3")
async def test_a_command_reads_its_json_in_the_threads_directory_and_the_environment_has_no_secret(
    commands: HookCommands, work: Path
) -> None:
    verdict = await ran(commands, work, "cat >in.json; pwd >pwd; env >env", tool_name="shell", words='a "b"\n$HOME é')
    assert verdict == HookVerdict()
    assert json.loads((work / "in.json").read_text()) == {"tool_name": "shell", "words": 'a "b"\n$HOME é'}
    assert (work / "pwd").read_text().strip() == str(work)
    assert "PATH=" in (work / "env").read_text()
    assert CANARY not in (work / "env").read_text()


@pytest.mark.req("models:H3")
async def test_a_command_is_given_more_than_a_pipe_or_an_argument_could_hold(
    commands: HookCommands, work: Path
) -> None:
    await ran(commands, work, "wc -c >size", content="z" * 500_000)
    assert int((work / "size").read_text()) > 500_000


@pytest.mark.req("models:H3")
async def test_a_command_is_confined_as_its_turns_mode_is(commands: HookCommands, work: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    await ran(commands, work, f"echo x >{outside}; echo x >inside; ls {tmp_path}/home >&2; exit 2")
    assert (work / "inside").exists()
    assert not outside.exists()
    (work / "inside").unlink()
    await ran(commands, work, "echo x >inside", mode=Mode.READ_ONLY)
    assert not (work / "inside").exists()
    scope = HookScope(str(work), "thr_x", Mode.ALLOW, Confine.READ_ONLY)
    await soon(commands.run(hook(HookEvent.BEFORE_TOOL, "echo x >inside"), {}, scope))
    assert not (work / "inside").exists()


@pytest.mark.req("models:H3")
async def test_what_a_hook_was_given_is_not_left_lying_about(
    commands: HookCommands, work: Path, tmp_path: Path
) -> None:
    await ran(commands, work, "true", words="find me")
    left = [path for path in (tmp_path / "home").rglob("*") if path.is_file() and b"find me" in path.read_bytes()]
    assert not left


@pytest.mark.req("models:H4")
@pytest.mark.parametrize(
    ("command", "verdict"),
    [
        ("true", HookVerdict()),
        ("echo fine", HookVerdict()),
        ("echo no thanks >&2; exit 2", HookVerdict(True, "no thanks")),
        ("exit 2", HookVerdict(True, "blocked by test PreToolUse")),
        ("""echo '{"decision": "block", "reason": "not now"}'""", HookVerdict(True, "not now")),
        ("""echo '{"action": "block", "reason": "not here"}'""", HookVerdict(True, "not here")),
        ("""echo '{"decision": "approve"}'""", HookVerdict()),
        (
            """echo '{"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "too bold"}}'""",
            HookVerdict(True, "too bold"),
        ),
    ],
)
async def test_the_exit_code_and_json_on_stdout_say_what_a_hook_wants(
    commands: HookCommands, work: Path, command: str, verdict: HookVerdict
) -> None:
    assert await ran(commands, work, command) == verdict


@pytest.mark.req("models:H5")
@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("echo oops >&2; exit 3", "exit code 3: oops"),
        ("kill -SEGV $$", "killed by SIGSEGV"),
        ("no-such-program-here", "exit code 127"),
        ("echo '{\"decision\": '", "its answer is not JSON"),
        ("echo '{'; head -c 100000 /dev/zero | tr '\\0' x", "its answer is longer than"),
        ("head -c 5000000 /dev/zero", "it was ended for writing more than"),
    ],
)
async def test_a_hook_that_fails_or_says_too_much_allows_and_it_is_told_why(
    commands: HookCommands, work: Path, command: str, problem: str
) -> None:
    verdict = await ran(commands, work, command)
    assert not verdict.blocks
    assert problem in verdict.problem


@pytest.mark.req("models:H5")
async def test_a_hundred_kilobytes_of_reason_are_cut_and_that_is_said(commands: HookCommands, work: Path) -> None:
    verdict = await ran(commands, work, "head -c 100000 /dev/zero | tr '\\0' x >&2; exit 2")
    assert verdict.blocks
    assert len(verdict.reason) <= REASON_AT_MOST + 100
    assert "of 100000 characters" in verdict.reason


@pytest.mark.req("models:H5")
async def test_a_hook_that_hangs_is_ended_after_its_time_with_everything_it_started(
    commands: HookCommands, work: Path
) -> None:
    word = f"9{os.getpid()}.25"
    verdict = await ran(commands, work, f"sleep {word} & sleep {word}", timeout_s=0.5)
    assert verdict == HookVerdict(problem="it was ended after 0.5 s")
    assert not running(word)


@pytest.mark.req("models:H13")
async def test_a_cancelled_hook_leaves_nothing_running(commands: HookCommands, work: Path) -> None:
    word = f"9{os.getpid()}.75"
    task = asyncio.ensure_future(ran(commands, work, f"touch begun; sleep {word} & sleep {word}"))
    await until((work / "begun").exists)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await soon(task)
    assert not running(word)


@pytest.mark.req("models:H5")
async def test_where_no_sandbox_works_a_hook_runs_only_if_the_person_said_so_and_a_projects_never(
    work: Path, tmp_path: Path
) -> None:
    scope = HookScope(str(work), "thr_x", Mode.ALLOW)
    for loose, of_project, runs in ((False, False, False), (True, False, True), (True, True, False)):
        async with real_commands(tmp_path / "home", enabled=False, loose=loose) as commands:
            row = hook(HookEvent.BEFORE_TOOL, "cat >&2; exit 2", of_project=of_project)
            verdict = await soon(commands.run(row, {"a": 1}, scope))
        assert (verdict.blocks, verdict.reason) == ((True, '{"a":1}') if runs else (False, ""))
        assert ("no sandbox works here" in verdict.problem) is not runs


@pytest.mark.req("security:S23-hooks")
async def test_the_digest_of_a_hook_is_of_its_row_and_of_the_scripts_it_runs(
    commands: HookCommands, work: Path
) -> None:
    (work / "check.sh").write_text("exit 0\n")
    row = hook(HookEvent.BEFORE_TOOL, "bash check.sh")
    seen = {await commands.digest(row, str(work))}
    assert await commands.digest(row, str(work)) in seen
    others = [
        hook(HookEvent.AFTER_TOOL, "bash check.sh"),
        hook(HookEvent.BEFORE_TOOL, "bash check.sh", "shell"),
        hook(HookEvent.BEFORE_TOOL, "bash ./check.sh"),
    ]
    seen |= {await commands.digest(other, str(work)) for other in others}
    (work / "check.sh").write_text("exit 2\n")
    seen.add(await commands.digest(row, str(work)))
    assert len(seen) == 5


def running(word: str) -> list[str]:
    """Command lines of living processes that hold this word."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                line = Path(f"/proc/{entry}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if word in line and "pytest" not in line:
                found.append(line)
    return found
