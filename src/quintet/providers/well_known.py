"""Providers that need no table in a file: their address is known, only a key is missing. Plain data."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from quintet.providers.settings import ProviderKind, ProviderSettings

DEFAULT_URLS = {
    ProviderKind.OPENAI_CHAT: "https://api.openai.com/v1",
    ProviderKind.OPENAI_RESPONSES: "https://api.openai.com/v1",
    ProviderKind.ANTHROPIC: "https://api.anthropic.com/v1",
}
WELL_KNOWN = {
    "openai": ProviderSettings(ProviderKind.OPENAI_RESPONSES, api_key_env="OPENAI_API_KEY"),
    "anthropic": ProviderSettings(ProviderKind.ANTHROPIC, api_key_env="ANTHROPIC_API_KEY"),
    "openrouter": ProviderSettings(
        ProviderKind.OPENAI_CHAT, base_url="https://openrouter.ai/api/v1", api_key_env="OPENROUTER_API_KEY"
    ),
    "deepseek": ProviderSettings(
        ProviderKind.OPENAI_CHAT, base_url="https://api.deepseek.com/v1", api_key_env="DEEPSEEK_API_KEY"
    ),
    "moonshot": ProviderSettings(
        ProviderKind.OPENAI_CHAT, base_url="https://api.moonshot.ai/v1", api_key_env="MOONSHOT_API_KEY"
    ),
    "qwen": ProviderSettings(
        ProviderKind.OPENAI_CHAT,
        base_url="https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        api_key_env="DASHSCOPE_API_KEY",
    ),
}


def found_providers(environment: Mapping[str, str], stored: Collection[str]) -> dict[str, ProviderSettings]:
    """Providers that a usual variable or a stored key makes known without any file."""
    found: dict[str, ProviderSettings] = {}
    for name, settings in WELL_KNOWN.items():
        if environment.get(settings.api_key_env) or name in stored:
            found[name] = settings
    if url := environment.get("OPENAI_BASE_URL", ""):
        # Servers that only imitate OpenAI speak the older of its two wires, and many of them ask for no key.
        named = "OPENAI_API_KEY" if environment.get("OPENAI_API_KEY") else ""
        found["openai"] = ProviderSettings(ProviderKind.OPENAI_CHAT, base_url=url, api_key_env=named)
    return found


def with_address(settings: ProviderSettings) -> ProviderSettings:
    """The same, with the vendor's own address where none was said."""
    url = settings.base_url or DEFAULT_URLS.get(settings.kind, "")
    return msgspec.structs.replace(settings, base_url=url)
