"""The table of models: from "provider/model" to the provider that serves it. Knows settings as plain values, not the
file they came from, and opens no connection.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from quintet.domain.errors import Invalid, NotConfigured
from quintet.domain.model import ModelInfo
from quintet.domain.ports import Provider
from quintet.providers.catalog import Entry, Known, known, of_host, thoughts_in_limit
from quintet.providers.dialect import Dialect
from quintet.providers.echo import EchoProvider, scripts_in
from quintet.providers.keys import Keys, KeySource, NothingStored, StoredKeys
from quintet.providers.offline import OfflineProvider
from quintet.providers.script import parse_script
from quintet.providers.scripted import ScriptedProvider
from quintet.providers.settings import ModelSettings, ProviderKind, ProviderSettings
from quintet.providers.well_known import WELL_KNOWN, found_providers, with_address

if TYPE_CHECKING:
    from quintet.providers.http import HttpProvider
    from quintet.providers.model_list import Reached

OFFLINE = "offline/offline"
# Providers that are one thing whatever the model is called, so their name alone is a full reference too.
_NAMELESS = (ProviderKind.OFFLINE, ProviderKind.SCRIPTED)


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
        stored: StoredKeys | None = None,
    ) -> None:
        self._environment = environment or {}
        stored = stored or NothingStored()
        self._keys = Keys(self._environment, stored)
        offline = {"offline": ProviderSettings(ProviderKind.OFFLINE)}
        self._settings = offline | found_providers(self._environment, stored.names()) | dict(providers or {})
        self._models = dict(models or {})
        self._default = self._environment.get("QUINTET_MODEL", "").strip() or default_model or OFFLINE
        self._directory = directory  # relative script paths start here
        self._made: dict[str, Provider] = {}

    def resolve(self, reference: str) -> tuple[str, Provider]:
        wanted = reference.strip() or self._default
        name, slash, model = wanted.partition("/")
        settings = self._settings.get(name)
        if settings is None and name in WELL_KNOWN:
            raise self._unknown(wanted, f"{name} needs {self.lacks(name)}")
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
        """What is known: what was said of it, else what the catalog says; None where neither does."""
        given, found = self._models.get(reference, ModelSettings()), self._known(reference)
        entry = found.entry if found else Entry(())
        free = 0.0 if self._is_free(reference) else None
        fallback = (given.fallback,) if isinstance(given.fallback, str) else given.fallback
        return ModelInfo(
            reference,
            context_window=_first(given.context_window, entry.context_window),
            max_output=_first(given.max_output, entry.max_output),
            vision=_first(given.vision, entry.vision),
            reasoning=_first(given.reasoning, entry.reasoning),
            input_price=_first(given.input_price, entry.input_price, free),
            output_price=_first(given.output_price, entry.output_price, free),
            cached_price=_first(given.cached_price, _of_same(given, entry.cached_price)),
            cache_write_price=_first(given.cache_write_price, _of_same(given, entry.cache_write_price)),
            as_of=found.as_of if found else "",
            price_reported=entry.seen == "reported" and None in (given.input_price, given.output_price),
            thoughts_in_limit=_first(given.thoughts_in_limit, self._thoughts_in_limit(reference)),
            summarises=self._kind(reference) is not ProviderKind.OFFLINE,
            fallback=fallback,
            audio=self._carries_media(reference) and _first(given.audio, entry.audio),
            video=self._carries_media(reference) and _first(given.video, entry.video),
        )

    @property
    def default(self) -> str:
        """The reference that is meant when none is given; it may still not work."""
        name, slash, _ = self._default.partition("/")
        settings = self._settings.get(name)
        bare = not slash and settings is not None and settings.kind in _NAMELESS
        return f"{name}/{settings.kind.value}" if bare and settings else self._default

    def references(self) -> tuple[str, ...]:
        """The models that would work now and are known by name."""
        nameless = [f"{name}/{s.kind}" for name, s in self._settings.items() if s.kind in _NAMELESS]
        named = [m for m in self._models if self._works(m.partition("/")[0])]
        return tuple(dict.fromkeys([*named, *nameless]))

    def providers(self) -> dict[str, ProviderSettings]:
        """Every provider there is, and behind them those that only lack a key."""
        return self._settings | {name: s for name, s in WELL_KNOWN.items() if name not in self._settings}

    def models_of(self, provider: str) -> tuple[str, ...]:
        """The references of a provider's models that are known by name: said, usual, or of its vendor."""
        settings = self.providers()[provider]
        if settings.kind in _NAMELESS:
            return (f"{provider}/{settings.kind.value}",)
        said = [m for m in (self.default, *self._models) if m.startswith(f"{provider}/")]
        return tuple(dict.fromkeys([*said, *(f"{provider}/{m}" for m in of_host(with_address(settings).base_url))]))

    def key_sources(self, provider: str) -> tuple[KeySource, ...]:
        return self._keys.sources(provider, self.providers()[provider])

    def lacks(self, provider: str) -> str:
        """What a provider still needs, in words; nothing if it can be tried."""
        settings = self.providers()[provider]
        if provider not in self._settings:
            return f"a key: set {settings.api_key_env} or run `quintet auth set {provider}`"
        return "" if settings.kind in _NAMELESS else self._lacks(provider, settings)

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
        """What a provider over HTTP still needs, in words. Whether its key can be opened is seen at its first use."""
        if not with_address(settings).base_url.startswith(("http://", "https://")):
            return f"[providers.{name}] needs a base_url that begins with http:// or https://"
        if self._keys.sources(name, settings):
            return ""
        if settings.api_key_env:
            return f"the variable {settings.api_key_env} is not set, and no key is stored for {name}"
        if not settings.base_url:
            return f"[providers.{name}] has no key; name the variable that holds it as api_key_env, or store one"
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
        if lacks := self._lacks(name, settings) or self._keys.problem(name, settings):
            raise self._unknown(wanted, lacks)
        return self.with_key(name, self._keys.value(name, settings))

    def with_key(self, name: str, key: str) -> HttpProvider:
        """The provider as it is with this key."""
        from quintet.providers.http import HttpProvider

        settings = with_address(self.providers()[name])
        return HttpProvider(name, dialect_of(settings.kind), settings, key, lambda model: self._sent(f"{name}/{model}"))

    def reaching(self, name: str) -> Reached:
        """Where a provider is asked about itself, also one that only lacks a key."""
        from quintet.providers.model_list import Reached

        settings = with_address(self.providers()[name])
        return Reached(settings, self._keys.value(name, settings))

    def _sent(self, reference: str) -> ModelInfo:
        """What a request is made by. A vendor's largest output is asked for only on the wire that demands a number:
        elsewhere it would be reserved, and billed or refused in advance."""
        info, given = self.info(reference), self._models.get(reference, ModelSettings())
        demanded = self.providers()[reference.partition("/")[0]].kind is ProviderKind.ANTHROPIC
        return info if demanded else msgspec.structs.replace(info, max_output=given.max_output)

    def _known(self, reference: str) -> Known | None:
        name, _, model = reference.partition("/")
        settings = self.providers().get(name)
        return known(with_address(settings).base_url, model) if settings else None

    def _thoughts_in_limit(self, reference: str) -> bool:
        name, _, model = reference.partition("/")
        settings = self.providers().get(name)
        return settings is not None and thoughts_in_limit(with_address(settings).base_url, model)

    def _carries_media(self, reference: str) -> bool:
        """Whether sound and videos have a form on the provider's wire; images have one on each."""
        return self._kind(reference) in (ProviderKind.OPENAI_CHAT, ProviderKind.SCRIPTED)

    def _is_free(self, reference: str) -> bool:
        return self._kind(reference) in _NAMELESS

    def _kind(self, reference: str) -> ProviderKind | None:
        settings = self._settings.get(reference.partition("/")[0])
        return settings.kind if settings else None

    def _scripted(self, wanted: str, name: str, settings: ProviderSettings) -> Provider:
        if not settings.script:
            raise self._unknown(wanted, f"[providers.{name}] names no script")
        path = os.path.join(self._directory, os.path.expanduser(settings.script))
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
            if (answers := scripts_in(text)) is not None:
                return EchoProvider(name, answers, max_retries=settings.max_retries)
            script = parse_script(text, path)
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


def _first(*values: Any) -> Any:
    """The first that says anything; False and 0 do."""
    return next((value for value in values if value is not None), None)


def _of_same(given: ModelSettings, price: float | None) -> float | None:
    """Prices of the cache belong to a price of input: they do not go with one that somebody wrote himself."""
    return price if given.input_price is None else None
