"""Searching through the one endpoint the person configured: four request shapes, one list of hits.

The key goes to that endpoint's origin, in a header, and nowhere else: no redirect is followed, and no error repeats
what was sent or what came back.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Callable
from html import unescape
from typing import Any
from urllib.parse import urlencode

import msgspec

from quintet.domain.errors import Invalid, QuintetError
from quintet.workspace.web.connecting import close, connect
from quintet.workspace.web.exchange import Answer, Request, exchange
from quintet.workspace.web.resolving import Resolve, Unreachable, resolved, system_resolve
from quintet.workspace.web.search_endpoint import endpoint
from quintet.workspace.web.search_settings import SearchSettings
from quintet.workspace.web.urls import WebUrl

TOTAL_S = 20.0
EXCERPT = 600
Headers = tuple[tuple[str, str], ...]


class Hit(msgspec.Struct, frozen=True):
    title: str
    url: str
    excerpt: str = ""
    date: str = ""


class Searcher:
    """`key` is asked at each search, so that a changed key counts at once. It may answer ""."""

    def __init__(
        self,
        settings: SearchSettings,
        key: Callable[[], str],
        *,
        resolve: Resolve = system_resolve,
        tls: ssl.SSLContext | None = None,
        total_s: float = TOTAL_S,
    ) -> None:
        self.settings = settings
        self.endpoint = endpoint(settings)
        self._key = key
        self._resolve = resolve
        self._tls = tls
        self._total_s = total_s

    async def search(self, query: str, count: int) -> list[Hit]:
        """Invalid when the settings cannot work, Unreachable when the endpoint does not answer well."""
        key = await asyncio.to_thread(self._checked_key)  # it may come from a file or a key store
        request = _REQUESTS[self.settings.provider](self.endpoint, query, count, key)
        try:
            async with asyncio.timeout(self._total_s):
                answer = await self._ask(request)
        except TimeoutError:
            raise Unreachable(f"{self.endpoint.authority} took longer than {self._total_s:g} s.") from None
        if answer.status != 200:
            raise Unreachable(self._refusal(answer.status))
        try:
            return _hits(self.settings.provider, msgspec.json.decode(answer.body))[:count]
        except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError, RecursionError):
            raise Unreachable(f"{self.endpoint.authority} did not answer as {self.settings.provider} does.") from None

    async def _ask(self, request: Request) -> Answer:
        url = request.url
        addresses = await resolved(url.host, self._resolve)
        tls = None
        if url.scheme == "https":
            tls = self._tls = self._tls or ssl.create_default_context()
        streams = await connect(addresses, url.port, shown=url.authority, tls=tls, name=url.host.bare)
        try:
            return await exchange(streams, request)
        finally:
            await close(streams[1])

    def _checked_key(self) -> str:
        try:
            key = self._key().strip()
        except QuintetError as error:
            raise Invalid(error.message, next_step=error.step) from None
        if not key and self.settings.keyed:
            raise Invalid(f"The search key is not there: {self._where()}.", next_step="Set it, then search again.")
        if not re.fullmatch(r"[!-~]*", key):
            raise Invalid(f"The search key holds letters no key has: {self._where()}.", next_step="Correct it.")
        return key

    def _where(self) -> str:
        if self.settings.credential:
            return f"the stored credential `{self.settings.credential}`"
        return f"the variable {self.settings.api_key_env}"

    def _refusal(self, status: int) -> str:
        where = self.endpoint.authority
        if status in (401, 403):
            if self.settings.keyed:
                return f"{where} refused the key ({status}): look at {self._where()}."
            return f"{where} refused the search ({status}); a SearXNG must allow the format json."
        if status == 429:
            return f"{where} allows no more searches now (429)."
        if 300 <= status < 400:
            return f"{where} sends on to another address ({status}), which a search does not follow: correct the url."
        return f"{where} failed with status {status}."


# --- what each of them wants ------------------------------------------------------------------------------------------
def _get(url: WebUrl, fields: dict[str, str], headers: Headers) -> Request:
    mark = "&" if "?" in url.target else "?"
    asked = msgspec.structs.replace(url, target=f"{url.target}{mark}{urlencode(fields)}")
    return Request(asked, headers=(("Accept", "application/json"), *headers))


def _post(url: WebUrl, body: dict[str, Any], headers: Headers) -> Request:
    kind = (("Accept", "application/json"), ("Content-Type", "application/json"))
    return Request(url, "POST", (*kind, *headers), msgspec.json.encode(body))


def _searxng(url: WebUrl, query: str, count: int, key: str) -> Request:
    return _get(url, {"q": query, "format": "json"}, (("Authorization", f"Bearer {key}"),) if key else ())


def _brave(url: WebUrl, query: str, count: int, key: str) -> Request:
    return _get(url, {"q": query, "count": str(count)}, (("X-Subscription-Token", key),))


def _tavily(url: WebUrl, query: str, count: int, key: str) -> Request:
    return _post(url, {"query": query, "max_results": count}, (("Authorization", f"Bearer {key}"),))


def _exa(url: WebUrl, query: str, count: int, key: str) -> Request:
    body = {"query": query, "numResults": count, "contents": {"text": {"maxCharacters": EXCERPT}}}
    return _post(url, body, (("x-api-key", key),))


_REQUESTS = {"searxng": _searxng, "brave": _brave, "tavily": _tavily, "exa": _exa}


# --- what each of them answers ----------------------------------------------------------------------------------------
class _Result(msgspec.Struct):
    """The keys of all four; each has some of them."""

    url: str
    title: str | None = None
    description: str | None = None  # Brave
    age: str | None = None
    content: str | None = None  # SearXNG, Tavily
    published_date: str | None = None
    publishedDate: str | None = None  # SearXNG, Exa
    text: str | None = None  # Exa
    highlights: list[str] | None = None


class _Results(msgspec.Struct):
    results: list[_Result] = []


class _Brave(msgspec.Struct):
    web: _Results | None = None  # absent when nothing was found


class _Others(msgspec.Struct):
    results: list[_Result]


def _hits(provider: str, answer: Any) -> list[Hit]:
    if provider == "brave":
        web = msgspec.convert(answer, _Brave).web
        return [_hit(result) for result in web.results] if web else []
    return [_hit(result) for result in msgspec.convert(answer, _Others).results]


def _hit(result: _Result) -> Hit:
    excerpt = result.description or result.content or " … ".join(result.highlights or ()) or result.text or ""
    date = result.publishedDate or result.published_date or result.age or ""
    return Hit(_plain(result.title or result.url), result.url, _cut(_plain(excerpt)), _plain(date)[:40])


def _plain(text: str) -> str:
    """One line without the marks some put around the words that were found."""
    return " ".join(unescape(re.sub(r"</?(?:strong|b|em|mark)>", "", text)).split())


def _cut(text: str) -> str:
    return text if len(text) <= EXCERPT else text[: EXCERPT - 1] + "…"
