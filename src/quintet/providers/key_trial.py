"""Whether a key is good: asked of the provider itself, with the cheapest question it answers only to a good key."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any
from urllib.parse import urlsplit

import msgspec

from quintet.domain.errors import ProviderFailed
from quintet.domain.item import Item, user_text
from quintet.domain.model import FinishChunk, ModelRequest, ReasoningChunk, TextChunk
from quintet.providers.http import HttpProvider

WITHIN_S = 20.0
MOST_BYTES = 8 * 1024 * 1024
# Lists of models that anybody may read say nothing of a key; these ask about the key itself.
_ABOUT_KEYS = {"openrouter.ai": "/key"}
_REFUSED = (401, 403)


class KeyTrial(msgspec.Struct, frozen=True):
    good: bool
    why: str = ""  # when it is not: in words
    models: tuple[str, ...] = ()  # that the key may use, where the provider tells


async def try_key(provider: HttpProvider, model: str, within_s: float = WITHIN_S) -> KeyTrial:
    """Ask for the list of models; where there is none, for one word of this model."""
    try:
        async with asyncio.timeout(within_s):
            status, answer = await _look(provider)
            if status in _REFUSED:
                return KeyTrial(good=False, why=f"it refuses the key (status {status})")
            if status == 200:
                return KeyTrial(good=True, models=_names(answer))
            if not model:
                return KeyTrial(good=False, why=f"it lists no models (status {status}), and none is known to ask")
            await _one_word(provider, model)
            return KeyTrial(good=True)
    except TimeoutError:
        return KeyTrial(good=False, why="it did not answer in time")
    except ProviderFailed as error:
        return KeyTrial(good=False, why=error.message.rstrip("."))


async def _look(provider: HttpProvider) -> tuple[int, bytes]:
    """The answer to the question, bounded. Only its status is ever repeated: some servers quote the key."""
    import httpx2

    path = _ABOUT_KEYS.get(urlsplit(provider.base_url).hostname or "", "/models")
    url = provider.base_url.rstrip("/") + path
    try:
        async with (
            httpx2.AsyncClient(follow_redirects=False, timeout=None) as client,
            client.stream("GET", url, headers=provider.headers() | {"accept": "application/json"}) as response,
        ):
            said = bytearray()
            async for piece in response.aiter_bytes():
                said += piece
                if len(said) > MOST_BYTES:
                    break
            return response.status_code, bytes(said)
    except httpx2.LocalProtocolError:  # its words would quote the header
        raise ProviderFailed("its key or one of its headers holds what no header may") from None
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise ProviderFailed(f"it cannot be reached ({' '.join(str(error).split())[:200]})") from None


async def _one_word(provider: HttpProvider, model: str) -> None:
    item = Item("itm_trial", "thr_trial", "trn_trial", 1, 0, user_text("Say yes."))
    request = ModelRequest(model.partition("/")[2], "", (item,), (), "thr_trial")
    async with aclosing(provider.stream(request)) as chunks:  # type: ignore[type-var]
        async for chunk in chunks:
            if isinstance(chunk, TextChunk | ReasoningChunk | FinishChunk):
                return  # it speaks: that is all that was asked
    raise ProviderFailed("it answered without a word")


def _names(answer: bytes) -> tuple[str, ...]:
    """As all of these servers list them; one that lists them otherwise tells nothing."""
    try:
        data: Any = msgspec.json.decode(answer)
        return tuple(str(entry["id"]) for entry in data["data"])
    except (msgspec.DecodeError, KeyError, TypeError, IndexError):
        return ()
