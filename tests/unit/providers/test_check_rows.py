"""Models, keys and local servers in a check-up. Real servers on loopback, real key files."""

from __future__ import annotations

import pytest

from quintet.domain.checkup import Health
from quintet.providers.key_check import look_at_keys
from quintet.providers.local_check import look_at_local
from quintet.providers.settings import ProviderKind, ProviderSettings
from quintet.providers.table import ModelTable
from tests.fakes.answers import Answers
from tests.fakes.waiting import soon
from tests.unit.providers.test_local_servers import LM_STUDIO, OLLAMA, VLLM, free_port

KEY = "canary-key-0123456789"


def keys(table: ModelTable, *, locked: bool = False):  # type: ignore[no-untyped-def]
    return {row.name: row for row in look_at_keys(table, lambda _: locked)}


class Stored:
    def names(self):  # type: ignore[no-untyped-def]
        return ["anthropic"]

    def get(self, name):  # type: ignore[no-untyped-def]
        raise AssertionError("a check-up opens no stored key")


@pytest.mark.req("first_minutes:F5")
def test_without_any_key_the_offline_model_answers_and_that_is_no_fault():
    rows = keys(ModelTable(environment={}))
    assert {row.health for row in rows.values()} == {Health.OK}
    assert "offline" in rows["model"].detail
    assert "none found" in rows["keys"].detail


@pytest.mark.req("first_minutes:F5", "first_minutes:F10")
def test_keys_are_told_by_provider_and_place_never_by_value():
    own = {"my": ProviderSettings(ProviderKind.OPENAI_CHAT, base_url="http://127.0.0.1:9/v1", api_key=KEY)}
    table = ModelTable(own, default_model="my/x", environment={"OPENAI_API_KEY": KEY}, stored=Stored())
    rows = keys(table)
    said = rows["keys"].detail
    assert said.split(", ") == ["openai (in the environment)", "anthropic (stored)", "my (written in config.toml)"]
    assert KEY not in str(rows)
    assert rows["model"].health is Health.OK


@pytest.mark.req("first_minutes:F6")
@pytest.mark.parametrize(
    ("default", "says", "fix"),
    [
        ("nobody/x", "no provider named 'nobody'", "quintet models"),
        ("anthropic/claude-sonnet-4-5", "a key", "quintet auth set anthropic"),
        ("openai", "provider/model", "quintet models"),
    ],
)
def test_a_default_model_that_cannot_be_asked_fails(default, says, fix):
    environment = {"OPENAI_API_KEY": KEY}
    row = keys(ModelTable(default_model=default, environment=environment))["model"]
    assert (row.health, row.fix) == (Health.FAIL, fix)
    assert says in row.detail


@pytest.mark.req("first_minutes:F6")
def test_a_stored_key_that_nothing_can_open_fails():
    row = keys(ModelTable(environment={}, stored=Stored()), locked=True)["keys"]
    assert (row.health, row.fix) == (Health.FAIL, "quintet auth set anthropic")


@pytest.mark.req("first_minutes:F5", "first_minutes:F6")
async def test_local_servers_are_told_with_their_context_and_too_little_of_it_warns():
    async with Answers(OLLAMA) as ollama, Answers(LM_STUDIO) as studio, Answers(VLLM) as vllm, Answers({}) as other:
        ports = {"ollama": ollama.port, "lmstudio": studio.port, "vllm": vllm.port, "llamacpp": other.port}
        rows = {row.name: row for row in await soon(look_at_local(ports))}
    assert rows["vLLM"].health is Health.OK
    assert "262,144 tokens of context" in rows["vLLM"].detail
    assert rows["Ollama"].health is Health.WARN
    assert "qwen3:8b (8,192 tokens of context)" in rows["Ollama"].detail
    assert "OLLAMA_CONTEXT_LENGTH" in rows["Ollama"].fix
    assert rows["LM Studio"].health is Health.WARN
    assert rows["llama.cpp"].health is Health.OK, "somebody else's web server is no fault"
    assert "not as llama.cpp does" in rows["llama.cpp"].detail


@pytest.mark.req("first_minutes:F5", "first_minutes:F6")
async def test_no_local_server_is_no_fault_and_one_without_a_model_warns():
    [row] = await soon(look_at_local({"vllm": free_port()}))
    assert (row.name, row.health) == ("local models", Health.OK)
    async with Answers({"/v1/models": {"data": []}}) as empty:
        [row] = await soon(look_at_local({"vllm": empty.port}))
    assert row.health is Health.WARN
