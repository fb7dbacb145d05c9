"""Kimi's configuration: its words, our settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from quintet.config import Config
from quintet.config.kimi import NO_MODEL, Chosen, KimiConfig, choose, parse_kimi, read_kimi
from quintet.config.kimi_notes import notes_of
from quintet.domain.errors import Invalid
from quintet.providers.settings import ModelSettings, ProviderKind, ProviderSettings

SCRIPTED = {
    "default_model": "a",
    "models": {
        "a": {"provider": "pa", "model": "scripted_echo", "max_context_size": 100000},
        "b": {"provider": "pb", "model": "scripted_echo", "max_context_size": 5, "capabilities": ["image_in"]},
    },
    "providers": {
        "pa": {"type": "_scripted_echo", "base_url": "", "api_key": "", "env": {"KIMI_SCRIPTED_ECHO_SCRIPTS": "/a"}},
        "pb": {"type": "_scripted_echo", "base_url": "", "api_key": "", "env": {"KIMI_SCRIPTED_ECHO_SCRIPTS": "/b"}},
    },
    "loop_control": {"max_steps_per_turn": 7, "max_retries_per_step": 1},
    "theme": "dark",
}
TOML = """
default_model = "m"
[models.m]
provider = "p"
model = "kimi-k2"
max_context_size = 262144
capabilities = ["thinking", "image_in"]
[providers.p]
type = "kimi"
base_url = "https://api.example/v1"
api_key = "sk-example"
custom_headers = { X-A = "1" }
"""


def chosen(document: Any, environment: dict[str, str] | None = None, **flags: Any) -> Chosen:
    return choose(parse_kimi(json.dumps(document), "it"), Config(), environment or {}, **flags)


def one(**provider: Any) -> dict[str, Any]:
    """A configuration with one model of one provider."""
    return {"default_model": "m", "models": {"m": {"provider": "p", "model": "k"}}, "providers": {"p": provider}}


def provider_of(found: Chosen) -> ProviderSettings:
    return found.config.providers[found.reference.partition("/")[0]]


def test_json_and_toml_are_read_alike() -> None:
    as_json = parse_kimi(json.dumps({"default_model": "m", "loop_control": {"max_steps_per_turn": 3}}), "it")
    as_toml = parse_kimi('default_model = "m"\n[loop_control]\nmax_steps_per_turn = 3\n', "it")
    assert as_json == as_toml
    assert as_json.max_steps == 3


def test_a_model_of_kimis_is_one_of_ours_with_its_address_key_and_window() -> None:
    found = choose(parse_kimi(TOML, "it"), Config(), {})
    assert found.reference == "p/kimi-k2"
    settings = provider_of(found)
    assert (settings.kind, settings.base_url, settings.api_key) == (
        ProviderKind.OPENAI_CHAT,
        "https://api.example/v1",
        "sk-example",
    )
    assert settings.headers == {"X-A": "1"}
    assert found.config.models[found.reference] == ModelSettings(
        context_window=262144, vision=True, reasoning=False, audio=True, video=False
    )


@pytest.mark.parametrize(
    ("kind", "ours"),
    [
        ("kimi", ProviderKind.OPENAI_CHAT),
        ("openai_legacy", ProviderKind.OPENAI_CHAT),
        ("openai_responses", ProviderKind.OPENAI_RESPONSES),
        ("anthropic", ProviderKind.ANTHROPIC),
    ],
)
def test_each_type_of_provider_has_its_wire(kind: str, ours: ProviderKind) -> None:
    assert provider_of(chosen(one(type=kind, base_url="http://x/v1"))).kind is ours


@pytest.mark.req("wire:S48")
@pytest.mark.parametrize("kind", ["google_genai", "gemini", "vertexai", "something"])
def test_a_type_we_do_not_speak_is_named(kind: str) -> None:
    found = chosen(one(type=kind, base_url="http://x"))
    assert found.reference == NO_MODEL
    assert f"'{kind}'" in found.unsupported


@pytest.mark.req("wire:S47")
@pytest.mark.parametrize(
    "document",
    [
        {},
        {"default_model": "gone"},
        {"default_model": "m", "models": {"m": {"provider": "gone", "model": "k"}}},
        one(type="kimi", base_url=""),
        one(type="openai_legacy", base_url=""),
        {**one(type="kimi", base_url="http://x"), "models": {"m": {"provider": "p", "model": ""}}},
        one(type="_scripted_echo"),
    ],
)
def test_a_given_configuration_that_names_no_usable_model_means_none(document: dict[str, Any]) -> None:
    assert chosen(document) == Chosen(NO_MODEL, config=Config())


def test_each_scripted_provider_has_the_scripts_of_its_own_environment() -> None:
    first, second = chosen(SCRIPTED), chosen(SCRIPTED, model="b")
    assert (provider_of(first).script, provider_of(second).script) == ("/a", "/b")
    assert provider_of(second).kind is ProviderKind.SCRIPTED
    assert second.config.models["pb/scripted_echo"].vision is True


@pytest.mark.req("wire:S42")
def test_retries_are_counted_without_the_first_attempt() -> None:
    assert provider_of(chosen(SCRIPTED)).max_retries == 0
    assert provider_of(chosen(one(type="kimi", base_url="http://x"))).max_retries == 3


def test_the_environment_goes_before_the_file_and_a_providers_own_before_both() -> None:
    env = {"KIMI_BASE_URL": "http://env/v1", "KIMI_API_KEY": "from-env", "OPENAI_BASE_URL": "http://other"}
    document = one(type="kimi", base_url="http://file", api_key="from-file", env={"KIMI_API_KEY": "own"})
    settings = provider_of(chosen(document, env))
    assert (settings.base_url, settings.api_key) == ("http://env/v1", "own")


def test_the_environment_alone_can_name_a_model() -> None:
    env = {"KIMI_BASE_URL": "http://env/v1", "KIMI_API_KEY": "k", "KIMI_MODEL_NAME": "k2"}
    env["KIMI_MODEL_MAX_CONTEXT_SIZE"], env["KIMI_MODEL_CAPABILITIES"] = "1000", "Image_In"
    found = choose(None, Config(), env)
    assert found.reference == "kimi/k2"
    assert found.config.models[found.reference] == ModelSettings(
        context_window=1000, vision=True, reasoning=False, audio=True, video=False
    )


@pytest.mark.parametrize(
    ("kind", "sound"),
    [
        ("kimi", True),
        ("openai_legacy", True),
        ("_scripted_echo", True),
        ("anthropic", False),
        ("openai_responses", False),
    ],
)
def test_videos_want_their_capability_and_sound_only_a_wire_that_has_a_form_for_it(kind: str, sound: bool) -> None:
    """Kimi knows no word for sound, and gives it to whoever can be given it."""
    for able, video in (["image_in", "video_in"], True), (["image_in"], False), ([], False):
        document = one(type=kind, base_url="http://x", env={"KIMI_SCRIPTED_ECHO_SCRIPTS": "/s"})
        document["models"]["m"]["capabilities"] = able
        found = chosen(document)
        settings = found.config.models[found.reference]
        assert (settings.audio, settings.video) == (sound, video)


def test_what_kimi_knows_of_its_own_models_holds_whatever_the_file_says() -> None:
    document = one(type="kimi", base_url="http://x")
    document["models"]["m"]["model"] = "kimi-for-coding"
    found = choose(parse_kimi(json.dumps(document), "it"), Config(), {}, thinking=True)
    settings = found.config.models[found.reference]
    assert (settings.vision, settings.video, settings.reasoning) == (True, True, True)


def test_without_any_configuration_of_kimis_ours_serves() -> None:
    assert choose(None, Config(), {}) == Chosen("", config=Config())
    assert choose(None, Config(), {}, model="fake/m").reference == "fake/m"


@pytest.mark.parametrize(
    ("able", "flag", "default", "reasons"),
    [
        (["thinking"], None, True, True),
        (["thinking"], False, True, False),
        (["thinking"], True, False, True),
        ([], True, True, False),
        (["always_thinking"], False, False, True),
    ],
)
def test_a_model_thinks_where_it_can_and_is_told_to(able: list[str], flag: bool, default: bool, reasons: bool) -> None:
    document = one(type="kimi", base_url="http://x")
    document["models"]["m"]["capabilities"] = able
    found = chosen({**document, "default_thinking": default}, thinking=flag)
    assert found.config.models[found.reference].reasoning is reasons


def test_what_was_named_goes_before_the_share_directory(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('default_model = "shared"')
    (tmp_path / "other.json").write_text('{"default_model": "named"}')

    def default(**given: str) -> str:
        found = read_kimi(**{"text": "", "file": "", "share_dir": str(tmp_path), **given})
        assert found is not None
        return found.default_model

    assert default() == "shared"
    assert default(file=str(tmp_path / "other.json")) == "named"
    assert default(file=str(tmp_path / "other.json"), text='default_model = "said"') == "said"


def test_a_file_of_somebody_who_never_chose_a_model_leaves_that_to_us(tmp_path: Path) -> None:
    assert read_kimi(text="", file="", share_dir=str(tmp_path)) is None
    (tmp_path / "config.toml").write_text('default_model = ""\ndefault_thinking = true\n[models]\n')
    found = read_kimi(text="", file="", share_dir=str(tmp_path))
    assert found is not None
    assert choose(found, Config(), {}).reference == ""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"default_model": 3}', "default_model"),
        ("{not json", "is not JSON"),
        ("= toml", "is neither JSON nor TOML"),
        ('{"providers": {"p": {}}}', "type"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_place(text: str, words: str) -> None:
    with pytest.raises(Invalid, match=words) as caught:
        parse_kimi(text, "here")
    assert caught.value.message.startswith("here")


def test_a_missing_file_is_said_by_name(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match=r"nowhere\.json cannot be read"):
        read_kimi(text="", file=str(tmp_path / "nowhere.json"), share_dir=str(tmp_path))


def test_a_printed_configuration_shows_no_key() -> None:
    assert "sk-example" not in repr(parse_kimi(TOML, "it"))
    assert KimiConfig() == parse_kimi("{}", "it")


@pytest.mark.req("wire:S47")
@pytest.mark.parametrize(
    ("document", "why"),
    [
        ({"models": {"m": {"provider": "p"}}}, "names no default_model"),
        (one(type="kimi") | {"default_model": "n"}, "has no model 'n', only: m."),
        (one(type="kimi") | {"providers": {}}, "has no provider 'p', which its model 'm' names"),
        (one(type="kimi"), "says too little of 'm'"),
    ],
)
def test_why_no_model_is_set_is_told_in_the_log(document: dict[str, Any], why: str) -> None:
    kimi = parse_kimi(json.dumps(document), "it")
    (note,) = notes_of(kimi, choose(kimi, Config(), {}))
    assert why in note


def test_of_a_model_that_can_be_used_nothing_is_told_but_that_its_login_is_not_gone() -> None:
    kimi = parse_kimi(json.dumps(one(type="kimi", base_url="https://api.example/v1", oauth={"key": "k"})), "it")
    (note,) = notes_of(kimi, choose(kimi, Config(), {}))
    assert "logs in with OAuth" in note
    assert notes_of(None, choose(None, Config(), {})) == []
