"""The three wires over HTTP, pointed at a fake model server, with waits small enough for tests."""

from __future__ import annotations

from typing import Any

from quintet.providers.attempts import Pace
from quintet.providers.http import HttpProvider
from quintet.providers.settings import ModelSettings, ProviderKind, ProviderSettings
from quintet.providers.table import dialect_of
from tests.fakes.model_server import ModelServer

WIRES = (ProviderKind.OPENAI_CHAT, ProviderKind.OPENAI_RESPONSES, ProviderKind.ANTHROPIC)
KEY = "a-key-of-no-known-shape"
RETRIES = 2


def wire(
    server: ModelServer | str, kind: ProviderKind, *, model: ModelSettings | None = None, **settings: Any
) -> HttpProvider:
    """A provider; whatever waits in it waits a moment only."""
    url = server if isinstance(server, str) else server.url
    given = {"timeout_s": 5.0, "idle_timeout_s": 5.0, "max_retries": RETRIES} | settings
    models = {"model": model or ModelSettings(), "m": model or ModelSettings()}
    return HttpProvider("far", dialect_of(kind), ProviderSettings(kind, url, **given), KEY, models, Pace(first_s=0.001))
