"""The three wires over HTTP, pointed at a fake model server, with waits small enough for tests."""

from __future__ import annotations

from typing import Any

from quintet.domain.model import ModelInfo
from quintet.providers.attempts import Pace
from quintet.providers.http import HttpProvider
from quintet.providers.settings import ProviderKind, ProviderSettings
from quintet.providers.table import dialect_of
from tests.fakes.model_server import ModelServer

WIRES = (ProviderKind.OPENAI_CHAT, ProviderKind.OPENAI_RESPONSES, ProviderKind.ANTHROPIC)
KEY = "a-key-of-no-known-shape"
RETRIES = 2


def wire(
    server: ModelServer | str, kind: ProviderKind, *, model: ModelInfo | None = None, **settings: Any
) -> HttpProvider:
    """A provider; whatever waits in it waits a moment only."""
    url = server if isinstance(server, str) else server.url
    given = {"timeout_s": 5.0, "idle_timeout_s": 5.0, "max_retries": RETRIES} | settings
    said = ProviderSettings(kind, url, **given)
    return HttpProvider("far", dialect_of(kind), said, KEY, lambda _: model or ModelInfo("far/m"), Pace(first_s=0.001))


# How the fake server names its answers.
NAMED = {
    ProviderKind.OPENAI_CHAT: "chatcmpl-1",
    ProviderKind.OPENAI_RESPONSES: "resp_1",
    ProviderKind.ANTHROPIC: "msg_1",
}
