"""`quintet stats` and the budget of `quintet run`, with a scripted model that counts."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from quintet.cli import exits, main
from tests.unit.cli.test_models import home

__all__ = ["home"]
SCRIPT = """text: "looking"
tool_call: list {"path": "."}
usage: in=1000 out=100 cached=0
---
tool_call: read {"path": "nowhere.txt"}
usage: in=1000 out=100 cached=800
---
text: "done"
usage: in=2000 out=200 cached=1200
"""
PRICES = "input_price = 100\noutput_price = 1000\ncached_price = 10\n"
# What the three steps cost: (1000*100 + 100*1000), (200*100 + 800*10 + 100*1000), (800*100 + 1200*10 + 200*1000) / 1e6
COSTS = (0.2, 0.128, 0.292)


def scripted(home: Path, *, prices: str = PRICES, more: str = "", script: str = SCRIPT) -> None:
    (home / "model.script").write_text(script)
    (home / "config.toml").write_text(
        f'default_model = "fake/scripted"\n{more}\n[providers.fake]\nkind = "scripted"\nscript = "model.script"\n'
        f'[models."fake/scripted"]\n{prices}'
    )


def run(home: Path, *words: str) -> int:
    return main(["--home", str(home), "run", "--cwd", str(home.parent), *words, "go"])


def stats(home: Path, capfd: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    capfd.readouterr()
    assert main(["--home", str(home), "stats", "--json", *words]) == 0
    found: dict[str, Any] = json.loads(capfd.readouterr().out)
    return found


@pytest.mark.req("models:B5")
def test_turns_tokens_cost_cache_hits_and_tools_are_counted(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    scripted(home)
    assert run(home) == 0
    assert "4,000 in (50% from the cache), 400 out, cost $0.6200" in capfd.readouterr().err
    found = stats(home, capfd)
    total = found["total"]
    assert (found["turns"], found["turns_by_end"], total["steps"]) == (1, {"done": 1}, 3)
    assert (total["input_tokens"], total["output_tokens"], total["cached_tokens"]) == (4000, 400, 2000)
    assert total["cache_hit_ratio"] == 0.5
    assert total["cost_usd"] == pytest.approx(sum(COSTS))
    assert found["models"] == {"fake/scripted": total}
    assert found["tools"]["list"] == {"calls": 1, "failed": 0}
    assert found["tools"]["read"]["failed"] == 1
    [day] = found["days"]
    assert (day["day"], day["turns"]) == (time.strftime("%Y-%m-%d"), 1)


@pytest.mark.req("models:B5")
def test_people_get_a_line_and_a_bar_per_day_and_no_colours(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    scripted(home)
    assert run(home) == 0
    capfd.readouterr()
    assert main(["--home", str(home), "stats"]) == 0
    out = capfd.readouterr().out
    assert "1 turns (1 done), 3 model calls" in out
    assert "█" * 30 in out
    assert "(50% from the cache)" in out
    assert "fake/scripted" in out
    assert "\x1b" not in out


@pytest.mark.req("models:B1", "models:B5")
def test_what_is_unknown_is_shown_as_unknown(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    scripted(home, prices="input_price = 1\noutput_price = 1\n", script='text: "uncounted"\n')
    assert run(home) == 0
    total = stats(home, capfd)["total"]
    assert (total["cost_usd"], total["steps_of_unknown_cost"], total["cache_hit_ratio"]) == (None, 1, None)
    assert main(["--home", str(home), "stats"]) == 0
    assert "tokens unknown, cost unknown" in capfd.readouterr().out


def test_only_the_days_that_were_asked_for_are_counted(
    home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    scripted(home)
    for days_ago in (40, 2, 0):
        with monkeypatch.context() as patch:
            past = days_ago * 24 * 3_600_000
            now = lambda _, past=past: time.time_ns() // 1_000_000 - past  # noqa: E731
            patch.setattr("quintet.app.SystemClock.now_ms", now)
            patch.setattr("quintet.journal.clock.SystemClock.now_ms", now)
            assert run(home) == 0
    assert [stats(home, capfd, "--days", n)["turns"] for n in ("1", "2", "3", "30", "100")] == [1, 1, 2, 2, 3]
    assert main(["--home", str(home), "stats", "--thread", "no-such"]) != 0


def test_one_thread_can_be_counted_alone(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    scripted(home)
    assert run(home) == 0
    thread = capfd.readouterr().err.split()[1]
    assert run(home) == 0
    assert stats(home, capfd)["turns"] == 2
    assert stats(home, capfd, "--thread", thread)["turns"] == 1


@pytest.mark.req("models:B2")
def test_a_run_over_its_budget_ends_with_exit_4_and_its_work_is_kept(
    home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    scripted(home)
    assert run(home, "--budget", "0.3") == exits.BUDGET
    said = capfd.readouterr()
    assert "The budget of this turn is spent: $0.3280 of $0.3000." in said.err
    assert "looking" in said.out
    assert stats(home, capfd)["total"]["steps"] == 2
    assert run(home, "--budget", "$5") == 0


@pytest.mark.req("models:B3")
@pytest.mark.parametrize("limit", ["day_budget", "turn_budget", "thread_budget"])
def test_the_limits_of_the_file_hold_too(home: Path, limit: str, capfd: pytest.CaptureFixture[str]) -> None:
    scripted(home, more=f"[limits]\n{limit} = 0.1\n")
    assert run(home) == exits.BUDGET
    assert f"The budget of this {limit.removesuffix('_budget')} is spent" in capfd.readouterr().err
    assert (run(home), len(stats(home, capfd)["models"])) == (exits.BUDGET, 1)
    expected = 1 if limit == "day_budget" else 2
    assert stats(home, capfd)["total"]["steps"] == expected


@pytest.mark.req("models:B4")
def test_a_budget_for_a_model_without_a_price_is_refused_before_there_is_a_thread(
    home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (home / "config.toml").write_text('[providers.far]\nkind = "openai-chat"\nbase_url = "http://127.0.0.1:9/v1"\n')
    assert run(home, "-m", "far/m", "--budget", "1") == exits.PROVIDER
    err = capfd.readouterr().err
    assert 'under [models."far/m"]' in err
    assert len(err.splitlines()) == 1
    assert main(["--home", str(home), "threads", "list"]) == 0
    assert capfd.readouterr().out == ""
    assert main(["--home", str(home), "run", "--budget", "1", "echo free"]) == 0


@pytest.mark.parametrize("amount", ["0", "-1", "nan", "inf", "x", "1e9"])
def test_an_amount_that_is_none_is_a_usage_error(home: Path, amount: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run(home, "--budget", amount)
    assert ended.value.code == exits.USAGE


def test_where_neither_cost_nor_tokens_are_known_the_bars_are_of_model_calls(
    home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(home, "-m", "offline/offline") == 0
    capfd.readouterr()
    assert main(["--home", str(home), "stats"]) == 0
    assert "█" * 30 in capfd.readouterr().out


def test_nothing_done_yet_is_said(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--home", str(home), "stats"]) == 0
    assert "Nothing was done since" in capfd.readouterr().err
