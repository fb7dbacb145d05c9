"""Long results: beginning and end for the model, the whole kept beside the thread, masked."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import pytest

from quintet.domain.errors import StorageFull
from quintet.domain.excerpt import excerpt, lines_of
from quintet.domain.item import ResultStatus, ToolResult
from quintet.domain.ports import ToolContext
from quintet.domain.tool import RESULT_LIMIT, Prepared, ToolOutcome
from quintet.engine.capping import PIECE, sweep_results
from quintet.tools.read_result import CHARACTERS, ReadResultTool
from quintet.workspace.results import KeptResults
from tests.fakes.engine import ME, House, Process
from tests.fakes.providers import GatedProvider, call, text
from tests.fakes.tools import FakeTool

SECRET = "sk-canary-0123456789"
LONG = "".join(f"line {n} of many\n" for n in range(1, 20_001))


def saying(words: str, limit: int = RESULT_LIMIT) -> FakeTool:
    async def run(prepared: Prepared, context: ToolContext) -> ToolOutcome:
        return ToolOutcome(words, limit=limit)

    return FakeTool("say", run)


async def result_of(process: Process, thread: str, words: str, limit: int = RESULT_LIMIT) -> ToolResult:
    await process.run(thread, GatedProvider(call("say"), text("end")), [saying(words, limit)])
    result: ToolResult = (await process.bodies(thread, ToolResult))[-1]
    return result


def named(result: ToolResult) -> tuple[str, int]:
    found = re.search(r'read_result \{"id": "(res_[0-9a-f]{32})", "from_line": (\d+)\}', result.text)
    assert found is not None, result.text[:200]
    return found[1], int(found[2])


@pytest.mark.parametrize("whole", ["", "a", "a\n", "\n\n", "x" * 5_000, "x" * 2_000 + "\n" + "y" * 1_999, LONG])
def test_lines_joined_are_the_text_again_and_none_is_endless(whole: str) -> None:
    assert "".join(lines_of(whole)) == whole
    assert max(map(len, lines_of(whole)), default=0) <= 2_000


@pytest.mark.parametrize("whole", [LONG, "x" * 300_000, "y" * 70_000 + "\n" + "z" * 90_000])
def test_an_excerpt_is_bounded_and_counts_what_it_leaves_out(whole: str) -> None:
    short = excerpt(whole, 60_000, "go to {line}")
    assert len(short) <= 60_200
    found = re.search(
        r"\n?\[(\d+) of (\d+) characters left out here: lines (\d+) to (\d+) of (\d+); go to (\d+)\]\n", short
    )
    assert found is not None
    left_out, total, first, last, lines, told = map(int, found.groups())
    assert (total, lines, told) == (len(whole), len(lines_of(whole)), first)
    missing = "".join(lines_of(whole)[first - 1 : last])
    assert len(missing) == left_out
    assert short.startswith("".join(lines_of(whole)[: first - 1]))
    assert whole.endswith(short[found.end() :])


@pytest.mark.req("models:X6")
async def test_a_long_result_is_read_on_by_its_id_until_its_end(house: House, tmp_path: Path) -> None:
    results = KeptResults(str(tmp_path))
    one = await house.process(results=results)
    thread = await one.thread()
    result = await result_of(one, thread, LONG)
    assert len(result.text) < RESULT_LIMIT + 300
    assert result.text.startswith("line 1 of many\n")
    assert result.text.endswith("line 20000 of many\n")
    name, line = named(result)
    assert await results.read(thread, name) == LONG
    read = ReadResultTool(results)
    found = result.text.split("[", 1)[0]
    while line:
        given = f'{{"id": "{name}", "from_line": {line}, "lines": 2000}}'
        await one.run(thread, GatedProvider(call("read_result", given, f"c{line}"), text("end")), [read])
        said = (await one.bodies(thread, ToolResult))[-1]
        assert said.status is ResultStatus.OK
        assert len(said.text) <= CHARACTERS + 200
        piece, _, note = said.text.partition("[lines")
        found += piece
        line = int(note.rpartition("from_line=")[2].rstrip("]")) if note else 0
    assert found == LONG


@pytest.mark.req("models:X6")
async def test_what_is_kept_is_private_and_goes_with_its_thread(one: Process, tmp_path: Path) -> None:
    results = KeptResults(str(tmp_path))
    kept, gone = await one.thread(), await one.thread()
    mine = await results.keep(kept, "mine")
    theirs = await results.keep(gone, "theirs")
    place = tmp_path / "results" / kept / mine
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert stat.S_IMODE(place.parent.stat().st_mode) == stat.S_IMODE(place.parent.parent.stat().st_mode) == 0o700
    assert await sweep_results(one.journal, results) == (0, 0)
    await one.threads.delete(gone, ME)
    assert await sweep_results(one.journal, results) == (1, 6)
    assert await results.read(kept, theirs) is None
    assert await results.read(gone, mine) == "mine"  # a fork knows it by its id


async def test_an_id_that_is_none_reads_nothing(tmp_path: Path) -> None:
    results = KeptResults(str(tmp_path))
    await results.keep("thr_" + "0" * 26, "x")
    (tmp_path / "secret").write_text("secret")
    for name in ("../../secret", "", "res_", "/etc/passwd", "res_" + "g" * 32):
        assert await results.read("thr_" + "0" * 26, name) is None


@pytest.mark.req("models:X7")
async def test_a_secret_is_masked_in_what_is_kept_wherever_pieces_end(house: House, tmp_path: Path) -> None:
    results = KeptResults(str(tmp_path))
    one = await house.process(results=results, secrets=[SECRET])
    thread = await one.thread()
    whole = "a" * (PIECE - 7) + SECRET + "b" * PIECE + f"\n{SECRET}\n"
    name, _ = named(await result_of(one, thread, whole))
    kept = await results.read(thread, name)
    assert kept is not None
    assert SECRET not in kept
    assert kept.count("[redacted]") == 2
    for found in (tmp_path / "results").rglob("*"):
        assert found.is_dir() or SECRET.encode() not in found.read_bytes()


@pytest.mark.req("models:X8")
async def test_a_result_that_cannot_be_kept_is_still_a_result(house: House, tmp_path: Path) -> None:
    class Full(KeptResults):
        async def keep(self, thread: str, text: str) -> str:
            raise StorageFull("There is no space left to keep a long result.")

    one = await house.process(results=Full(str(tmp_path)))
    result = await result_of(one, await one.thread(), LONG)
    assert result.status is ResultStatus.OK
    assert "the rest is not kept: There is no space left" in result.text
    assert len(result.text) < RESULT_LIMIT + 300


async def test_a_directory_that_cannot_be_written_is_told_as_that(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        (tmp_path / "results").write_text("a file is in its place")
    else:
        tmp_path.chmod(0o500)
    with pytest.raises(Exception, match="A long result cannot be kept"):
        await KeptResults(str(tmp_path)).keep("thr_" + "0" * 26, "x")
    tmp_path.chmod(0o700)


async def test_a_tool_can_say_that_less_of_it_is_worth_showing(one: Process) -> None:
    result = await result_of(one, await one.thread(), LONG, limit=1_000)
    assert len(result.text) < 1_300
    assert "the rest is not kept" in result.text
