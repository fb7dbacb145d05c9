"""OAuth with a code and PKCE, as OpenAI's own programs use it: the address to open, and codes turned into tokens.

Endpoints are values given by whoever composes; no file of the person's or a project's says where tokens are fetched.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import msgspec

from quintet.domain.errors import Denied, Invalid, ProviderFailed

CALLBACK_PATH = "/auth/callback"
MOST_BYTES = 1024 * 1024
WITHIN_S = 30.0


class OAuthClient(msgspec.Struct, frozen=True):
    """Which program asks, and whom. The id is a public one: such clients have no secret."""

    issuer: str = "https://auth.openai.com"
    client_id: str = "app_EMoamEEZ73f0CkXaXp7hrann"
    scope: str = "openid profile email offline_access"
    originator: str = "kward"

    @property
    def token_url(self) -> str:
        return f"{self.issuer.rstrip('/')}/oauth/token"


class Pkce(msgspec.Struct, frozen=True):
    verifier: str
    challenge: str


def new_pkce() -> Pkce:
    verifier = secrets.token_urlsafe(64)
    digest = hashlib.sha256(verifier.encode()).digest()
    return Pkce(verifier, base64.urlsafe_b64encode(digest).decode().rstrip("="))


def authorization_url(client: OAuthClient, redirect_uri: str, challenge: str, state: str) -> str:
    asked = {
        "response_type": "code",
        "client_id": client.client_id,
        "redirect_uri": redirect_uri,
        "scope": client.scope,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
        "id_token_add_organizations": "true",
        "codex_cli_simplified_flow": "true",
        "state": state,
        "originator": client.originator,
    }
    return f"{client.issuer.rstrip('/')}/oauth/authorize?{urlencode(asked)}"


def code_in(given: str, state: str) -> str:
    """The code itself, or that of a whole callback address, whose state must be ours."""
    given = given.strip()
    asked = parse_qs(urlsplit(given).query) if "?" in given or "://" in given else {}
    if "state" in asked or "code" in asked or "error" in asked:
        if not secrets.compare_digest(asked.get("state", [""])[0].encode(), state.encode()):
            raise Invalid("OAuth state mismatch")
        if "error" in asked:
            raise Denied(f"The login was refused: {asked['error'][0][:200]}")
        given = asked.get("code", [""])[0]
    if not given:
        raise Invalid("Missing authorization code")
    return given


async def exchange(client: OAuthClient, code: str, redirect_uri: str, verifier: str) -> dict[str, Any]:
    """The tokens for a code. ProviderFailed when they are not given."""
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": redirect_uri,
        "client_id": client.client_id,
        "code_verifier": verifier,
    }
    return await _tokens(client, form, "OpenAI OAuth token exchange")


async def renewed(client: OAuthClient, refresh_token: str) -> dict[str, Any]:
    form = {"grant_type": "refresh_token", "refresh_token": refresh_token, "client_id": client.client_id}
    return await _tokens(client, form, "OpenAI OAuth token refresh")


def account_of(tokens: Mapping[str, Any]) -> str:
    """Whose they are, as the tokens themselves say; nothing is decided by it."""
    for name in ("id_token", "access_token"):
        claims = _claims(tokens.get(name))
        inner = claims.get("https://api.openai.com/auth")
        found = claims.get("chatgpt_account_id") or (inner if isinstance(inner, dict) else {}).get("chatgpt_account_id")
        if isinstance(found, str) and found:
            return found
    return ""


async def _tokens(client: OAuthClient, form: Mapping[str, str], what: str) -> dict[str, Any]:
    """What the server says is never repeated: it may quote what it was sent."""
    import asyncio

    import httpx2

    try:
        async with (
            asyncio.timeout(WITHIN_S),
            httpx2.AsyncClient(follow_redirects=False, timeout=None) as http,
            http.stream("POST", client.token_url, data=dict(form), headers={"accept": "application/json"}) as response,
        ):
            said = bytearray()
            async for piece in response.aiter_bytes():
                said += piece
                if len(said) > MOST_BYTES:
                    break
    except TimeoutError:
        raise ProviderFailed(f"{what} was not answered in time", provider="openai", reason="timeout") from None
    except (httpx2.HTTPError, httpx2.InvalidURL):
        raise ProviderFailed(f"{what} could not be sent", provider="openai", reason="unreachable") from None
    if response.status_code != 200:
        raise ProviderFailed(f"{what} failed with HTTP {response.status_code}", provider="openai", reason="auth")
    try:
        found = msgspec.json.decode(bytes(said), type=dict[str, Any])
    except (msgspec.DecodeError, msgspec.ValidationError):
        raise ProviderFailed(f"{what} returned invalid JSON", provider="openai", reason="garbled") from None
    if not isinstance(found.get("access_token"), str) or not found["access_token"]:
        raise ProviderFailed(f"{what} returned no token", provider="openai", reason="garbled")
    return found


def _claims(token: Any) -> dict[str, Any]:
    if not isinstance(token, str) or token.count(".") != 2:
        return {}
    middle = token.split(".")[1]
    try:
        found = msgspec.json.decode(base64.urlsafe_b64decode(middle + "=" * (-len(middle) % 4)))
    except (ValueError, msgspec.DecodeError):
        return {}
    return found if isinstance(found, dict) else {}
