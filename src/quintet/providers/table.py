"""The table of models: from "provider/model" to the provider that serves it. Knows settings as plain values, not the
file they came from, and opens no connection.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from quintet.domain.errors import Invalid, NotConfigured
from quintet.domain.model import ModelInfo
from quintet.domain.ports import Provider
from quintet.providers.offline import OfflineProvider
from quintet.providers.script import parse_script
from quintet.providers.scripted import ScriptedProvider
from quintet.providers.settings import ModelSettings, ProviderKind, ProviderSettings

OFFLINE = "offline/offline"
# Providers that are one thing whatever the model is called, so their name alone is a full reference too.
_NAMELESS = (ProviderKind.OFFLINE, ProviderKind.SCRIPTED)


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
    ) -> None:
        offline = {"offline": ProviderSettings(ProviderKind.OFFLINE)}
        self._settings = offline | dict(providers or {})
        self._models = dict(models or {})
        self._default = (environment or {}).get("QUINTET_MODEL", "").strip() or default_model or OFFLINE
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

    def _works(self, provider: str) -> bool:
        settings = self._settings.get(provider)
        return settings is not None and settings.kind in _NAMELESS

    def _make(self, wanted: str, name: str, settings: ProviderSettings) -> Provider:
        match settings.kind:
            case ProviderKind.OFFLINE:
                return OfflineProvider()
            case ProviderKind.SCRIPTED:
                return self._scripted(wanted, name, settings)
            case kind:
                raise self._unknown(wanted, f"this version of Quintet cannot speak {kind} yet")

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
