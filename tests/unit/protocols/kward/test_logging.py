"""logging/stats: figures for what is on, over a range of the calendar, and nothing of what anybody said."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.fakes.kward_desk import desk

Patch = pytest.MonkeyPatch
ON = {"logging": {"enabled": True, "tokens": True, "performance": True, "tools": True, "errors": True}}
SCRIPT = "scope: turn\nusage: in=10 out=5 cached=2\ntool_call: list {}\n---\ntext: hello\n"


@pytest.mark.req("kward:118")
@pytest.mark.parametrize("settings", [{}, {"logging": {"enabled": True}}, {"logging": {"tokens": True}}], ids=str)
async def test_while_nothing_is_on_there_are_no_figures(
    tmp_path: Path, monkeypatch: Patch, settings: dict[str, object]
) -> None:
    async with desk(tmp_path, monkeypatch, kward=settings) as client:
        code, words = await client.refused("logging/stats")
        assert (code, words.startswith("Telemetry logging is disabled.")) == (-32602, True)
        assert (await client.call("initialize"))["capabilities"]["logging"]["categories"] == []


@pytest.mark.req("kward:119")
@pytest.mark.parametrize("said", ["banana", "0 days", "5 fortnights", 7])
async def test_a_range_that_is_none_is_refused_with_the_usage(tmp_path: Path, monkeypatch: Patch, said: object) -> None:
    async with desk(tmp_path, monkeypatch, kward=ON) as client:
        code, words = await client.refused("logging/stats", range=said)
        assert (code, words.startswith("Usage: N minutes|hours|days|weeks|months|years")) == (-32602, True)


async def test_turns_are_counted_and_the_figures_have_the_published_shape(tmp_path: Path, monkeypatch: Patch) -> None:
    async with desk(tmp_path, monkeypatch, script=SCRIPT, kward=ON) as client:
        await client.turn("hello")
        found = await client.call("logging/stats", range="1 Day")
        assert found["logDir"] == str(client.kward / "logs")
        assert found["enabledCategories"] == ["tokens", "performance", "tools", "errors"]
        assert (found["range"]["input"], found["range"]["count"], found["range"]["unit"]) == ("1 Day", 1, "day")
        assert found["range"]["startAt"].endswith("T00:00:00Z")
        assert found["usageStats"] == {
            "modelUsageEvents": 1,
            "totals": {"cache_read_tokens": 2, "input_tokens": 10, "output_tokens": 5, "total_tokens": 15},
        }
        assert found["tools"]["calls"] == 1
        assert sum(found["tools"]["byName"].values()) == sum(found["tools"]["byStatus"].values()) == 1
        turn = found["performance"]["events"]["turn"]
        assert (turn["count"], turn["statuses"], set(turn["durationMs"])) == (
            1,
            {"completed": 1},
            {"min", "avg", "max"},
        )
        assert found["errors"] == {"count": 0, "byEvent": {}, "byClass": {}, "byProvider": {}, "byCode": {}}
        assert found["recordCount"] == sum(found["recordsByCategory"].values())


@pytest.mark.req("kward:122")
async def test_only_what_is_on_is_counted_and_words_of_errors_are_not_told(tmp_path: Path, monkeypatch: Patch) -> None:
    now = datetime.now(UTC)
    rows = [
        {
            "timestamp": now.isoformat(),
            "category": "errors",
            "event": "turn_error",
            "error_class": "E",
            "error_code": 429,
        },
        {"timestamp": now.isoformat(), "category": "tokens", "event": "model_usage", "usage": {"input_tokens": 7}},
        {"timestamp": (now - timedelta(days=40)).isoformat(), "category": "errors", "event": "old"},
    ]
    async with desk(tmp_path, monkeypatch, kward={"logging": {"enabled": True, "errors": True}}) as client:
        (client.kward / "logs").mkdir()
        lines = [json.dumps(row | {"error_message": "what somebody said"}) for row in rows]
        (client.kward / "logs" / f"{now:%Y-%m-%d}.jsonl").write_text("\n".join(lines) + "\n")
        found = await client.call("logging/stats")
        assert (found["recordCount"], found["recordsByCategory"]) == (1, {"errors": 1})
        assert found["usageStats"] == {"modelUsageEvents": 0, "totals": {}}
        assert found["errors"] == {
            "count": 1,
            "byEvent": {"turn_error": 1},
            "byClass": {"E": 1},
            "byProvider": {},
            "byCode": {"429": 1},
        }
        assert not any(b"what somebody said" in frame for frame in client.frames)
