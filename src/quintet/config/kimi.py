"""Kimi's own configuration as `quintet wire` reads it: models, providers and limits in its words, in place of ours.

Reads a text, JSON or TOML; opens nothing but the named files. What it does not know it leaves to Kimi and tells.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from quintet.config import Config
from quintet.config.kimi_hooks import KimiHook
from quintet.domain.errors import Invalid
from quintet.protocols.wire.errors import UNSET as NO_MODEL
from quintet.providers.settings import ModelSettings, ProviderKind, ProviderSettings

FILE = "config.toml"
SCRIPTS = "KIMI_SCRIPTED_ECHO_SCRIPTS"
KINDS = {
    "kimi": ProviderKind.OPENAI_CHAT,
    "openai_legacy": ProviderKind.OPENAI_CHAT,
    "openai_responses": ProviderKind.OPENAI_RESPONSES,
    "anthropic": ProviderKind.ANTHROPIC,
    "_scripted_echo": ProviderKind.SCRIPTED,
}
# What Kimi knows of models of its own, whatever its file says.
_BY_NAME = dict.fromkeys(("kimi-for-coding", "kimi-code"), ("thinking", "image_in", "video_in"))
# Where the environment goes before the file: address and key, by the type of the provider.
_NAMES = {
    "kimi": ("KIMI_BASE_URL", "KIMI_API_KEY"),
    "openai_legacy": ("OPENAI_BASE_URL", "OPENAI_API_KEY"),
    "openai_responses": ("OPENAI_BASE_URL", "OPENAI_API_KEY"),
}


class KimiModel(msgspec.Struct, frozen=True):
    provider: str = ""
    model: str = ""
    max_context_size: int = 0
    capabilities: tuple[str, ...] | None = None


class KimiProvider(msgspec.Struct, frozen=True):
    type: str
    base_url: str = ""
    api_key: str = ""
    env: dict[str, str] | None = None
    custom_headers: dict[str, str] | None = None
    oauth: Any = None  # how Kimi itself logs in there

    def __repr__(self) -> str:
        return f"KimiProvider(type={self.type!r}, base_url={self.base_url!r})"  # never its key


class LoopControl(msgspec.Struct, frozen=True):
    max_steps_per_turn: int | None = None
    max_steps_per_run: int | None = None  # its older name
    max_retries_per_step: int | None = None
    max_ralph_iterations: int = 0


class KimiConfig(msgspec.Struct, frozen=True):
    default_model: str = ""
    default_thinking: bool = False
    default_yolo: bool = False
    default_plan_mode: bool = False
    models: dict[str, KimiModel] = {}
    providers: dict[str, KimiProvider] = {}
    loop_control: LoopControl = LoopControl()
    hooks: tuple[KimiHook, ...] = ()
    given: bool = True  # somebody named it, so that it must name a model too

    @property
    def max_steps(self) -> int | None:
        return self.loop_control.max_steps_per_turn or self.loop_control.max_steps_per_run


class Chosen(msgspec.Struct, frozen=True):
    """The model a client's turns run with: a reference of ours, empty for the usual one; or why there is none."""

    reference: str = ""
    unsupported: str = ""
    config: Config = Config()
    by_login: bool = False  # its provider is one that Kimi logs in to


def read_kimi(*, text: str, file: str, share_dir: str) -> KimiConfig | None:
    """What was given, else the share directory's; None when there is neither."""
    if text:
        return parse_kimi(text, "--config")
    if file:
        return parse_kimi(_text_of(file), file)
    path = os.path.join(share_dir, FILE)
    if not os.path.isfile(path):
        return None
    found = parse_kimi(_text_of(path), path)
    # A file that Kimi wrote for somebody who never chose a model says nothing about models.
    return replace(found, given=bool(found.default_model or found.models))


def parse_kimi(text: str, name: str) -> KimiConfig:
    try:
        return msgspec.convert(_document(text, name), KimiConfig)
    except msgspec.ValidationError as error:
        raise Invalid(f"{name}: {error}.", next_step="Correct that key of Kimi's configuration.") from None


def choose(
    kimi: KimiConfig | None,
    config: Config,
    environment: Mapping[str, str],
    *,
    model: str = "",
    thinking: bool | None = None,
) -> Chosen:
    """Kimi's models put over ours, and which of them is meant."""
    kimi = kimi or KimiConfig(given=False)
    alias = model or kimi.default_model
    wanted = kimi.models.get(alias) or _of_environment(kimi, environment, model)
    if wanted is None:
        return Chosen(model or (NO_MODEL if kimi.given else ""), config=config)
    # Of two names for one model the one that is meant counts.
    entries = {name: entry for name, entry in kimi.models.items() if entry is not wanted} | {alias: wanted}
    made, chosen = config, Chosen(NO_MODEL, config=config)
    for entry in entries.values():
        chosen = _chosen(kimi, made, environment, entry, thinking=thinking)
        made = chosen.config
    return chosen


def with_attempts(chosen: Chosen, attempts: int | None, environment: Mapping[str, str]) -> Chosen:
    """As often as the command line says, whatever the files say; the first attempt counts as one."""
    if attempts is None:
        return chosen
    from quintet.providers.well_known import found_providers

    config = chosen.config
    known = found_providers(environment, ()) | config.providers
    bounded = {name: replace(provider, max_retries=attempts - 1) for name, provider in known.items()}
    return replace(chosen, config=replace(config, providers=bounded))


def _of_environment(kimi: KimiConfig, environment: Mapping[str, str], model: str) -> KimiModel | None:
    """Without a file the environment alone can name a model."""
    if kimi.given or model or not (environment.get("KIMI_BASE_URL") and environment.get("KIMI_MODEL_NAME")):
        return None
    return KimiModel()


def _chosen(
    kimi: KimiConfig, config: Config, environment: Mapping[str, str], entry: KimiModel, *, thinking: bool | None
) -> Chosen:
    provider = kimi.providers.get(entry.provider) or (KimiProvider("kimi") if not kimi.given else None)
    if provider is None:
        return Chosen(NO_MODEL, config=config)
    env = {**environment, **(provider.env or {})}
    if provider.type not in KINDS:
        words = f"LLM provider type '{provider.type}' of '{entry.provider}' is not supported."
        return Chosen(NO_MODEL, words, config)
    if provider.type == "kimi":
        entry = _overridden(entry, env)
    settings = _settings(kimi, provider, env)
    scripted = settings.kind is ProviderKind.SCRIPTED
    if not (settings.script if scripted else settings.base_url and entry.model):
        return Chosen(NO_MODEL, config=config)
    name = (entry.provider or "kimi").replace("/", "-")
    reference = f"{name}/{entry.model or 'scripted'}"
    over = replace(
        config,
        providers={**config.providers, name: settings},
        models={**config.models, reference: _model(kimi, entry, settings.kind, thinking=thinking)},
    )
    return Chosen(reference, config=over, by_login=bool(provider.oauth))


def _overridden(entry: KimiModel, env: Mapping[str, str]) -> KimiModel:
    size, said = env.get("KIMI_MODEL_MAX_CONTEXT_SIZE", ""), env.get("KIMI_MODEL_CAPABILITIES", "")
    return replace(
        entry,
        model=env.get("KIMI_MODEL_NAME") or entry.model,
        max_context_size=int(size) if size.isdecimal() else entry.max_context_size,
        capabilities=tuple(word.strip().lower() for word in said.split(",") if word.strip()) or entry.capabilities,
    )


def _settings(kimi: KimiConfig, provider: KimiProvider, env: Mapping[str, str]) -> ProviderSettings:
    address, key = _NAMES.get(provider.type, ("", ""))
    attempts = kimi.loop_control.max_retries_per_step
    return ProviderSettings(
        KINDS[provider.type],
        base_url=env.get(address) or provider.base_url,
        api_key=env.get(key) or provider.api_key,
        headers=dict(provider.custom_headers or {}),
        # Kimi counts the first attempt too.
        max_retries=ProviderSettings(ProviderKind.SCRIPTED).max_retries if attempts is None else max(0, attempts - 1),
        script=os.path.expanduser(env.get(SCRIPTS, "")) if provider.type == "_scripted_echo" else "",
    )


def _model(kimi: KimiConfig, entry: KimiModel, kind: ProviderKind, *, thinking: bool | None) -> ModelSettings:
    able = {*(entry.capabilities or ()), *_BY_NAME.get(entry.model, ())}
    thinks = kimi.default_thinking if thinking is None else thinking
    return ModelSettings(
        context_window=entry.max_context_size or None,
        vision="image_in" in able,
        # Kimi has no word for sound: it gives it to any model whose wire has a form for it, and so it is here.
        audio=kind in (ProviderKind.OPENAI_CHAT, ProviderKind.SCRIPTED),
        video="video_in" in able,
        reasoning="always_thinking" in able or ("thinking" in able and thinks),
    )


def _text_of(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise Invalid(f"{path} cannot be read: {why}.", next_step="Name another file with --config-file.") from None


def _document(text: str, name: str) -> dict[str, Any]:
    """JSON where it begins like that, else TOML; the mistake is told for what it looks like."""
    if text.lstrip().startswith("{"):
        try:
            return msgspec.json.decode(text.encode(), type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise Invalid(f"{name} is not JSON: {error}.", next_step="Correct that place.") from None
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Invalid(f"{name} is neither JSON nor TOML: {error}.", next_step="Correct that place.") from None
