"""Keys: where a provider's key comes from, and the key itself when it is to be used. Opens nothing it need not open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from quintet.domain.errors import Invalid, NotFound
from quintet.providers.settings import ProviderSettings


class KeySource(StrEnum):
    """In the order in which they count."""

    ENVIRONMENT = "environment"  # the variable that the settings name
    CONFIG = "config"  # written into the file
    STORED = "stored"  # by `quintet auth set`, under the provider's name


class StoredKeys(Protocol):
    def names(self) -> Sequence[str]: ...
    def get(self, name: str) -> str:
        """NotFound when there is none; Invalid when it cannot be opened."""


class NothingStored:
    def names(self) -> Sequence[str]:
        return ()

    def get(self, name: str) -> str:
        raise NotFound(f"No credential is stored as {name!r}.")


class Keys:
    def __init__(self, environment: Mapping[str, str], stored: StoredKeys) -> None:
        self._environment = environment
        self._stored = stored

    def sources(self, name: str, settings: ProviderSettings) -> tuple[KeySource, ...]:
        """Every place that has a key for this provider; the first is the one that counts."""
        found = []
        if self._variable(settings):
            found.append(KeySource.ENVIRONMENT)
        if settings.api_key.strip():
            found.append(KeySource.CONFIG)
        if name in self._stored.names():
            found.append(KeySource.STORED)
        return tuple(found)

    def value(self, name: str, settings: ProviderSettings) -> str:
        """The key that counts; nothing when there is none. Invalid when it is stored and cannot be opened."""
        match self.sources(name, settings)[:1]:
            case (KeySource.ENVIRONMENT,):
                return self._variable(settings)
            case (KeySource.CONFIG,):
                return settings.api_key.strip()
            case (KeySource.STORED,):
                return self._stored.get(name).strip()
        return ""

    def problem(self, name: str, settings: ProviderSettings) -> str:
        """Why the key that counts cannot be used, in words; nothing if it can, or if there is none."""
        try:
            key = self.value(name, settings)
        except (NotFound, Invalid) as error:
            return error.message.rstrip(".")
        except OSError as error:
            return f"its stored key cannot be read: {error.strerror}"
        if not (key.isascii() and key.isprintable()):
            return f"the key of {name} holds characters that no key has"
        return ""

    def _variable(self, settings: ProviderSettings) -> str:
        return self._environment.get(settings.api_key_env, "").strip() if settings.api_key_env else ""
