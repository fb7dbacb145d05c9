"""`quintet models` and `quintet models --local`."""

from __future__ import annotations

import asyncio
import json
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from quintet.cli import exits, main
from quintet.config import parse_config
from tests.fakes.answers import Answers
from tests.unit.providers.test_local_servers import LM_STUDIO, OLLAMA, VLLM, free_port

CONFIG = """
default_model = "near/small"
[providers.near]
kind = "openai-chat"
base_url = "http://127.0.0.1:9/v1"
[providers.keyless]
kind = "anthropic"
[models."near/small"]
context_window = 4096
input_price = 0
output_price = 0
[models."near/large"]
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("OPENAI", "ANTHROPIC", "OPENROUTER", "DEEPSEEK", "MOONSHOT", "DASHSCOPE"):
        monkeypatch.delenv(f"{name}_API_KEY", raising=False)
    for name in ("OPENAI_BASE_URL", "QUINTET_MODEL"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@contextmanager
def served(answers: dict[str, Any]) -> Iterator[int]:
    """The answers, served by a loop of their own: the command has its own, too."""
    ready, port, loop = threading.Event(), [0], asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        async with Answers(answers) as server:
            port[0] = server.port
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    assert ready.wait(10)
    try:
        yield port[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        loop.close()


def rows(home: Path, capfd: pytest.CaptureFixture[str]) -> dict[str, dict[str, Any]]:
    assert main(["--home", str(home), "models", "--json"]) == 0
    found = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    return {row["model"] or row["provider"]: row for row in found}


@pytest.mark.req("models:K3")
def test_what_works_is_told_with_context_price_and_key_and_what_the_others_need(
    home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (home / "config.toml").write_text(CONFIG)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    found = rows(home, capfd)
    assert [m for m, row in found.items() if row["default"]] == ["near/small"]
    small, large, known = found["near/small"], found["near/large"], found["anthropic/claude-sonnet-4-5"]
    assert (small["works"], small["context_window"], small["input_price"], small["key"]) == (True, 4096, 0, None)
    assert (large["works"], large["context_window"], large["input_price"]) == (True, None, None)
    assert (known["works"], known["key"], known["context_window"]) == (True, "environment", 200_000)
    assert (known["input_price"], known["cached_price"], known["output_price"]) == (3.0, 0.3, 15.0)
    assert known["as_of"]
    assert not any(row["works"] for row in found.values() if row["provider"] in ("keyless", "openai"))
    assert "OPENAI_API_KEY" in found["openai/gpt-5"]["needs"]
    assert "sk-secret" not in json.dumps(found)


@pytest.mark.req("models:K3")
def test_people_see_the_default_marked_unknown_as_unknown_and_no_colours(
    home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (home / "config.toml").write_text(CONFIG)
    assert main(["--home", str(home), "models"]) == 0
    out = capfd.readouterr().out
    lines = {line.split()[1 if line.startswith("  *") else 0]: line for line in out.splitlines() if line.strip()}
    assert lines["near/small"].startswith("  * ")
    assert "4,096 context" in lines["near/small"]
    assert "free" in lines["near/small"]
    assert "context unknown" in lines["near/large"]
    assert "price unknown" in lines["near/large"]
    assert "quintet auth set anthropic" in out
    assert "\x1b" not in out


@pytest.mark.req("models:K1", "models:K3")
def test_a_price_told_by_others_is_shown_with_about_and_none_is_shown_where_no_single_one_holds(
    home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("OPENAI", "ANTHROPIC", "DEEPSEEK"):
        monkeypatch.setenv(f"{name}_API_KEY", "k")
    assert main(["models", "--home", str(home)]) == exits.DONE
    out, err = capfd.readouterr()
    lines = {line.split()[0]: line for line in out.splitlines() if line.startswith("    ")}
    assert "about $0.25 in" in lines["openai/gpt-5-mini"]
    assert " $5 in" in lines["anthropic/claude-opus-5"]
    assert "about" not in lines["anthropic/claude-opus-5"]
    assert "price unknown" in lines["anthropic/claude-haiku-5-5"]
    assert "price unknown" in lines["deepseek/deepseek-v4-pro"]
    assert 'A price with "about"' in err


@pytest.mark.req("models:K4")
def test_local_servers_are_told_with_lines_that_can_be_pasted(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with served(OLLAMA) as ollama, served(LM_STUDIO) as studio, served(VLLM) as vllm:
        ports = {"ollama": ollama, "lmstudio": studio, "vllm": vllm, "llamacpp": free_port()}
        flags = [word for name, port in ports.items() for word in ("--port", f"{name}={port}")]
        assert main(["--home", str(home), "models", "--local", *flags]) == 0
    out = capfd.readouterr().out
    assert "8,192 context; the model could have 41k" in out
    assert "context not said before it is loaded; the model could have 131k" in out
    assert "llama.cpp" not in out
    pasted = out[out.index("[providers.") :]
    config = parse_config(pasted.encode(), "config.toml")
    assert config.models["ollama/qwen3:8b"].context_window == 8192
    assert config.models["lmstudio/not-loaded"].context_window is None
    assert config.models["vllm/Qwen/Qwen3-Coder"].input_price == 0
    assert config.providers["vllm"].base_url == f"http://127.0.0.1:{vllm}/v1"


@pytest.mark.req("models:K4")
def test_local_servers_as_json_and_none_at_all(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    nobody = [word for name in ("ollama", "lmstudio", "llamacpp") for word in ("--port", f"{name}={free_port()}")]
    with served(VLLM) as vllm:
        words = ["--home", str(home), "--json", "models", "--local", *nobody, "--port", f"vllm={vllm}"]
        assert main(words) == 0
    [line] = capfd.readouterr().out.splitlines()
    assert json.loads(line)["models"] == [{"name": "Qwen/Qwen3-Coder", "context_window": 262144, "could_have": None}]
    assert main(["--home", str(home), "models", "--local", *nobody, "--port", f"vllm={free_port()}"]) == 0
    said = capfd.readouterr()
    assert (said.out, "No local model server" in said.err) == ("", True)
    assert all(word in said.err for word in ("[providers.NAME]", 'kind = "openai-chat"'))


def test_a_name_from_a_server_cannot_leave_its_quotes(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    wild = 'a"]\nkind = "x\\\x1b[31m'
    with served({"/v1/models": {"data": [{"id": wild, "max_model_len": 5}]}}) as vllm:
        nobody = [w for name in ("ollama", "lmstudio", "llamacpp") for w in ("--port", f"{name}={free_port()}")]
        assert main(["--home", str(home), "models", "--local", *nobody, "--port", f"vllm={vllm}"]) == 0
    out = capfd.readouterr().out
    assert "\x1b" not in out
    assert list(tomllib.loads(out[out.index("[providers.") :])["models"]) == ['vllm/a"]?kind = "x\\?[31m']


@pytest.mark.parametrize(
    "flags", [["--port", "ollama=1"], ["--local", "--port", "x=1"], ["--local", "--port", "vllm=0"]]
)
def test_a_wrong_port_is_a_usage_error(home: Path, flags: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--home", str(home), "models", *flags]) == exits.USAGE
    assert len(capfd.readouterr().err.splitlines()) == 1
