"""What a person says about a provider and a model. Plain values; where they were written is not known here."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class ProviderKind(StrEnum):
    OPENAI_CHAT = "openai-chat"
    OPENAI_RESPONSES = "openai-responses"
    ANTHROPIC = "anthropic"
    OFFLINE = "offline"
    SCRIPTED = "scripted"


class ProviderSettings(msgspec.Struct, frozen=True):
    kind: ProviderKind
    base_url: str = ""
    api_key: str = ""
    api_key_env: str = ""
    headers: dict[str, str] = {}
    timeout_s: float = 600.0
    idle_timeout_s: float = 60.0
    max_retries: int = 3
    script: str = ""  # of a scripted provider: the path of its script

    def __repr__(self) -> str:
        # The key must not reach a log or an error by way of a printed struct.
        return f"ProviderSettings(kind={self.kind.value!r}, base_url={self.base_url!r})"


class ModelSettings(msgspec.Struct, frozen=True):
    context_window: int | None = None
    max_output: int | None = None
    vision: bool = False
    reasoning: bool = False
    input_price: float | None = None  # per million tokens
    output_price: float | None = None
    fallback: str | tuple[str, ...] = ()  # references to try in this order when it cannot answer
