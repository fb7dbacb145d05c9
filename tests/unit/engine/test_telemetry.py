"""Telemetry: what is counted, what never is, and when nothing is written at all."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from quintet.domain.errors import ProviderFailed
from quintet.domain.model import Usage, UsageChunk
from quintet.engine.telemetry import CATEGORIES, Telemetry, enabled_categories
from quintet.engine.telemetry_stats import TelemetryStats
from quintet.workspace.telemetry_files import TelemetryFiles
from tests.fakes.engine import House, Process
from tests.fakes.providers import GatedProvider, call, text
from tests.fakes.tools import FakeTool, failing

ALL = dict.fromkeys(("enabled", *CATEGORIES), True)


@pytest.mark.parametrize(
    ("settings", "environment", "found"),
    [
        ({}, {}, ()),
        ({"logging": {"enabled": True}}, {}, ()),
        ({"logging": {"tokens": True}}, {}, ()),
        ({"logging": {"enabled": True, "tokens": True, "errors": 1}}, {}, ("tokens",)),
        ({"logging": ALL}, {}, CATEGORIES),
        ({"logging": ALL}, {"L": "off"}, ()),
        ({"logging": ALL}, {"L_TOKENS": "no", "L_ERRORS": "0"}, ("performance", "tools")),
        ({"logging": "yes"}, {"L": "1", "L_TOOLS": " ON "}, ("tools",)),
        ({"logging": {"tools": True}}, {"L": "perhaps"}, ()),
    ],
)
def test_a_category_is_on_where_it_and_the_switch_are(
    settings: dict[str, Any], environment: dict[str, str], found: tuple[str, ...]
) -> None:
    assert enabled_categories(settings, environment, "L") == found


async def logged(process: Process, tmp_path: Path, categories: tuple[str, ...] = CATEGORIES) -> list[dict[str, Any]]:
    telemetry = Telemetry(process.feed, TelemetryFiles(str(tmp_path / "logs")), lambda: categories, process.told.append)
    tools = [FakeTool("look"), failing(OSError("secret words"), "fail")]
    used = UsageChunk(Usage(input_tokens=10, output_tokens=4, cached_tokens=3))
    thread = await process.thread()
    asks = [*call("look"), *call("fail", call_id="c2")]
    await process.run(thread, GatedProvider([used, *asks], text("my words")), tools, say="secret words")
    broken = ProviderFailed("secret words", provider="fake", reason="overloaded")
    await process.run(thread, GatedProvider([broken]), say="secret words")
    await telemetry.close()
    files = sorted((tmp_path / "logs").glob("*")) if (tmp_path / "logs").exists() else []
    assert {oct(path.stat().st_mode & 0o777) for path in files} <= {"0o600"}
    assert not any(b"words" in path.read_bytes() for path in files)
    return [json.loads(line) for path in files for line in path.read_text().splitlines()]


async def test_turns_calls_usage_and_failures_become_records_without_anybody_s_words(
    house: House, tmp_path: Path
) -> None:
    records = await logged(await house.process(), tmp_path)
    stats = TelemetryStats()
    for record in records:
        stats.add(record)
    assert stats.by_event == {"model_usage": 1, "tool_call": 4, "turn": 2, "turn_error": 1, "tool_error": 1}
    assert stats.tokens == {"input_tokens": 10, "output_tokens": 4, "cache_read_tokens": 3, "total_tokens": 14}
    assert (stats.calls, stats.tools, stats.tool_statuses) == (2, {"look": 1, "fail": 1}, {"ok": 1, "error": 1})
    assert stats.result_bytes > 0
    assert stats.took["turn"].statuses == {"completed": 1, "failed": 1}
    assert stats.errors["error_class"] == {"provider_failed": 1, "tool": 1}
    assert (stats.errors["provider"], stats.errors["error_code"]) == ({"fake": 1}, {"overloaded": 1})


@pytest.mark.req("kward:122")
@pytest.mark.parametrize("categories", [(), ("tokens",), ("tools", "errors")], ids=str)
async def test_only_what_is_on_is_written(house: House, tmp_path: Path, categories: tuple[str, ...]) -> None:
    records = await logged(await house.process(), tmp_path, categories)
    assert {record["category"] for record in records} == set(categories)


async def test_turns_of_other_processes_are_theirs_to_log(house: House, tmp_path: Path) -> None:
    one, other = await house.process(), await house.process()
    telemetry = Telemetry(other.feed, TelemetryFiles(str(tmp_path / "logs")), lambda: CATEGORIES)
    thread = await one.thread()
    turn = await one.run(thread, "text: hello")
    assert (await other.ended(turn.id)).state == turn.state
    await other.journal.tail()
    await telemetry.close()
    assert not (tmp_path / "logs").exists()


async def test_a_disk_that_objects_is_noted_and_stops_nothing(house: House, tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file where the directory should be")
    process = await house.process()
    telemetry = Telemetry(process.feed, TelemetryFiles(str(tmp_path / "logs")), lambda: CATEGORIES, process.told.append)
    await process.run(await process.thread(), "text: hello")
    await telemetry.close()
    assert any(line.startswith("Telemetry could not be written") for line in process.told)


async def test_a_full_file_is_followed_by_another_and_the_range_is_read_from_all(tmp_path: Path) -> None:
    files = TelemetryFiles(str(tmp_path), largest=150)
    for n in range(6):
        await files.append([{"timestamp": f"2026-03-18T10:00:0{n}.000Z", "category": "tools", "n": n}])
    await files.append([{"timestamp": "2026-03-19T00:00:00.000Z", "category": "tools", "n": 9}])
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["2026-03-18-1.jsonl", "2026-03-18.jsonl", "2026-03-19.jsonl"]
    with (tmp_path / "2026-03-18.jsonl").open("a") as file:
        file.write('{"torn\n[]\n{"timestamp": "never"}\n{"timestamp": "2026-03-18"}\n')
    (tmp_path / "notes.txt").write_text("not ours")
    seen: list[int] = []
    start, end = datetime(2026, 3, 18, 10, 0, 2, tzinfo=UTC), datetime(2026, 3, 18, 23, tzinfo=UTC)
    await files.read(start, end, lambda record: seen.append(record["n"]))
    assert sorted(seen) == [2, 3, 4, 5]
    await TelemetryFiles(str(tmp_path / "none")).read(start, end, lambda record: seen.append(-1))
    assert -1 not in seen
