"""Kward's models: which one its config.json chooses, which there are, and how that is changed. Part of the composition
root; plays the protocol's port for it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from quintet.app import App
from quintet.config import Config
from quintet.config.kward import (
    CODEX,
    OPENROUTER,
    Addresses,
    effort_key,
    effort_of,
    label,
    model_for,
    model_key,
    with_kward,
    word,
)
from quintet.domain.errors import Invalid, QuintetError
from quintet.domain.model import ModelInfo
from quintet.providers.settings import ProviderKind
from quintet.workspace.settings_file import SettingsFile

if TYPE_CHECKING:
    from quintet.protocols.kward import models as wire
    from quintet.providers.model_list import Listed

WITHIN_S = 5.0  # for a provider's list of models


class KwardModels:
    def __init__(
        self,
        app: App,
        settings: SettingsFile,
        auth: SettingsFile,
        environment: Mapping[str, str],
        at: Addresses | None = None,
    ) -> None:
        self._app, self._settings, self._auth, self._environment = app, settings, auth, environment
        self._at = at or Addresses()
        self._seen: tuple[Any, ...] | None = None
        app.configured = self._config

    # --- which one ---------------------------------------------------------------------------------------------------
    def reference(self) -> str:
        """`provider/model` of the next turn."""
        self._look()
        return self._app.models.default

    def current(self) -> wire.Model:
        reference = self.reference()
        from quintet.protocols.kward.models import model_of

        return model_of(reference, self.info(reference), current=True, effort=self.effort())

    def effort(self) -> str:
        provider = self.reference().partition("/")[0]
        return effort_of(self._said(self._settings), self._environment, provider)

    def info(self, reference: str) -> ModelInfo | None:
        try:
            return self._app.models.info(reference)
        except QuintetError:
            return None

    async def reload(self) -> None:
        """Whatever the files say now counts from the next turn on."""
        self._look()

    def _look(self) -> None:
        said = (self._said(self._settings), self._said(self._auth))
        if said != self._seen:
            self._seen = said
            self._app.forget_models()

    async def set_model(self, provider: str, model: str) -> None:
        """Without a provider the active one's; what is set for others stays."""
        active = self._meant(provider)
        values = {model_key(active): model, "provider": word(active)}
        await self._settings.change(lambda now: now | values)
        self._look()

    async def set_effort(self, effort: str, provider: str = "") -> None:
        active = self._meant(provider)
        await self._settings.change(lambda now: now | {effort_key(active): effort})

    def _meant(self, provider: str) -> str:
        """The active one where none is named. One that does not exist would fail every turn from now on."""
        active = self.reference().partition("/")[0]
        named = label(provider) or active
        if named != active and named not in self._app.models.providers():
            from quintet.protocols.kward.errors import Failed

            raise Failed(f"Unsupported provider: {provider}")
        return named

    # --- which there are ---------------------------------------------------------------------------------------------
    async def references(self) -> list[tuple[str, ModelInfo | None, str]]:
        """(reference, what is known, its name for people): of every provider that could be asked now."""
        current, table = self.reference(), self._app.models
        found: dict[str, tuple[str, ModelInfo | None, str]] = {}
        for provider, settings in table.providers().items():
            if table.lacks(provider) or settings.kind is ProviderKind.OFFLINE:
                continue
            listed = await self._listed(provider) if provider == OPENROUTER else []
            for row in listed:
                reference = f"{provider}/{row.id}"
                found[reference] = reference, _with(self.info(reference), reference, row), row.name
            for reference in () if listed else self._usual(provider):
                found.setdefault(reference, (reference, self.info(reference), reference.partition("/")[2]))
        found.setdefault(current, (current, self.info(current), current.partition("/")[2]))
        return list(found.values())

    def _usual(self, provider: str) -> Sequence[str]:
        known = self._app.models.models_of(provider)
        if provider in (CODEX, OPENROUTER):
            said = model_for(self._said(self._settings), self._environment, provider)
            return tuple(dict.fromkeys((*known, *([f"{provider}/{said}"] if said else []))))
        return known

    async def _listed(self, provider: str, *, own: bool = True) -> list[Listed]:
        """What the provider lists; nothing where it cannot be asked: then what is known anyway is told."""
        from quintet.providers.model_list import listed

        with contextlib.suppress(QuintetError, TimeoutError):
            async with asyncio.timeout(WITHIN_S):
                return await listed(self._app.models.reaching(provider), own=own)
        return []

    async def catalog(self) -> list[tuple[str, ModelInfo | None, str]]:
        """Everything OpenRouter lists, whether the key may use it or not; it can be asked without one."""
        self._look()
        rows = await self._listed(OPENROUTER, own=False)
        names = [(f"{OPENROUTER}/{row.id}", row) for row in rows]
        return [(reference, _with(self.info(reference), reference, row), row.name) for reference, row in names]

    # --- small things ------------------------------------------------------------------------------------------------
    def _config(self) -> Config:
        said = self._said(self._settings), self._said(self._auth)
        return with_kward(self._app.config, *said, self._environment, self._at)

    def _said(self, file: SettingsFile) -> dict[str, Any]:
        """Nothing where it cannot be understood: whoever reads the settings themselves is told."""
        try:
            return file.now()
        except (Invalid, OSError):
            return {}


def _with(info: ModelInfo | None, reference: str, row: Listed) -> ModelInfo:
    """What we know, and where we know nothing what the list says."""
    import msgspec

    known = info or ModelInfo(reference)
    window, reasoning = known.context_window or row.context_window, known.reasoning or row.reasoning
    return msgspec.structs.replace(known, context_window=window, reasoning=reasoning)
