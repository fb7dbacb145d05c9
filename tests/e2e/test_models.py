"""`quintet run` with a model behind HTTP: a real process, a model server in another, a tool in between."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quintet.providers.settings import ProviderKind
from tests.fakes.wires import WIRES
from tests.faults.processes import one_line, quintet

ROOT = Path(__file__).parents[2]
SCRIPT = (
    'think: hm\ntext: "I look. "\ntool_call: read {"path": "a.txt"}\n---\ntext: "done"\nusage: in=10 out=5 cached=2\n'
)
KEY = "sk-quite-a-secret-0123456789"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "script").write_text("fault: 503\n" + SCRIPT)
    command = [sys.executable, "-m", "tests.fakes.model_server", "--script", str(tmp_path / "script")]
    command += ["--record", str(tmp_path / "record")]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe) as process:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"]
        process.terminate()


def home_with(directory: Path, kind: ProviderKind, url: str) -> Path:
    directory.mkdir()
    lines = ["version = 1", 'default_model = "far/m"', "[providers.far]", f'kind = "{kind}"', f'base_url = "{url}"']
    (directory / "config.toml").write_text("\n".join([*lines, 'api_key_env = "FAR_KEY"', ""]))
    return directory


@pytest.mark.parametrize("kind", WIRES, ids=str)
def test_a_run_over_http_retries_calls_a_tool_and_ends(tmp_path: Path, server: str, kind: ProviderKind) -> None:
    home = home_with(tmp_path / "home", kind, server)
    (tmp_path / "a.txt").write_text("a fox\n")
    done = quintet("run", "--json", "go", home=home, cwd=tmp_path, FAR_KEY=KEY)
    assert (done.code, done.err) == (0, ""), done
    kinds = [line["kind"] for line in done.lines]
    assert kinds.count("step.retried") == 1
    assert kinds.count("tool.finished") == 1
    assert kinds[-1] == "turn.finished"
    said = [line["payload"]["text"] for line in done.lines if line["kind"] == "text.delta"]
    assert said == ["I look. ", "done"]
    (last,) = (line for line in done.lines[-3:] if line["kind"] == "step.finished")
    assert last["payload"]["usage"]["cached_tokens"] == 2
    recorded = [json.loads(line) for line in (tmp_path / "record").read_text().splitlines()]
    assert len(recorded) == 3
    assert KEY in str(recorded[2]["headers"])
    assert "a fox" in json.dumps(recorded[2]["body"])
    assert KEY not in done.out
    for kept in home.iterdir():
        assert not kept.is_file() or KEY.encode() not in kept.read_bytes()


@pytest.mark.req("models:X5")
@pytest.mark.parametrize("kind", WIRES, ids=str)
def test_the_second_turn_in_another_process_begins_with_the_very_bytes_of_the_first(
    tmp_path: Path, server: str, kind: ProviderKind
) -> None:
    home = home_with(tmp_path / "home", kind, server)
    (tmp_path / "a.txt").write_text("a fox\n")
    (tmp_path / "AGENTS.md").write_text("Mind the fox.\n")
    for words in (("run", "go"), ("run", "-c", "go on")):
        assert quintet(*words, home=home, cwd=tmp_path, FAR_KEY=KEY).code == 0
    bodies = [json.loads(line)["body"] for line in (tmp_path / "record").read_text().splitlines()]
    first, last = bodies[1], bodies[-1]  # the very first one was answered with a fault
    assert "Mind the fox." in json.dumps(first)
    said = "input" if kind is ProviderKind.OPENAI_RESPONSES else "messages"
    assert len(last[said]) > len(first[said]) >= 1
    assert {k: v for k, v in _without_marks(first).items() if k != said} == {
        k: v for k, v in _without_marks(last).items() if k != said
    }
    assert json.dumps(_without_marks(last)[said]).startswith(json.dumps(_without_marks(first)[said])[:-1])


def _without_marks(value: Any) -> Any:
    """Where a cache may begin is marked anew each time and is no part of what is cached."""
    if isinstance(value, dict):
        return {k: _without_marks(v) for k, v in value.items() if k != "cache_control"}
    return [_without_marks(v) for v in value] if isinstance(value, list) else value


def test_a_key_that_is_not_set_is_one_line(tmp_path: Path) -> None:
    home = home_with(tmp_path / "home", ProviderKind.ANTHROPIC, "http://127.0.0.1:9/v1")
    done = quintet("run", "go", home=home)
    assert "FAR_KEY is not set" in one_line(done, 5)
