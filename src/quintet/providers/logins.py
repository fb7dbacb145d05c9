"""Logins: those that were begun and not ended yet, and how each ended. A code comes back by itself, or is handed in."""

from __future__ import annotations

import asyncio
import secrets
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from enum import StrEnum
from typing import Any

from quintet.domain.errors import Invalid, NotFound, QuintetError, as_quintet_error
from quintet.providers.oauth import OAuthClient, Pkce, authorization_url, code_in, exchange, new_pkce
from quintet.providers.oauth_callback import Callback

WAIT_S = 120.0
PORT = 1455  # what the published client id allows to come back to
MOST = 20  # that are remembered


class LoginStatus(StrEnum):
    PENDING = "pending"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Login:
    def __init__(self, state: str, pkce: Pkce, callback: Callback, url: str) -> None:
        self.id = str(uuid.uuid4())
        self.state = state
        self.pkce = pkce
        self.callback = callback
        self.redirect_uri = callback.redirect_uri
        self.authorization_url = url
        self.status = LoginStatus.PENDING
        self.error = ""
        self.taken = False  # its code is being exchanged


class Logins:
    def __init__(
        self,
        client: Callable[[], Awaitable[OAuthClient]],
        save: Callable[[dict[str, Any]], Awaitable[None]],
        *,
        port: int = PORT,
    ) -> None:
        """`save` keeps the tokens. `finished` is told of every login that has ended."""
        self._client = client
        self._save = save
        self._port = port
        self._logins: dict[str, Login] = {}
        self._waiting: set[asyncio.Task[None]] = set()
        self.finished: Callable[[Login], Awaitable[None]] = _nobody

    async def start(self, wait_s: float = WAIT_S) -> Login:
        """Opens no browser. The login lasts this long; afterwards it is cancelled."""
        client, pkce, state = await self._client(), new_pkce(), secrets.token_urlsafe(32)
        callback = Callback(state)
        await callback.open(self._port)
        url = authorization_url(client, callback.redirect_uri, pkce.challenge, state)
        login = Login(state, pkce, callback, url)
        while len(self._logins) >= MOST:
            await self.cancel(next(iter(self._logins)))
            self._logins.pop(next(iter(self._logins)), None)
        self._logins[login.id] = login
        task = asyncio.get_running_loop().create_task(self._wait(login, wait_s))
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)
        return login

    def get(self, id: str) -> Login:
        if id not in self._logins:
            raise NotFound(f"Unknown login: {id}", next_step="")
        return self._logins[id]

    async def submit(self, id: str, given: str) -> Login:
        """A code, or the address the browser was sent back to."""
        login = self.get(id)
        if login.status is not LoginStatus.PENDING or login.taken:
            raise Invalid("Login is not pending")
        await self._complete(login, code_in(given, login.state))
        return login

    async def cancel(self, id: str) -> Login:
        login = self.get(id)
        if login.status is LoginStatus.PENDING and not login.taken:
            await self._end(login, LoginStatus.CANCELLED)
        return login

    async def close(self) -> None:
        for task in list(self._waiting):
            task.cancel()
        if self._waiting:
            await asyncio.wait(self._waiting, timeout=1.0)
        for login in self._logins.values():
            await login.callback.close()

    async def _wait(self, login: Login, wait_s: float) -> None:
        try:
            async with asyncio.timeout(wait_s):
                code = await asyncio.shield(login.callback.code)
        except TimeoutError:
            if not login.taken:
                await self._end(login, LoginStatus.CANCELLED, "Nobody logged in in time.")
            return
        except asyncio.CancelledError:
            if not login.callback.code.cancelled():
                raise  # we are being closed
            return  # it has ended another way
        except QuintetError as error:
            await self._end(login, LoginStatus.FAILED, error.message)
            return
        if not login.taken and login.status is LoginStatus.PENDING:
            with suppress(QuintetError):  # told with the login's end
                await self._complete(login, code)

    async def _complete(self, login: Login, code: str) -> None:
        login.taken = True
        try:
            client = await self._client()
            await self._save(await exchange(client, code, login.redirect_uri, login.pkce.verifier))
        except Exception as error:
            failed = as_quintet_error(error)
            await self._end(login, LoginStatus.FAILED, failed.message)
            raise failed from None
        await self._end(login, LoginStatus.COMPLETED)

    async def _end(self, login: Login, status: LoginStatus, error: str = "") -> None:
        login.status, login.error = status, error
        await login.callback.close()
        await self.finished(login)


async def _nobody(login: Login) -> None:
    pass
