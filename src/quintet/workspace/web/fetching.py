"""Fetching what a model or a page names: each hop is parsed, resolved, checked and pinned as if it were the first.

Nothing secret can leave here: there is no way to hand this room a header, a cookie or a body.
"""

from __future__ import annotations

import asyncio
import ssl

import msgspec

from quintet.domain.errors import Invalid
from quintet.workspace.web.addresses import Refusing, why_not_public
from quintet.workspace.web.connecting import close, connect
from quintet.workspace.web.exchange import Answer, Request, exchange
from quintet.workspace.web.resolving import Resolve, Unreachable, resolved_public, system_resolve
from quintet.workspace.web.urls import WebUrl, join_url

REDIRECTS = 3
TOTAL_S = 30.0
_REDIRECTING = frozenset({301, 302, 303, 307, 308})
_ACCEPT = ("Accept", "text/html, text/markdown;q=0.9, text/plain;q=0.9, application/json;q=0.9, */*;q=0.5")


class Fetched(msgspec.Struct, frozen=True):
    url: WebUrl  # where it came from in the end
    answer: Answer
    hops: tuple[str, ...] = ()  # where it was sent on from


class Fetcher:
    """What is given here is given by tests only: a fetcher of the product knows the system's names, the public
    internet and the system's certificates."""

    def __init__(
        self,
        *,
        resolve: Resolve = system_resolve,
        refuse: Refusing = why_not_public,
        tls: ssl.SSLContext | None = None,
        total_s: float = TOTAL_S,
    ) -> None:
        self._resolve = resolve
        self._refuse = refuse
        self._tls = tls
        self._total_s = total_s

    def check(self, url: WebUrl) -> None:
        """What can be said of a URL without asking anybody; Invalid when it is never fetched."""
        if why := url.host.why_local() or (self._refuse(url.host.address) if url.host.address else ""):
            raise Invalid(f"{url.host.text} is not fetched: {why}.", next_step="Only public addresses are.")

    async def fetch(self, url: WebUrl) -> Fetched:
        """The answer behind at most three redirects. Invalid when a hop is refused, Unreachable when one fails."""
        hops: list[str] = []
        try:
            async with asyncio.timeout(self._total_s):
                while True:
                    answer = await self._ask(url)
                    location = answer.headers.get("location", "")
                    if answer.status not in _REDIRECTING or not location:
                        return Fetched(url, answer, tuple(hops))
                    hops.append(url.text)
                    url = _next(url, location, len(hops))
        except TimeoutError:
            raise Unreachable(f"{url.authority} took longer than {self._total_s:g} s.") from None

    async def _ask(self, url: WebUrl) -> Answer:
        addresses = await resolved_public(url.host, self._resolve, self._refuse)
        tls = self._context() if url.scheme == "https" else None
        streams = await connect(addresses, url.port, shown=url.authority, tls=tls, name=url.host.bare)
        try:
            return await exchange(streams, Request(url, headers=(_ACCEPT,)))
        finally:
            await close(streams[1])

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls


def _next(url: WebUrl, location: str, count: int) -> WebUrl:
    if count > REDIRECTS:
        raise Invalid(f"{url.authority} sends on for more than {REDIRECTS} times.", next_step="Name the last address.")
    try:
        target = join_url(url, location)
    except Invalid as error:
        raise Invalid(f"{url.authority} sends on to what is not fetched. {error.message}", next_step="") from None
    # Consent to an unencrypted page is consent to that host's.
    if target.scheme == "http" and (url.scheme == "https" or target.host != url.host):
        raise Invalid(
            f"{url.authority} sends on to {target.text[:200]}, which is not encrypted.",
            next_step="Ask for that address itself if it is needed.",
        )
    return target
