"""An OAuth server for tests, over real HTTP: gives tokens for a code only to who can show the verifier of its
challenge, once. What it was asked is kept."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

from tests.fakes.web import Seen, reply, serving

ACCOUNT = "acc_12345"
ACCESS, REFRESH = "at-0123456789abcdef", "rt-0123456789abcdef"


class OAuthServer:
    def __init__(self) -> None:
        self.url = ""
        self.failing = 0  # a status to answer with instead
        self.asked: list[dict[str, str]] = []
        self.meanwhile: Callable[[], object] = lambda: None  # while somebody waits for another token
        self._codes: dict[str, tuple[str, str]] = {}  # code: (challenge, redirect_uri)

    def authorize(self, url: str, code: str = "code-1") -> str:
        """As a person who says yes in the browser: the address the browser is sent back to."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        assert url.startswith(f"{self.url}/oauth/authorize?")
        assert asked["code_challenge_method"] == "S256"
        self._codes[code] = (asked["code_challenge"], asked["redirect_uri"])
        return f"{asked['redirect_uri']}?code={code}&state={asked['state']}"

    def answer(self, seen: Seen) -> bytes:
        form = {name: values[0] for name, values in parse_qs(seen.body.decode()).items()}
        self.asked.append(form)
        if not seen.line.startswith("POST /oauth/token "):
            return reply(404)
        if self.failing:
            return reply(self.failing, json.dumps({"error": f"bad {form.get('code')}"}))
        if form.get("grant_type") == "refresh_token":
            self.meanwhile()
            return self._tokens("2") if form["refresh_token"] == REFRESH else reply(400)
        challenge, redirect = self._codes.pop(form.get("code", ""), ("", ""))
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        if base64.urlsafe_b64encode(digest).decode().rstrip("=") != challenge or form["redirect_uri"] != redirect:
            return reply(400, '{"error": "invalid_grant"}')
        return self._tokens()

    def _tokens(self, more: str = "") -> bytes:
        claims = json.dumps({"https://api.openai.com/auth": {"chatgpt_account_id": ACCOUNT}}).encode()
        token = f"e30.{base64.urlsafe_b64encode(claims).decode().rstrip('=')}.x"
        given = {"access_token": ACCESS + more, "refresh_token": REFRESH, "id_token": token, "expires_in": 3600}
        return reply(200, json.dumps(given), content_type="application/json")


@asynccontextmanager
async def oauth_server() -> AsyncIterator[OAuthServer]:
    made = OAuthServer()
    async with serving(made.answer, "127.0.0.1") as server:
        made.url = f"http://127.0.0.1:{server.port}"
        yield made
