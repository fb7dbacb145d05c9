"""A provider's own list of its models, over HTTP: what a key may use, or everything there is."""

from __future__ import annotations

from typing import Any

import msgspec

from quintet.domain.errors import ProviderFailed
from quintet.providers.settings import ProviderSettings

MOST_BYTES = 16 * 1024 * 1024


class Listed(msgspec.Struct, frozen=True):
    id: str
    name: str
    context_window: int | None = None
    reasoning: bool = False


class Reached(msgspec.Struct, frozen=True):
    """A provider's address and the key that is sent there."""

    settings: ProviderSettings
    key: str


async def listed(provider: Reached, *, own: bool) -> list[Listed]:
    """`own`: only what the key may use, where the provider makes that difference. ProviderFailed when it cannot be
    asked, or answers something else than a list."""
    paths = ("/models/user", "/models") if own and provider.key else ("/models",)
    for path in paths:
        status, answer = await _get(provider.settings.base_url.rstrip("/") + path, provider.key)
        if status == 200:
            return _parsed(answer)
        if status != 404:  # there only the second path is known
            break
    raise ProviderFailed(f"It lists no models (status {status}).")


async def _get(url: str, key: str) -> tuple[int, bytes]:
    import httpx2

    headers = {"accept": "application/json", "user-agent": "quintet"}
    headers |= {"authorization": f"Bearer {key}"} if key else {}
    try:
        async with (
            httpx2.AsyncClient(follow_redirects=False, timeout=None) as client,
            client.stream("GET", url, headers=headers) as response,
        ):
            said = bytearray()
            async for piece in response.aiter_bytes():
                said += piece
                if len(said) > MOST_BYTES:
                    raise ProviderFailed("Its list of models is too long.")
            return response.status_code, bytes(said)
    except httpx2.LocalProtocolError:  # its words would quote the header
        raise ProviderFailed("Its key holds what no header may.") from None
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise ProviderFailed(f"It cannot be reached ({' '.join(str(error).split())[:200]}).") from None


def _parsed(answer: bytes) -> list[Listed]:
    try:
        rows: Any = msgspec.json.decode(answer)["data"]
        return [_row(row) for row in rows if isinstance(row.get("id"), str) and row["id"]]
    except (msgspec.DecodeError, KeyError, TypeError, AttributeError):
        raise ProviderFailed("What it sent is no list of models.") from None


def _row(row: dict[str, Any]) -> Listed:
    window, said = row.get("context_length"), row.get("supported_parameters")
    name = row.get("name")
    return Listed(
        row["id"],
        name if isinstance(name, str) and name else row["id"],
        window if isinstance(window, int) and window > 0 else None,
        isinstance(said, list) and "reasoning" in said,
    )
