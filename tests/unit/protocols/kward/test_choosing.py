"""models/*, reasoning/set, openrouter/catalog and config/*: what Kward's config.json says, and how it is changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quintet.config.kward import Addresses
from tests.fakes.kward_desk import NOBODY, Desk, Message, desk
from tests.fakes.web import Seen, reply, serving

Patch = pytest.MonkeyPatch
KEY = "sk-or-0123456789abcdef"
CATALOG = [
    {"id": "a/one", "name": "One", "context_length": 1000, "supported_parameters": ["tools", "reasoning"]},
    {"id": "b/two", "name": "Two", "context_length": "much"},
]


async def models(client: Desk, method: str = "models/list") -> dict[str, Message]:
    found = (await client.call(method))["models"]
    return {f"{model['provider']}/{model['id']}": model for model in found}


def openrouter(seen: Seen) -> bytes:
    """Lists what a key may use only to the key."""
    if seen.line.startswith("GET /api/models/user "):
        good = seen.headers.get("authorization") == f"Bearer {KEY}"
        return reply(200, json.dumps({"data": CATALOG[:1]})) if good else reply(401)
    if seen.line.startswith("GET /api/models "):
        return reply(200, json.dumps({"data": CATALOG}))
    return reply(404)


@pytest.mark.req("kward:110")
async def test_exactly_one_model_is_current_and_providers_of_config_toml_have_their_names(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    config = '[models."fake/other"]\ncontext_window = 5000\nreasoning = true\n'
    async with desk(tmp_path, monkeypatch, config=config) as client:
        found = await models(client)
        assert [name for name, model in found.items() if model["current"]] == ["fake/scripted"]
        assert found["fake/scripted"] == {
            "provider": "fake",
            "id": "scripted",
            "model": "scripted",
            "name": "scripted",
            "reasoning": False,
            "current": True,
        }
        assert await client.call("models/current") == found["fake/scripted"]
        await client.call("models/set", model="other", provider="fake")
        found = await models(client)
        assert [name for name, model in found.items() if model["current"]] == ["fake/other"]
        assert (found["fake/other"]["contextWindow"], found["fake/other"]["reasoning"]) == (5000, True)


@pytest.mark.req("kward:111")
async def test_choosing_a_model_keeps_other_providers_and_is_read_by_the_next_process(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    given = {"provider": "codex", "openai_model": "gpt-5.5", "openrouter_model": "x/y", "copilot_model": "z"}
    async with desk(tmp_path, monkeypatch, kward=given) as client:
        now = await client.call("models/current")
        assert (now["provider"], now["id"], now["reasoningEffort"]) == ("Codex", "gpt-5.5", "medium")
        told = await client.call("models/set", model="a/b", provider="OpenRouter")
        assert (told["provider"], told["id"], told["current"]) == ("OpenRouter", "a/b", True)
        assert client.config == given | {"provider": "openrouter", "openrouter_model": "a/b"}
        told = await client.call("models/set", model="c/d")
        assert (told["provider"], told["id"]) == ("OpenRouter", "c/d")
        assert await client.refused("models/set", model=" ") == (-32603, "Model must be a non-empty string")
    async with desk(tmp_path, monkeypatch) as client:
        assert (await client.call("models/current"))["id"] == "c/d"


async def test_a_provider_that_does_not_exist_and_a_model_without_a_name_are_refused_and_nothing_is_written(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    nobody, nothing = (-32603, "Unsupported provider: Nope"), (-32602, "Model must be a non-empty string")
    async with desk(tmp_path, monkeypatch) as client:
        assert await client.refused("models/set", model="m", provider="Nope") == nobody
        assert await client.refused("reasoning/set", effort="high", provider="Nope") == nobody
        session = (await client.call("sessions/create", workspaceRoot=str(client.work)))["id"]
        for value, why in (("Nope/m", nobody), ("OpenRouter/ ", nothing), ("/", nothing)):
            params = {"sessionId": session, "settingId": "defaultModel", "value": value}
            assert await client.refused("runtime/updateSetting", **params) == why
        assert (await client.call("config/read"))["config"] == {}


@pytest.mark.req("kward:108", "kward:109")
async def test_a_setting_with_a_provider_keeps_the_slashes_behind_it(tmp_path: Path, monkeypatch: Patch) -> None:
    async with desk(tmp_path, monkeypatch) as client:
        session = (await client.call("sessions/create", workspaceRoot=str(client.work)))["id"]
        setting = {"sessionId": session, "settingId": "defaultModel"}
        applied = await client.call("runtime/updateSetting", **setting, value="OpenRouter/a/b")
        assert applied["applied"] == "live"
        assert client.config == {"provider": "openrouter", "openrouter_model": "a/b"}
        state = await client.call("runtime/state", sessionId=session)
        assert (state["defaultModel"], state["defaultProvider"]) == ("OpenRouter/a/b", "OpenRouter")
        thinking = {"sessionId": session, "settingId": "defaultThinkingLevel", "value": "high"}
        await client.call("runtime/updateSetting", **thinking)
        assert (await client.call("runtime/state", sessionId=session))["thinkingLevel"] == "high"
        refused = await client.refused("runtime/updateSetting", sessionId=session, settingId="x", value="y")
        assert refused == (-32602, "Unsupported runtime setting: x")


async def test_how_hard_a_model_thinks_is_set_for_its_provider(tmp_path: Path, monkeypatch: Patch) -> None:
    given = {"provider": "openrouter", "reasoning_effort": "low"}
    async with desk(tmp_path, monkeypatch, kward=given) as client:
        assert (await client.call("models/current"))["reasoningEffort"] == "low"
        assert (await client.call("reasoning/set", effort="high"))["reasoningEffort"] == "high"
        assert client.config == given | {"openrouter_reasoning_effort": "high"}
        blank = await client.refused("reasoning/set", effort="")
        assert blank == (-32603, "Reasoning effort must be a non-empty string")
    environment = {"KWARD_PROVIDER": "codex", "OPENAI_REASONING_EFFORT": "xhigh", "OPENAI_MODEL": "gpt-5.4"}
    async with desk(tmp_path, monkeypatch, **environment) as client:
        now = await client.call("models/current")
        assert (now["provider"], now["id"], now["reasoningEffort"]) == ("Codex", "gpt-5.4", "xhigh")


async def test_openrouter_is_asked_what_the_key_may_use_and_for_the_whole_catalog(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    async with serving(openrouter, "127.0.0.1") as server:
        at = Addresses(NOBODY, f"http://127.0.0.1:{server.port}/api")
        async with desk(tmp_path, monkeypatch, at=at, kward={"openrouter_api_key": KEY}) as client:
            found = await models(client)
            assert [name for name in found if name.startswith("OpenRouter/")] == ["OpenRouter/a/one"]
            one = found["OpenRouter/a/one"]
            assert (one["name"], one["contextWindow"], one["reasoning"]) == ("One", 1000, True)
            catalog = await models(client, "openrouter/catalog")
            assert list(catalog) == ["OpenRouter/a/one", "OpenRouter/b/two"]
            assert "contextWindow" not in catalog["OpenRouter/b/two"]
            await client.call("auth/logoutProvider", providerId="openrouter")
            assert not any(name.startswith("OpenRouter/") for name in await models(client))
            assert len(await models(client, "openrouter/catalog")) == 2
        assert "authorization" not in server.seen[-1].headers


@pytest.mark.parametrize("answer", [reply(500), reply(200, "<html>"), reply(401), None], ids=str)
async def test_where_openrouter_cannot_be_asked_what_is_chosen_is_listed(
    tmp_path: Path, monkeypatch: Patch, answer: bytes | None
) -> None:
    given = {"openrouter_api_key": KEY, "openrouter_model": "a/b", "provider": "openrouter"}
    async with serving(answer or b"", "127.0.0.1") as server:
        at = Addresses(NOBODY, NOBODY if answer is None else f"http://127.0.0.1:{server.port}/api")
        async with desk(tmp_path, monkeypatch, at=at, kward=given) as client:
            found = await models(client)
            assert [name for name, model in found.items() if model["current"]] == ["OpenRouter/a/b"]
            assert await models(client, "openrouter/catalog") == {}


async def test_a_key_that_is_stored_while_it_runs_serves_the_next_turn(tmp_path: Path, monkeypatch: Patch) -> None:
    def chat(seen: Seen) -> bytes:
        if seen.headers.get("authorization") != f"Bearer {KEY}":
            return reply(401)
        said = {"choices": [{"index": 0, "delta": {"content": "hello"}, "finish_reason": "stop"}]}
        return reply(200, f"data: {json.dumps(said)}\n\ndata: [DONE]\n\n", content_type="text/event-stream")

    async with serving(chat, "127.0.0.1") as server:
        at = Addresses(NOBODY, f"http://127.0.0.1:{server.port}/api")
        given = {"provider": "openrouter", "openrouter_model": "a/b"}
        known = '[models."OpenRouter/a/b"]\nreasoning = true\n'
        async with desk(tmp_path, monkeypatch, at=at, kward=given, config=known) as client:
            session = await client.turn("hello")
            await client.call("auth/loginWithApiKey", providerId="openrouter", apiKey=KEY)
            await client.turn("hello", session)
            assert json.loads(server.seen[-1].body)["reasoning_effort"] == "medium"
            ends = [m["params"]["payload"] for m in client.notes if m["params"].get("type") == "turnFinished"]
            assert [end["status"] for end in ends] == ["failed", "completed"]


@pytest.mark.req("kward:112", "kward:113")
async def test_settings_are_merged_at_the_top_kept_private_and_told_masked(tmp_path: Path, monkeypatch: Patch) -> None:
    async with desk(tmp_path, monkeypatch) as client:
        path = str(client.kward / "config.json")
        assert await client.call("config/read") == {"path": path, "config": {}}
        values = {"openrouter_api_key": KEY, "web_search": {"exa_api_key": "exa-key-1234"}, "x": 1}
        told = await client.call("config/update", values=values)
        masked = {"openrouter_api_key": "[REDACTED]", "web_search": {"exa_api_key": "[REDACTED]"}, "x": 1}
        assert told == {"path": path, "config": masked}
        assert (await client.call("config/read"))["config"] == masked
        assert (await client.call("config/read", redacted=False))["config"] == values
        assert (await client.call("config/read"))["config"] == masked
        await client.call("config/update", values={"web_search": {"enabled": True}, "y": None})
        assert client.config == {"openrouter_api_key": KEY, "web_search": {"enabled": True}, "x": 1, "y": None}
        assert oct((client.kward / "config.json").stat().st_mode & 0o777) == "0o600"
        for wrong in (None, [1], "x"):
            refused = await client.refused("config/update", values=wrong)
            assert refused == (-32603, "Config values must be an object")


@pytest.mark.parametrize(
    "values",
    [
        {"mcpServers": {"x": {"command": "evil"}}},
        {"openai_base_url": "http://evil.example"},
        {"a": {"command": "x"}},
        {"list": [[{"command": "x"}]]},
    ],
    ids=lambda values: next(iter(values)),
)
async def test_what_names_a_program_or_an_address_is_for_the_person_to_write(
    tmp_path: Path, monkeypatch: Patch, values: Message
) -> None:
    async with desk(tmp_path, monkeypatch) as client:
        code, words = await client.refused("config/update", values=values | {"x": 1})
        assert code == -32602
        assert f"write it into {client.kward / 'config.json'} yourself" in words
        assert not (client.kward / "config.json").exists()


@pytest.mark.req("kward:114")
async def test_settings_that_are_no_json_are_an_error_that_names_the_file(tmp_path: Path, monkeypatch: Patch) -> None:
    async with desk(tmp_path, monkeypatch) as client:
        client.kward.mkdir()
        (client.kward / "config.json").write_text("{ no")
        for method, params in (("config/read", {}), ("config/update", {"values": {"x": 1}}), ("memory/enable", {})):
            code, words = await client.refused(method, **params)
            assert (code in (-32602, -32603), str(client.kward / "config.json") in words) == (True, True)
        assert (client.kward / "config.json").read_text() == "{ no"
        assert (await client.call("models/current"))["provider"] == "fake"


async def test_settings_that_cannot_be_written_are_an_error_that_says_why(tmp_path: Path, monkeypatch: Patch) -> None:
    async with desk(tmp_path, monkeypatch) as client:
        client.kward.write_text("a file stands where the directory should be")
        code, told = await client.refused("memory/enable")
        assert code == -32603
        assert str(client.kward) in told
        assert "unexpectedly" not in told
