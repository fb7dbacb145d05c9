"""What a person should know of Kimi's configuration as it is read here: lines for the log.

Changes nothing and opens nothing; a client is told no more than Kimi itself would tell it.
"""

from __future__ import annotations

from quintet.config.kimi import Chosen, KimiConfig
from quintet.protocols.wire.errors import UNSET as NO_MODEL


def notes_of(kimi: KimiConfig | None, chosen: Chosen, model: str = "") -> list[str]:
    """`model`: the one that was named at the start."""
    return [*_logins(kimi), *_unset(kimi, chosen, model or kimi.default_model)] if kimi else []


def _logins(kimi: KimiConfig) -> list[str]:
    """Providers that Kimi logs in to by itself."""
    return [
        f"Kimi's provider {name} logs in with OAuth, which is not done here: its api_key is used"
        + ("." if provider.api_key else ", and there is none. Give it one, or set KIMI_API_KEY.")
        for name, provider in kimi.providers.items()
        if provider.oauth
    ]


def _unset(kimi: KimiConfig, chosen: Chosen, alias: str) -> list[str]:
    """Its clients hear `LLM is not set`, which says nothing of where to look."""
    if chosen.reference != NO_MODEL or chosen.unsupported:
        return []
    if not alias:
        why = "names no default_model"
    elif (entry := kimi.models.get(alias)) is None:
        why = f"has no model {alias!r}, only: {', '.join(kimi.models) or '(none)'}"
    elif entry.provider not in kimi.providers:
        why = f"has no provider {entry.provider!r}, which its model {alias!r} names"
    else:
        why = f"says too little of {alias!r}: it needs a model, and its provider a base_url"
    return [f"No model is set: Kimi's configuration {why}. Correct it there, or name another one with --model."]
