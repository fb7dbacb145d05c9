from __future__ import annotations

import asyncio
import os
import sys

import pytest

from quintet.workspace.child import died_of
from quintet.workspace.trusted_program import Cut, Program, run_program
from tests.fakes.debugger import ALLOW, held
from tests.fakes.waiting import until


@pytest.fixture
def run(tmp_path):
    async def made(code, *, given=b"", timeout_s=20.0, output_limit=1_000_000):
        handle = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            argv = (sys.executable, "-I", "-c", code)
            return await run_program(Program(argv, handle, {"ONLY": "this"}, given, timeout_s, output_limit))
        finally:
            os.close(handle)

    return made


async def test_bytes_go_in_and_come_out_with_the_exit_code(run):
    ran = await run("import sys; sys.stdout.write(sys.stdin.read()[::-1]); sys.exit(3)", given=b"abc")
    assert ran == (3, b"cba", b"", Cut.NOT)


async def test_it_starts_in_the_directory_whose_handle_was_given_also_after_a_swap(tmp_path):
    (tmp_path / "place").mkdir()
    (tmp_path / "place" / "mark").write_text("")
    handle = os.open(tmp_path / "place", os.O_RDONLY | os.O_DIRECTORY)
    (tmp_path / "place").rename(tmp_path / "moved")
    (tmp_path / "place").symlink_to("/etc")
    code = "import os; print(os.listdir('.'))"
    ran = await run_program(Program((sys.executable, "-I", "-c", code), handle, {}, b"", 20.0, 1_000))
    os.close(handle)
    assert ran.output == b"['mark']\n"


@pytest.mark.req("security:S45")
async def test_the_environment_is_the_one_given(run, monkeypatch):
    monkeypatch.setenv("SECRET", "x")
    ran = await run("import os; print(sorted(set(os.environ) - {'LC_CTYPE'}))")
    assert ran.output == b"['ONLY']\n"


async def test_one_that_does_not_end_is_killed_and_what_it_wrote_is_kept(run):
    ran = await asyncio.wait_for(run("import time; print('begun', flush=True); time.sleep(300)", timeout_s=1.0), 20)
    assert (ran.code, ran.output, ran.cut) == (-9, b"begun\n", Cut.TIME)


async def test_nobody_waits_for_one_that_was_killed_and_cannot_die(run, tmp_path):
    code = f"{ALLOW}; import os, time; open('pid', 'w').write(str(os.getpid()) + '!'); time.sleep(300)"
    running = asyncio.ensure_future(run(code, timeout_s=2.0))
    told = tmp_path / "pid"
    await until(lambda: told.exists() and told.read_text().endswith("!"))
    with held(int(told.read_text()[:-1])):
        ran = await asyncio.wait_for(running, 20)
    assert (ran.code, ran.cut) == (-9, Cut.TIME)


async def test_one_that_writes_without_end_is_killed(run):
    ran = await asyncio.wait_for(run("while True: print('x' * 1000)", output_limit=100_000), 20)
    assert (ran.cut, len(ran.output)) == (Cut.SIZE, 100_000)


async def test_one_that_wrote_too_much_and_ended_is_cut_too(run):
    ran = await run("print('x' * 100)", output_limit=10)
    assert (ran.cut, ran.output) == (Cut.SIZE, b"x" * 10)


async def test_complaints_without_end_are_taken_and_bounded(run):
    ran = await run("import sys\nfor n in range(5000): sys.stderr.write('y' * 100)")
    assert ran.code == 0
    assert 0 < len(ran.errors) <= 32 * 1024


async def test_one_that_does_not_read_what_it_is_given_does_no_harm(run):
    ran = await run("import os; os.close(0); print('there')", given=b"z" * 30_000)
    assert ran.output == b"there\n"
    with pytest.raises(ValueError, match="too much to give"):
        await run("", given=b"z" * 40_000)


async def test_a_program_that_cannot_be_started_is_an_os_error_and_leaves_no_handle(tmp_path):
    before = len(os.listdir("/proc/self/fd"))
    handle = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    with pytest.raises(OSError):
        await run_program(Program(("/nowhere/rg",), handle, {}, b"", 5.0, 1_000))
    os.close(handle)
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_end_of_a_program_is_told_in_words():
    assert [died_of(code) for code in (2, -9, -99)] == ["exit code 2", "killed by SIGKILL", "killed by signal 99"]
