"""Kward's accounts: OpenAI by a login kept in auth.json, OpenRouter by a key kept in config.json. Part of the
composition root; plays the protocol's port for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from quintet.domain.errors import Invalid, QuintetError
from quintet.domain.ports import Clock
from quintet.protocols.kward.keeping import Credential, LoginSeen
from quintet.workspace.settings_file import SettingsFile

if TYPE_CHECKING:
    from quintet.providers.logins import Logins
    from quintet.providers.oauth import OAuthClient

KEY = "openrouter_api_key"
SOON_S = 60.0  # a token that ends so soon is renewed first
CLOSING_S = 0.5  # how long a renewal is waited for when the client leaves


class _Left(Exception):
    """There is another login now, or none."""


class KwardAccounts:
    def __init__(
        self,
        settings: SettingsFile,
        auth: SettingsFile,
        environment: Mapping[str, str],
        clock: Clock,
        oauth: OAuthClient | None = None,
    ) -> None:
        """`oauth` says who is asked for tokens; the published client of OpenAI's unless given."""
        self._settings, self._auth, self._environment, self._clock = settings, auth, environment, clock
        self._oauth = oauth
        self._renewing: asyncio.Task[None] | None = None

    # --- what there is -----------------------------------------------------------------------------------------------
    async def openai(self) -> Credential:
        auth = self._said(self._auth)
        tokens = _tokens(auth)
        account = auth.get("account_id") or tokens.get("account_id")
        stored = isinstance(tokens.get("access_token"), str) and bool(tokens["access_token"])
        named = bool(self._environment.get("OPENAI_ACCESS_TOKEN"))
        return Credential(named, stored, account if stored and isinstance(account, str) else "")

    async def openrouter(self) -> Credential:
        key = self._said(self._settings).get(KEY)
        stored = isinstance(key, str) and bool(key.strip())
        return Credential(bool(self._environment.get("OPENROUTER_API_KEY")), stored)

    # --- changing it -------------------------------------------------------------------------------------------------
    async def store_key(self, key: str) -> None:
        await self._settings.change(lambda now: now | {KEY: key})

    async def remove_key(self) -> None:
        if KEY in await self._settings.read():
            await self._settings.change(lambda now: {name: value for name, value in now.items() if name != KEY})

    async def remove_login(self) -> None:
        await self._auth.remove()

    async def start(self, wait_s: float) -> LoginSeen:
        return await self._logins.start(wait_s)

    async def submit(self, id: str, given: str) -> LoginSeen:
        return await self._logins.submit(id, given)

    def login(self, id: str) -> LoginSeen:
        return self._logins.get(id)

    def tell(self, finished: Callable[[LoginSeen], Awaitable[None]]) -> None:
        self._logins.finished = finished

    async def renew(self) -> None:
        """A token that is about to end gives way to a new one. One that cannot be renewed is left: the provider's
        refusal says what to do. Several turns wait for one renewal; one that is stopped does not cut it off, since the
        old token may be worth nothing by then."""
        if self._renewing is None or self._renewing.done():
            tokens = _tokens(self._said(self._auth))
            refresh = tokens.get("refresh_token")
            if not isinstance(refresh, str) or not refresh or not self._ends_soon():
                return
            self._renewing = asyncio.ensure_future(self._renew(tokens, refresh))
        await asyncio.shield(self._renewing)

    async def _renew(self, tokens: dict[str, Any], refresh: str) -> None:
        from quintet.providers.oauth import renewed

        with suppress(QuintetError, OSError, _Left):
            await self._save(tokens | await renewed(await self._client(), refresh), instead_of=refresh)

    async def close(self) -> None:
        if self._renewing is not None and not self._renewing.done():
            await asyncio.wait({self._renewing}, timeout=CLOSING_S)
            self._renewing.cancel()
        if "_logins" in self.__dict__:
            await self._logins.close()

    # --- small things ------------------------------------------------------------------------------------------------
    @cached_property
    def _logins(self) -> Logins:
        from quintet.providers.logins import PORT, Logins

        said = self._environment.get("KWARD_OAUTH_PORT", "")
        return Logins(self._client, self._save, port=int(said) if said.isdecimal() and int(said) < 65536 else PORT)

    async def _client(self) -> OAuthClient:
        from quintet.providers.oauth import OAuthClient

        client = self._oauth or OAuthClient()
        own = self._said(self._settings).get("openai_oauth_client_id")
        return (
            msgspec.structs.replace(client, client_id=own.strip()) if isinstance(own, str) and own.strip() else client
        )

    async def _save(self, tokens: dict[str, Any], instead_of: str = "") -> None:
        """`instead_of`: only where this is still what is kept; who has logged out meanwhile stays logged out."""
        from quintet.providers.oauth import account_of

        now = datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC)
        account = account_of(tokens)
        lasts = tokens.get("expires_in")
        kept: dict[str, Any] = {
            "auth_mode": "openai_oauth",
            "tokens": tokens | ({"account_id": account} if account else {}),
            "saved_at": _stamp(now),
        }
        kept |= {"account_id": account} if account else {}
        if isinstance(lasts, int | float) and not isinstance(lasts, bool):
            kept["expires_at"] = _stamp(now + timedelta(seconds=float(lasts)))

        def keep(now: dict[str, Any]) -> dict[str, Any]:
            if instead_of and _tokens(now).get("refresh_token") != instead_of:
                raise _Left
            return kept

        await self._auth.change(keep)

    def _ends_soon(self) -> bool:
        try:
            ends = datetime.fromisoformat(self._said(self._auth)["expires_at"])
            return ends.timestamp() * 1000 <= self._clock.now_ms() + SOON_S * 1000
        except (KeyError, TypeError, ValueError):
            return False

    def _said(self, file: SettingsFile) -> dict[str, Any]:
        try:
            return file.now()
        except (Invalid, OSError):
            return {}


def _tokens(auth: Mapping[str, Any]) -> dict[str, Any]:
    found = auth.get("tokens")
    return found if isinstance(found, dict) else {}


def _stamp(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
