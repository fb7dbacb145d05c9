"""What a Wire client is told when the model's server fails: real HTTP, the real executable, real pipes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.model_server import ModelServer
from tests.fakes.wire_client import WireClient, kinds, payloads, spoken
from tests.faults.processes import write_home

CONFIG = """
default_model = "fake/fake-model"

[providers.fake]
kind = "openai-chat"
base_url = "{url}"
api_key = "a-key-of-the-test"
max_retries = {retries}
"""
SAYS = 'text: "well "\ntext: "said"\nusage: in=30 out=2\n'


async def talk(
    tmp_path: Path, *faults: str, script: str = SAYS, retries: int = 2, version: str = "1.10", prompts: int = 1
) -> tuple[list[list[dict[str, Any]]], int]:
    """(what was heard for each prompt, how many requests the model's server got)."""
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    async with ModelServer(script, faults=faults) as server:
        home = write_home(tmp_path / "home", config=CONFIG.format(url=server.url, retries=retries))

        def speak() -> list[list[dict[str, Any]]]:
            with WireClient(home, work=work) as wire:
                wire.initialize(version)
                return [wire.prompt() for _ in range(prompts)]

        return await asyncio.to_thread(speak), len(server.requests)


@pytest.mark.req("wire:S40", "wire:S41", "wire:S46")
async def test_a_key_that_is_not_accepted_is_told_at_once_and_the_next_prompt_works(tmp_path: Path) -> None:
    (failed, fine), requests = await talk(tmp_path, "401", prompts=2)
    assert kinds(failed) == ["TurnBegin", "StepBegin", "StepInterrupted", "TurnEnd", "reply"]
    assert failed[-1]["error"]["code"] == -32003
    assert "401" in failed[-1]["error"]["message"]
    assert spoken(fine) == "well said"
    assert requests == 2


@pytest.mark.req("wire:S42", "wire:S44")
@pytest.mark.parametrize("status", ["429", "500"])
async def test_a_lasting_failure_ends_after_bounded_attempts(tmp_path: Path, status: str) -> None:
    (heard,), requests = await talk(tmp_path, f"{status} times 9", retries=2)
    assert kinds(heard) == [
        *("TurnBegin", "StepBegin", "StepRetry", "StepRetry"),
        *("StepInterrupted", "TurnEnd", "reply"),
    ]
    assert heard[-1]["error"]["code"] == -32003
    assert status in heard[-1]["error"]["message"]
    assert requests == 3


@pytest.mark.req("wire:S43", "wire:S44")
async def test_after_too_many_requests_the_turn_recovers(tmp_path: Path) -> None:
    (heard,), requests = await talk(tmp_path, "429-seconds=0")
    assert spoken(heard) == "well said"
    assert heard[-1]["result"] == {"status": "finished"}
    (retry,) = payloads(heard, "StepRetry")
    assert retry == {
        "n": 1,
        "next_attempt": 2,
        "max_attempts": 3,
        "wait_s": 0.0,
        "error_type": "rate_limit",
        "status_code": 429,
    }
    assert kinds(heard)[:3] == ["TurnBegin", "StepBegin", "StepRetry"]
    assert requests == 2


@pytest.mark.req("wire:S45")
@pytest.mark.parametrize("fault", ["reset", "half-close", "close"])
async def test_an_answer_that_breaks_off_is_asked_for_again(tmp_path: Path, fault: str) -> None:
    (heard,), requests = await talk(tmp_path, fault)
    assert heard[-1]["result"] == {"status": "finished"}
    at = kinds(heard).index("StepRetry")
    assert spoken(heard[:at]) == "well said"
    assert spoken(heard[at:]) == "well said"
    assert requests == 2


@pytest.mark.req("wire:S107")
@pytest.mark.parametrize("fault", ["garbage times 9", "html times 9", "shapes times 9"])
async def test_what_is_no_answer_is_a_service_error(tmp_path: Path, fault: str) -> None:
    (heard,), _ = await talk(tmp_path, fault, retries=1)
    assert heard[-1]["error"]["code"] == -32003
    assert kinds(heard)[-3:] == ["StepInterrupted", "TurnEnd", "reply"]


@pytest.mark.req("wire:S43")
async def test_a_client_of_an_old_version_sees_only_the_recovered_answer(tmp_path: Path) -> None:
    (heard,), _ = await talk(tmp_path, "429-seconds=0", version="1.2")
    assert kinds(heard) == [
        *("TurnBegin", "StepBegin", "ContentPart", "ContentPart"),
        *("StatusUpdate", "TurnEnd", "reply"),
    ]
