"""`quintet policy explain`: the verdict a turn would get, by the rule that gives it; nothing is run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quintet.cli import exits, main
from tests.faults.processes import write_home

RULES = """
[policy.rules]
"shell: git status *" = "allow"
"shell: git push *" = "deny"
"write: secret/*" = "deny"
"""


@pytest.fixture
def home(tmp_path: Path) -> str:
    made = write_home(tmp_path / "home")
    with (made / "config.toml").open("a") as file:
        file.write(RULES)
    return str(made)


def explained(home: str, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, dict[str, str]]:
    assert main(["policy", "explain", *words, "--home", home, "--json"]) == 0
    found: dict[str, dict[str, str]] = json.loads(capsys.readouterr().out)
    return found


def test_a_rule_that_decides_is_named(home: str, capsys: pytest.CaptureFixture[str]) -> None:
    pushed = explained(home, capsys, "shell", "git push origin main")
    for mode in ("read-only", "ask", "allow"):
        assert pushed["verdicts"][mode]["judgement"] == "deny"  # type: ignore[index]
        assert pushed["verdicts"][mode]["because"] == "shell: git push *"  # type: ignore[index]
    status = explained(home, capsys, "shell", "git status --short")
    assert status["verdicts"]["ask"]["judgement"] == "allow"  # type: ignore[index]


def test_each_command_of_a_line_counts_and_the_line_is_not_run(
    home: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    made = tmp_path / "made"
    found = explained(home, capsys, "shell", f"git status && touch {made}", "--cwd", str(tmp_path))
    assert found["commands"] == [["git", "status"], ["touch", str(made)]]
    assert found["verdicts"]["ask"]["judgement"] == "ask"  # type: ignore[index]
    assert not made.exists()


def test_a_path_is_judged_as_the_tool_would_see_it(
    home: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "secret").mkdir()
    found = explained(home, capsys, "write", "secret/key", "--cwd", str(tmp_path))
    assert found["verdicts"]["allow"]["judgement"] == "deny"  # type: ignore[index]


def test_people_read_it_in_words(home: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "explain", "shell", "rm -rf build", "--home", home]) == 0
    out = capsys.readouterr().out
    assert "destructive: what it does is hard to undo" in out
    assert "mode ask        ask    because of: mode ask: hard to undo" in out


def test_an_unknown_tool_is_told_with_those_there_are(home: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "explain", "fly", "--home", home]) == exits.USAGE
    assert "shell" in capsys.readouterr().err
