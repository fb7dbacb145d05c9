"""Kward's own files, as a process that serves Kward's clients reads them: config.json, auth.json and its variables.

Gives providers and a model in our words. Where they say nothing of a model, config.toml does.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import msgspec

from quintet.config import Config
from quintet.providers.settings import ModelSettings, ProviderKind, ProviderSettings

CODEX, OPENROUTER = "Codex", "OpenRouter"  # the names of Kward's own two
OPENROUTER_USUAL = "openai/gpt-5.5"
EFFORT = "medium"
_WORDS = {CODEX: "codex", OPENROUTER: "openrouter", "Copilot": "copilot"}  # as config.json spells a provider
_LABELS = {"codex": CODEX, "openai": CODEX, "openrouter": OPENROUTER, "copilot": "Copilot"}
_PREFIXES = {
    CODEX: "openai",
    OPENROUTER: "openrouter",
    "Copilot": "copilot",
}  # of the keys and variables that are about one


class Addresses(msgspec.Struct, frozen=True):
    """Where Kward's two are. No file says otherwise: a key goes to its vendor and nowhere else."""

    codex: str = "https://chatgpt.com/backend-api/codex"
    openrouter: str = "https://openrouter.ai/api/v1"


class KwardFiles(msgspec.Struct, frozen=True):
    config: str
    auth: str

    @property
    def directory(self) -> str:
        return os.path.dirname(self.config)


def kward_files(environment: Mapping[str, str]) -> KwardFiles:
    def path(name: str, usual: str) -> str:
        return os.path.abspath(os.path.expanduser(environment.get(name) or usual))

    return KwardFiles(path("KWARD_CONFIG_PATH", "~/.kward/config.json"), path("KWARD_AUTH_PATH", "~/.kward/auth.json"))


def label(provider: str) -> str:
    """The provider's name as clients see it, from whatever somebody calls it."""
    return _LABELS.get(provider.strip().lower(), provider.strip())


def word(provider: str) -> str:
    return _WORDS.get(provider, provider)


def model_key(provider: str) -> str:
    return f"{_PREFIXES.get(provider, provider)}_model"


def effort_key(provider: str) -> str:
    return f"{_PREFIXES.get(provider, provider)}_reasoning_effort"


def effort_of(settings: Mapping[str, Any], environment: Mapping[str, str], provider: str) -> str:
    """What was said of this provider, else of all, else what is usual for Kward's own two."""
    said = environment.get(f"{_PREFIXES.get(provider, provider).upper()}_REASONING_EFFORT", "").strip()
    keys = (effort_key(provider), "reasoning_effort", "thinking_level")
    return said or _first(settings, *keys) or (EFFORT if provider in _WORDS else "")


def chosen(settings: Mapping[str, Any], auth: Mapping[str, Any], environment: Mapping[str, str], config: Config) -> str:
    """`provider/model`; nothing where neither Kward's files nor its variables choose one."""
    provider = label(environment.get("KWARD_PROVIDER", "").strip() or _first(settings, "provider"))
    if not provider and not (config.default_model or environment.get("QUINTET_MODEL")):
        provider = next(iter(_usable(settings, auth, environment)), "")
    model = model_for(settings, environment, provider) if provider else ""
    return f"{provider}/{model}" if model else ""


def _usable(settings: Mapping[str, Any], auth: Mapping[str, Any], environment: Mapping[str, str]) -> list[str]:
    """Which of the two there is a key for."""
    codex = _login(auth)[0] or environment.get("OPENAI_ACCESS_TOKEN")
    router = _first(settings, "openrouter_api_key") or environment.get("OPENROUTER_API_KEY")
    return [name for name, key in ((CODEX, codex), (OPENROUTER, router)) if key]


def model_for(settings: Mapping[str, Any], environment: Mapping[str, str], provider: str) -> str:
    said = environment.get(f"{_PREFIXES.get(provider, provider).upper()}_MODEL", "").strip()
    return said or _first(settings, model_key(provider), "model") or _usual(provider)


def with_kward(
    config: Config,
    settings: Mapping[str, Any],
    auth: Mapping[str, Any],
    environment: Mapping[str, str],
    at: Addresses | None = None,
) -> Config:
    """Ours with Kward's two providers and its choice of a model."""
    at = at or Addresses()
    token, account = _login(auth)
    headers = {"chatgpt-account-id": account} if account else {}
    kind, router = ProviderKind.OPENAI_RESPONSES, ProviderKind.OPENAI_CHAT
    providers = dict(config.providers) | {
        CODEX: ProviderSettings(kind, at.codex, token, "OPENAI_ACCESS_TOKEN", headers),
        OPENROUTER: ProviderSettings(
            router, at.openrouter, _first(settings, "openrouter_api_key"), "OPENROUTER_API_KEY"
        ),
    }
    models = dict(config.models)
    if CODEX in _usable(settings, auth, environment):
        models |= {f"{CODEX}/{model}": known for model, known in _codex_models().items()}
    reference = chosen(settings, auth, environment, config) or config.default_model
    return msgspec.structs.replace(config, providers=providers, models=models, default_model=reference)


def _login(auth: Mapping[str, Any]) -> tuple[str, str]:
    """(access token, account)."""
    tokens = auth.get("tokens")
    tokens = tokens if isinstance(tokens, dict) else {}
    return _first(tokens, "access_token"), _first(auth, "account_id") or _first(tokens, "account_id")


def _codex_models() -> dict[str, ModelSettings]:
    """The same models as at OpenAI's own address, so what is known of those holds; the subscription has no price."""
    from quintet.providers.catalog import known, of_host
    from quintet.providers.well_known import DEFAULT_URLS

    url = DEFAULT_URLS[ProviderKind.OPENAI_RESPONSES]
    found = {model: known(url, model) for model in of_host(url)}
    return {
        model: ModelSettings(entry.context_window, entry.max_output, entry.vision, entry.reasoning)
        for model, row in found.items()
        if row is not None and (entry := row.entry)
    }


def _usual(provider: str) -> str:
    if provider == CODEX:
        return next(iter(_codex_models()), "")
    return OPENROUTER_USUAL if provider == OPENROUTER else ""


def _first(table: Mapping[str, Any], *keys: str) -> str:
    return next((v.strip() for k in keys if isinstance(v := table.get(k), str) and v.strip()), "")
