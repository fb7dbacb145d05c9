"""The table of models: from "provider/model" to the provider that serves it. Knows settings as plain values, not the
file they came from, and opens no connection.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

import msgspec

from quintet.domain.errors import Invalid, NotConfigured
from quintet.domain.model import ModelInfo
from quintet.domain.ports import Provider
from quintet.providers.dialect import Dialect
from quintet.providers.offline import OfflineProvider
from quintet.providers.script import parse_script
from quintet.providers.scripted import ScriptedProvider
from quintet.providers.settings import ModelSettings, ProviderKind, ProviderSettings

OFFLINE = "offline/offline"
# Providers that are one thing whatever the model is called, so their name alone is a full reference too.
_NAMELESS = (ProviderKind.OFFLINE, ProviderKind.SCRIPTED)
DEFAULT_URLS = {
    ProviderKind.OPENAI_CHAT: "https://api.openai.com/v1",
    ProviderKind.OPENAI_RESPONSES: "https://api.openai.com/v1",
    ProviderKind.ANTHROPIC: "https://api.anthropic.com/v1",
}


def _usual(environment: Mapping[str, str]) -> dict[str, ProviderSettings]:
    """Providers that the usual variables make known without any file."""
    found: dict[str, ProviderSettings] = {}
    if environment.get("OPENAI_API_KEY") or environment.get("OPENAI_BASE_URL"):
        named = "OPENAI_API_KEY" if environment.get("OPENAI_API_KEY") else ""
        url = environment.get("OPENAI_BASE_URL", "")
        # Servers that only imitate OpenAI speak the older of its two wires.
        kind = ProviderKind.OPENAI_CHAT if url else ProviderKind.OPENAI_RESPONSES
        found["openai"] = ProviderSettings(kind, base_url=url, api_key_env=named)
    if environment.get("ANTHROPIC_API_KEY"):
        found["anthropic"] = ProviderSettings(ProviderKind.ANTHROPIC, api_key_env="ANTHROPIC_API_KEY")
    if environment.get("OPENROUTER_API_KEY"):
        url = "https://openrouter.ai/api/v1"
        found["openrouter"] = ProviderSettings(ProviderKind.OPENAI_CHAT, base_url=url, api_key_env="OPENROUTER_API_KEY")
    return found


def dialect_of(kind: ProviderKind) -> Dialect:
    from quintet.providers.anthropic import Anthropic
    from quintet.providers.openai_chat import OpenAIChat
    from quintet.providers.openai_responses import OpenAIResponses

    dialects: dict[ProviderKind, Dialect] = {
        ProviderKind.OPENAI_CHAT: OpenAIChat(),
        ProviderKind.OPENAI_RESPONSES: OpenAIResponses(),
        ProviderKind.ANTHROPIC: Anthropic(),
    }
    return dialects[kind]


class ModelTable:
    """Resolves references; a provider is made at its first use and kept. Plays domain.ports.Models."""

    def __init__(
        self,
        providers: Mapping[str, ProviderSettings] | None = None,
        models: Mapping[str, ModelSettings] | None = None,
        *,
        default_model: str = "",
        environment: Mapping[str, str] | None = None,
        directory: str = "",
        stored_key: Callable[[str], str] = lambda name: "",
    ) -> None:
        self._environment = environment or {}
        self._stored_key = stored_key
        offline = {"offline": ProviderSettings(ProviderKind.OFFLINE)}
        self._settings = offline | _usual(self._environment) | dict(providers or {})
        self._models = dict(models or {})
        self._default = self._environment.get("QUINTET_MODEL", "").strip() or default_model or OFFLINE
        self._directory = directory  # relative script paths start here
        self._made: dict[str, Provider] = {}

    def resolve(self, reference: str) -> tuple[str, Provider]:
        wanted = reference.strip() or self._default
        name, slash, model = wanted.partition("/")
        settings = self._settings.get(name)
        if settings is None:
            raise self._unknown(wanted, f"there is no provider named {name!r}")
        if not slash and settings.kind in _NAMELESS:
            model = settings.kind.value
        if not model:
            raise self._unknown(wanted, "a model is named provider/model")
        if name not in self._made:
            self._made[name] = self._make(wanted, name, settings)
        return f"{name}/{model}", self._made[name]

    def info(self, reference: str) -> ModelInfo:
        given = self._models.get(reference, ModelSettings())
        fallback = (given.fallback,) if isinstance(given.fallback, str) else given.fallback
        return ModelInfo(
            reference,
            given.context_window,
            given.max_output,
            given.vision,
            given.reasoning,
            given.input_price,
            given.output_price,
            fallback=fallback,
        )

    def references(self) -> tuple[str, ...]:
        """The models that would work now."""
        nameless = [f"{name}/{s.kind}" for name, s in self._settings.items() if s.kind in _NAMELESS]
        named = [m for m in self._models if self._works(m.partition("/")[0])]
        return tuple(dict.fromkeys([*named, *nameless]))

    async def close(self) -> None:
        """Let go of every connection; a provider that is used again opens its own anew."""
        for provider in self._made.values():
            close = getattr(provider, "close", None)
            if close is not None:
                await close()

    def _works(self, provider: str) -> bool:
        settings = self._settings.get(provider)
        if settings is None:
            return False
        return settings.kind in _NAMELESS or not self._lacks(provider, settings)

    def _lacks(self, name: str, settings: ProviderSettings) -> str:
        """What a provider over HTTP still needs, in words; nothing if it can be tried."""
        url = settings.base_url or DEFAULT_URLS.get(settings.kind, "")
        if not url.startswith(("http://", "https://")):
            return f"[providers.{name}] needs a base_url that begins with http:// or https://"
        key = self._key(name, settings)
        if not key and settings.api_key_env:
            return f"the variable {settings.api_key_env} is not set"
        if not key and not settings.base_url:
            return f"[providers.{name}] has no key; name the variable that holds it as api_key_env"
        if not (key.isascii() and key.isprintable()):
            return f"the key of {name} holds characters that no key has"
        return ""

    def _make(self, wanted: str, name: str, settings: ProviderSettings) -> Provider:
        match settings.kind:
            case ProviderKind.OFFLINE:
                return OfflineProvider()
            case ProviderKind.SCRIPTED:
                return self._scripted(wanted, name, settings)
            case _:
                return self._over_http(wanted, name, settings)

    def _over_http(self, wanted: str, name: str, settings: ProviderSettings) -> Provider:
        from quintet.providers.http import HttpProvider

        if lacks := self._lacks(name, settings):
            raise self._unknown(wanted, lacks)
        prefix = f"{name}/"
        models = {m.removeprefix(prefix): s for m, s in self._models.items() if m.startswith(prefix)}
        url = settings.base_url or DEFAULT_URLS[settings.kind]
        key, settings = self._key(name, settings), msgspec.structs.replace(settings, base_url=url)
        return HttpProvider(name, dialect_of(settings.kind), settings, key, models)

    def _key(self, name: str, settings: ProviderSettings) -> str:
        """The key itself, the variable that is named, what is stored: the first there is."""
        named = self._environment.get(settings.api_key_env, "") if settings.api_key_env else ""
        return settings.api_key.strip() or named.strip() or self._stored_key(name).strip()

    def _scripted(self, wanted: str, name: str, settings: ProviderSettings) -> Provider:
        if not settings.script:
            raise self._unknown(wanted, f"[providers.{name}] names no script")
        path = os.path.join(self._directory, os.path.expanduser(settings.script))
        try:
            with open(path, encoding="utf-8") as file:
                script = parse_script(file.read(), path)
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise self._unknown(wanted, f"its script {path} cannot be read: {reason}") from error
        except Invalid as error:
            raise self._unknown(wanted, error.message.rstrip(".")) from error
        return ScriptedProvider(script, directory=os.path.dirname(path))

    def _unknown(self, wanted: str, why: str) -> NotConfigured:
        usable = self.references()
        return NotConfigured(
            f"The model {wanted!r} cannot be used: {why}. Models that would work: {', '.join(usable)}.",
            model=wanted,
            usable=list(usable),
        )
