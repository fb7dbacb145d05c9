"""auth/*: which providers there is a credential for, and from where; logins by key and by OAuth. Values never leave."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct, UnsetType

from quintet.domain.errors import Invalid, NotFound, QuintetError
from quintet.protocols.kward import models as wire
from quintet.protocols.kward.client import Client
from quintet.protocols.kward.errors import Failed, unknown
from quintet.protocols.kward.keeping import Accounts, Credential, LoginSeen
from quintet.rpc.call import Call
from quintet.rpc.connection import Connection
from quintet.rpc.rows import Family, NoParams

AUTH = Family("auth", form="either")
WAIT_S, LONGEST_S = 120.0, 3600.0
NAMES = {"openai": "OpenAI", "openrouter": "OpenRouter"}
WORDS = {
    "pending": "OpenAI login pending.",
    "completed": "Logged in to OpenAI.",
    "failed": "OpenAI login failed.",
    "cancelled": "OpenAI login cancelled.",
}


class StatusResult(Struct, frozen=True, rename={"openai_account_id": "openaiAccountId"}):
    openaiOAuth: bool
    openrouterApiKey: bool
    openaiAccessToken: bool
    githubOAuth: bool = False
    openai_account_id: str | UnsetType = UNSET


class Card(wire.Wire, frozen=True):
    id: str
    name: str
    auth_type: str
    configured: bool
    label: str
    can_logout: bool
    source: str | UnsetType = UNSET
    stored_credential_type: str | UnsetType = UNSET
    uses_callback_server: bool | UnsetType = UNSET


class Cards(Struct, frozen=True):
    providers: list[Card]


class KeyParams(wire.Wire, frozen=True):
    provider_id: str
    api_key: Any = None


class ProviderParams(wire.Wire, frozen=True):
    provider_id: str


class Told(wire.Wire, frozen=True):
    provider_id: str
    message: str


class OAuthParams(wire.Wire, frozen=True):
    provider_id: str
    timeout_seconds: Any = None


class LoginParams(wire.Wire, frozen=True):
    timeout_seconds: Any = None


class Begun(wire.Wire, frozen=True):
    provider_id: str
    login_id: str
    authorization_url: str
    redirect_uri: str
    status: str


class LoginIdParams(wire.Wire, frozen=True):
    login_id: str


class SubmitParams(wire.Wire, frozen=True):
    login_id: str
    code: Any = None


class LoginState(wire.Wire, frozen=True):
    provider_id: str
    login_id: str
    status: str
    redirect_uri: str
    message: str
    error: str | UnsetType = UNSET


@AUTH.method("auth/status", result=StatusResult, summary="Which credentials there are, yes or no.")
async def status(call: Call[Client], params: NoParams) -> StatusResult:
    accounts = _accounts(call)
    openai, router = await accounts.openai(), await accounts.openrouter()
    return StatusResult(openai.stored, router.configured, openai.environment, openai_account_id=openai.account or UNSET)


@AUTH.method("auth/providers", result=Cards, summary="The same as cards: from where, and whether it can be removed.")
async def providers(call: Call[Client], params: NoParams) -> Cards:
    accounts = _accounts(call)
    openai, router = await accounts.openai(), await accounts.openrouter()
    signed = "Signed in" if openai.configured else "Not signed in"
    key = "API key configured" if router.configured else "API key not configured"
    kept: str | UnsetType = "api_key" if router.stored else UNSET
    return Cards(
        [
            Card("openai", "OpenAI", "oauth", openai.configured, signed, openai.stored, _source(openai), "oauth", True),
            Card("openrouter", "OpenRouter", "api_key", router.configured, key, router.stored, _source(router), kept),
        ]
    )


@AUTH.method("auth/loginWithApiKey", params=KeyParams, result=Told, summary="Keep an API key, in a private file.")
async def login_with_key(call: Call[Client], params: KeyParams) -> Told:
    if params.provider_id != "openrouter":
        raise Failed(f"Unsupported API key provider: {params.provider_id}")
    key = params.api_key.strip() if isinstance(params.api_key, str) else ""
    if not key:
        raise Failed("API key must be a non-empty string")
    await _accounts(call).store_key(key)
    await call.state.house.keeping.models.reload()
    return Told(params.provider_id, "Saved API key for OpenRouter.")


@AUTH.method(
    "auth/logoutProvider",
    params=ProviderParams,
    result=Told,
    summary="Remove what is stored; what a variable holds stays in use.",
)
async def logout(call: Call[Client], params: ProviderParams) -> Told:
    accounts = _accounts(call)
    removes = {"openai": accounts.remove_login, "openrouter": accounts.remove_key}
    if params.provider_id not in removes:
        raise Failed(f"Unsupported auth provider: {params.provider_id}")
    await removes[params.provider_id]()
    await call.state.house.keeping.models.reload()
    return Told(params.provider_id, f"Logged out of {NAMES[params.provider_id]}.")


@AUTH.method(
    "auth/loginWithOAuth", params=OAuthParams, result=Begun, summary="Begin a login; the client opens the address."
)
async def login_with_oauth(call: Call[Client], params: OAuthParams) -> Begun:
    if params.provider_id != "openai":
        raise Failed(f"Unsupported OAuth provider: {params.provider_id}")
    return await _begin(call, params.timeout_seconds)


@AUTH.method("auth/startOpenAILogin", params=LoginParams, result=Begun, summary="The same, for OpenAI.")
async def start_openai(call: Call[Client], params: LoginParams) -> Begun:
    return await _begin(call, params.timeout_seconds)


@AUTH.method(
    "auth/submitOpenAICode",
    params=SubmitParams,
    result=LoginState,
    summary="Complete a login with its code, or with the address the browser was sent back to.",
)
async def submit(call: Call[Client], params: SubmitParams) -> LoginState:
    code = params.code if isinstance(params.code, str) else ""
    try:
        login = await _accounts(call).submit(params.login_id, code)
    except NotFound:
        raise unknown("login", params.login_id) from None
    except (Invalid, QuintetError) as error:
        raise Failed(error.message) from None
    await call.state.house.keeping.models.reload()
    return state_of(login)


@AUTH.method("auth/loginStatus", params=LoginIdParams, result=LoginState, summary="How a login stands.")
async def login_status(call: Call[Client], params: LoginIdParams) -> LoginState:
    try:
        return state_of(_accounts(call).login(params.login_id))
    except NotFound:
        raise unknown("login", params.login_id) from None


async def _begin(call: Call[Client], timeout: Any) -> Begun:
    said = timeout if isinstance(timeout, int | float) and not isinstance(timeout, bool) and timeout > 0 else WAIT_S
    _watch(call.connection, _accounts(call))
    login = await _accounts(call).start(min(float(said), LONGEST_S))
    return Begun("openai", login.id, login.authorization_url, login.redirect_uri, login.status)


def _watch(connection: Connection[Client], accounts: Accounts) -> None:
    async def finished(login: LoginSeen) -> None:
        await connection.state.house.keeping.models.reload()
        await connection.notify("auth/loginFinished", state_of(login))

    accounts.tell(finished)


def state_of(login: LoginSeen) -> LoginState:
    words = WORDS.get(login.status, WORDS["pending"])
    return LoginState("openai", login.id, login.status, login.redirect_uri, words, login.error or UNSET)


def _source(credential: Credential) -> str | UnsetType:
    if not credential.configured:
        return UNSET
    return "environment" if credential.environment else "stored"


def _accounts(call: Call[Client]) -> Accounts:
    return call.state.house.keeping.accounts
