"""auth/*: keys and logins, against an OAuth server over real HTTP; no value ever comes back to the client."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from quintet.journal.clock import SystemClock
from quintet.providers.oauth import OAuthClient
from quintet.serving.kward_accounts import KwardAccounts
from quintet.workspace.mirror_files import DiskMirrorFiles
from quintet.workspace.settings_file import SettingsFile
from tests.fakes.kward_desk import Desk, Message, desk
from tests.fakes.oauth_server import ACCESS, ACCOUNT, REFRESH, oauth_server
from tests.fakes.waiting import soon

KEY = "sk-or-0123456789abcdef"
Patch = pytest.MonkeyPatch


async def cards(client: Desk) -> dict[str, Message]:
    return {card["id"]: card for card in (await client.call("auth/providers"))["providers"]}


def mode(path: Path) -> str:
    return oct(path.stat().st_mode & 0o777)


@pytest.mark.req("kward:137", "kward:139")
async def test_a_key_is_kept_in_a_private_file_and_never_told(tmp_path: Path, monkeypatch: Patch) -> None:
    async with desk(tmp_path, monkeypatch, kward={"x": 1}) as client:
        told = await client.call("auth/loginWithApiKey", providerId="openrouter", apiKey=KEY)
        assert told == {"providerId": "openrouter", "message": "Saved API key for OpenRouter."}
        assert client.config == {"x": 1, "openrouter_api_key": KEY}
        assert mode(client.kward / "config.json") == "0o600"
        for method in ("auth/status", "auth/providers", "config/read", "models/list"):
            await client.call(method)
        assert not any(KEY.encode() in frame for frame in client.frames)
        for other in ("openai", "github", "nobody"):
            refused = await client.refused("auth/loginWithApiKey", providerId=other, apiKey=KEY)
            assert refused == (-32603, f"Unsupported API key provider: {other}")
        blank = await client.refused("auth/loginWithApiKey", providerId="openrouter", apiKey=" ")
        assert blank == (-32603, "API key must be a non-empty string")


@pytest.mark.req("kward:137")
async def test_a_kept_key_is_masked_in_everything_that_is_stored(tmp_path: Path, monkeypatch: Patch) -> None:
    async with desk(tmp_path, monkeypatch, script=f"scope: turn\ntext: It is {KEY}.") as client:
        await client.call("auth/loginWithApiKey", providerId="openrouter", apiKey=KEY)
        await client.turn(f"my key is {KEY}")
    stored = [path for path in tmp_path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    assert sorted(path.name for path in stored) == ["config.json", "model.script"]


@pytest.mark.req("kward:138")
async def test_a_variable_goes_before_what_is_stored_and_stays_after_a_logout(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    async with desk(tmp_path, monkeypatch, kward={"openrouter_api_key": KEY}) as client:
        card = (await cards(client))["openrouter"]
        assert (card["configured"], card["source"], card["canLogout"]) == (True, "stored", True)
    async with desk(tmp_path, monkeypatch, OPENROUTER_API_KEY="sk-or-environment1") as client:
        card = (await cards(client))["openrouter"]
        assert (card["configured"], card["source"], card["canLogout"]) == (True, "environment", True)
        assert card["storedCredentialType"] == "api_key"
        told = await client.call("auth/logoutProvider", providerId="openrouter")
        assert told == {"providerId": "openrouter", "message": "Logged out of OpenRouter."}
        card = (await cards(client))["openrouter"]
        assert (card["configured"], card["source"], card["canLogout"]) == (True, "environment", False)
        assert "openrouter_api_key" not in client.config
        refused = await client.refused("auth/logoutProvider", providerId="nobody")
        assert refused == (-32603, "Unsupported auth provider: nobody")


async def test_without_credentials_the_cards_and_the_status_say_so(tmp_path: Path, monkeypatch: Patch) -> None:
    async with desk(tmp_path, monkeypatch) as client:
        assert await client.call("auth/status") == {
            "openaiOAuth": False,
            "openrouterApiKey": False,
            "openaiAccessToken": False,
            "githubOAuth": False,
        }
        found = await cards(client)
        assert found["openai"] == {
            "id": "openai",
            "name": "OpenAI",
            "authType": "oauth",
            "configured": False,
            "label": "Not signed in",
            "canLogout": False,
            "storedCredentialType": "oauth",
            "usesCallbackServer": True,
        }
        assert found["openrouter"]["label"] == "API key not configured"


@pytest.mark.req("kward:141")
@pytest.mark.parametrize("method", ["auth/startOpenAILogin", "auth/loginWithOAuth"])
async def test_a_login_begins_with_an_address_that_carries_state_and_challenge(
    tmp_path: Path, monkeypatch: Patch, method: str
) -> None:
    async with desk(tmp_path, monkeypatch, oauth="http://127.0.0.1:9") as client:
        params = {} if method == "auth/startOpenAILogin" else {"providerId": "openai"}
        begun = await client.call(method, **params)
        assert (begun["providerId"], begun["status"]) == ("openai", "pending")
        back = urlsplit(begun["redirectUri"])
        assert (back.hostname, back.path) == ("localhost", "/auth/callback")
        asked = {name: values[0] for name, values in parse_qs(urlsplit(begun["authorizationUrl"]).query).items()}
        assert (asked["code_challenge_method"], asked["response_type"]) == ("S256", "code")
        assert asked["redirect_uri"] == begun["redirectUri"]
        assert len(asked["state"]) >= 32
        assert len(asked["code_challenge"]) == 43
        if params:
            refused = await client.refused(method, providerId="github")
            assert refused == (-32603, "Unsupported OAuth provider: github")


@pytest.mark.req("kward:142", "kward:147")
async def test_the_browser_s_return_completes_it_and_a_wrong_state_does_not(tmp_path: Path, monkeypatch: Patch) -> None:
    async with oauth_server() as server, desk(tmp_path, monkeypatch, oauth=server.url) as client:
        begun = await client.call("auth/loginWithOAuth", providerId="openai")
        right = server.authorize(begun["authorizationUrl"])
        async with httpx2.AsyncClient() as browser:
            for wrong in (right.replace("state=", "state=x"), right.partition("&state")[0]):
                assert (await browser.get(wrong)).status_code == 400
            assert (await browser.get(right.replace("/auth/callback", "/"))).status_code == 404
            assert (await client.call("auth/loginStatus", loginId=begun["loginId"]))["status"] == "pending"
            answered = await browser.get(right)
        assert (answered.status_code, answered.text) == (200, "Login complete. You can close this window.")
        finished = await client.note(lambda m: m["method"] == "auth/loginFinished")
        assert finished == {
            "providerId": "openai",
            "loginId": begun["loginId"],
            "status": "completed",
            "redirectUri": begun["redirectUri"],
            "message": "Logged in to OpenAI.",
        }
        assert await client.call("auth/loginStatus", loginId=begun["loginId"]) == finished
        kept = json.loads((client.kward / "auth.json").read_text())
        assert (kept["auth_mode"], kept["tokens"]["access_token"], kept["account_id"]) == (
            "openai_oauth",
            ACCESS,
            ACCOUNT,
        )
        assert mode(client.kward / "auth.json") == "0o600"
        assert (await client.call("auth/status"))["openaiAccountId"] == ACCOUNT
        assert not any(secret.encode() in frame for frame in client.frames for secret in (ACCESS, REFRESH))


@pytest.mark.req("kward:143", "kward:145", "kward:146")
@pytest.mark.parametrize("form", ["a whole address", "a bare code"])
async def test_a_code_that_is_handed_in_completes_it_once(tmp_path: Path, monkeypatch: Patch, form: str) -> None:
    async with oauth_server() as server, desk(tmp_path, monkeypatch, oauth=server.url) as client:
        begun = await client.call("auth/startOpenAILogin")
        address = server.authorize(begun["authorizationUrl"])
        login = {"loginId": begun["loginId"]}
        wrong = await client.refused("auth/submitOpenAICode", **login, code=address.replace("state=", "state=x"))
        assert wrong == (-32603, "OAuth state mismatch")
        missing = await client.refused("auth/submitOpenAICode", **login, code=" ")
        assert missing == (-32603, "Missing authorization code")
        given = address if form == "a whole address" else " code-1 "
        told = await client.call("auth/submitOpenAICode", **login, code=given)
        assert (told["status"], told["message"]) == ("completed", "Logged in to OpenAI.")
        again = await client.refused("auth/submitOpenAICode", **login, code=given)
        assert again == (-32603, "Login is not pending")
        for method in ("auth/submitOpenAICode", "auth/loginStatus"):
            assert await client.refused(method, loginId="nobody", code="x") == (-32603, "Unknown login: nobody")
        assert (await client.note(lambda m: m["method"] == "auth/loginFinished"))["status"] == "completed"


@pytest.mark.req("kward:144", "kward:147")
async def test_an_exchange_that_fails_is_told_and_quotes_nothing(tmp_path: Path, monkeypatch: Patch) -> None:
    async with oauth_server() as server, desk(tmp_path, monkeypatch, oauth=server.url) as client:
        server.failing = 403
        begun = await client.call("auth/startOpenAILogin")
        code, words = await client.refused("auth/submitOpenAICode", loginId=begun["loginId"], code="code-of-nobody")
        assert (code, words) == (-32603, "OpenAI OAuth token exchange failed with HTTP 403")
        finished = await client.note(lambda m: m["method"] == "auth/loginFinished")
        assert (finished["status"], finished["error"], finished["message"]) == ("failed", words, "OpenAI login failed.")
        assert not (client.kward / "auth.json").exists()
        assert not any(b"code-of-nobody" in frame for frame in client.frames)


async def test_a_login_nobody_completes_is_cancelled_and_one_that_is_refused_has_failed(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    async with oauth_server() as server, desk(tmp_path, monkeypatch, oauth=server.url) as client:
        begun = await client.call("auth/startOpenAILogin", timeoutSeconds=0.05)
        ended = await client.note(lambda m: m["method"] == "auth/loginFinished")
        assert (ended["loginId"], ended["status"]) == (begun["loginId"], "cancelled")
        begun = await client.call("auth/startOpenAILogin")
        refusal = server.authorize(begun["authorizationUrl"]).replace("code=code-1", "error=access_denied")
        async with httpx2.AsyncClient() as browser:
            assert (await browser.get(refusal)).text == "Login failed. Return to where you began it."
        ended = await client.note(lambda m: m["params"].get("loginId") == begun["loginId"])
        assert (ended["status"], ended["error"]) == ("failed", "The login was refused: access_denied")


@pytest.mark.req("kward:140")
async def test_logging_out_of_openai_removes_the_file(tmp_path: Path, monkeypatch: Patch) -> None:
    async with desk(tmp_path, monkeypatch, OPENAI_ACCESS_TOKEN="") as client:
        client.kward.mkdir()
        (client.kward / "auth.json").write_text(json.dumps({"tokens": {"access_token": ACCESS}}))
        card = (await cards(client))["openai"]
        assert (card["configured"], card["source"], card["canLogout"]) == (True, "stored", True)
        for _ in range(2):
            told = await client.call("auth/logoutProvider", providerId="openai")
            assert told == {"providerId": "openai", "message": "Logged out of OpenAI."}
        assert not (client.kward / "auth.json").exists()
        assert (await cards(client))["openai"]["configured"] is False


async def test_a_token_that_is_about_to_end_is_renewed_before_a_turn(tmp_path: Path, monkeypatch: Patch) -> None:
    async with oauth_server() as server, desk(tmp_path, monkeypatch, oauth=server.url) as client:
        client.kward.mkdir()
        old = {"tokens": {"access_token": "old", "refresh_token": REFRESH}, "expires_at": "2020-01-01T00:00:00Z"}
        (client.kward / "auth.json").write_text(json.dumps(old))
        session = await client.turn("hello")
        kept = json.loads((client.kward / "auth.json").read_text())
        assert (kept["tokens"]["access_token"], kept["account_id"]) == (f"{ACCESS}2", ACCOUNT)
        await client.turn("again", session)
        assert [asked["grant_type"] for asked in server.asked] == ["refresh_token"]


ENDED = {"tokens": {"access_token": "old", "refresh_token": REFRESH}, "expires_at": "2020-01-01T00:00:00Z"}


async def test_who_logs_out_while_a_token_is_renewed_stays_logged_out(tmp_path: Path, monkeypatch: Patch) -> None:
    async with oauth_server() as server, desk(tmp_path, monkeypatch, oauth=server.url) as client:
        client.kward.mkdir()
        file = client.kward / "auth.json"
        for left in (None, ENDED | {"tokens": {"access_token": "another", "refresh_token": "of another login"}}):
            file.write_text(json.dumps(ENDED))
            server.meanwhile = file.unlink if left is None else partial(file.write_text, json.dumps(left))
            server.asked.clear()
            await client.turn("hello")
            assert [asked["grant_type"] for asked in server.asked] == ["refresh_token"]
            assert (json.loads(file.read_text()) if file.exists() else None) == left


async def test_a_renewal_is_not_cut_off_and_is_one_for_all_who_wait(tmp_path: Path) -> None:
    """The provider may have put the old token out of force already."""
    async with oauth_server() as server:
        files = DiskMirrorFiles(str(tmp_path / "run"))
        settings, auth = (SettingsFile(str(tmp_path / name), files) for name in ("config.json", "auth.json"))
        (tmp_path / "auth.json").write_text(json.dumps(ENDED))
        accounts = KwardAccounts(settings, auth, {}, SystemClock(), OAuthClient(server.url))
        stopped, waits = (asyncio.ensure_future(accounts.renew()) for _ in range(2))
        server.meanwhile = stopped.cancel
        await soon(waits)
        assert stopped.cancelled()
        assert (await auth.read())["tokens"]["access_token"] == f"{ACCESS}2"
        assert len(server.asked) == 1
        await accounts.close()
