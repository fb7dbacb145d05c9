"""A key is tried with a real call before it is kept."""

from __future__ import annotations

import pytest

from quintet.domain.model import ModelInfo
from quintet.providers.attempts import Pace
from quintet.providers.http import HttpProvider
from quintet.providers.key_trial import KeyTrial, try_key
from quintet.providers.settings import ProviderKind, ProviderSettings
from quintet.providers.table import dialect_of
from tests.fakes.answers import HANG, Answers
from tests.fakes.model_server import ModelServer
from tests.fakes.waiting import soon
from tests.fakes.wires import KEY, WIRES, wire

LIST = {"data": [{"id": "m1"}, {"id": "m2"}]}


def at(port: int, kind: ProviderKind = ProviderKind.OPENAI_CHAT) -> HttpProvider:
    return wire(f"http://127.0.0.1:{port}/v1", kind)


async def tried(provider: HttpProvider) -> KeyTrial:
    try:
        return await soon(try_key(provider, "far/m"))
    finally:
        await provider.close()


@pytest.mark.req("models:K6")
@pytest.mark.parametrize("kind", WIRES, ids=str)
async def test_a_good_key_gets_the_list_of_models(kind: ProviderKind):
    async with Answers({"/v1/models": LIST}) as server:
        assert await soon(try_key(at(server.port, kind), "")) == KeyTrial(good=True, models=("m1", "m2"))
    [asked] = server.asked
    assert KEY in (asked.headers.get("authorization") or asked.headers.get("x-api-key", ""))


@pytest.mark.req("models:K6")
@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ((401, {"error": f"bad key {KEY}"}), "it refuses the key (status 401)"),
        ((403, b""), "it refuses the key (status 403)"),
        ((404, b""), "it lists no models (status 404), and none is known to ask"),
        ((302, b""), "it lists no models (status 302), and none is known to ask"),
        (HANG, "it did not answer in time"),
    ],
)
async def test_why_a_key_is_not_good_is_said_without_quoting_it(answer: object, why: str):
    async with Answers({"/v1/models": answer}) as server:
        within_s = 0.3 if answer is HANG else 20.0
        assert await soon(try_key(at(server.port), "", within_s=within_s)) == KeyTrial(good=False, why=why)


@pytest.mark.req("models:K6")
async def test_where_there_is_no_list_one_word_is_asked_for():
    async with ModelServer("text: yes") as server:
        assert await tried(wire(server, ProviderKind.OPENAI_CHAT)) == KeyTrial(good=True)
        assert [r.path for r in server.requests] == ["/v1/models", "/v1/chat/completions"]
    async with ModelServer(faults=["echo at 2"]) as server:
        trial = await tried(wire(server, ProviderKind.OPENAI_CHAT))
    assert not trial.good
    assert trial.why
    assert KEY not in trial.why


@pytest.mark.req("models:K6")
async def test_a_server_that_is_not_there_is_told():
    async with Answers({}) as server:
        gone = server.port
    trial = await soon(try_key(at(gone), "far/m"))
    assert not trial.good
    assert "cannot be reached" in trial.why


async def test_a_key_that_no_header_can_hold_is_not_quoted():
    settings = ProviderSettings(ProviderKind.OPENAI_CHAT, base_url="http://127.0.0.1:1/v1")
    provider = HttpProvider(
        "far", dialect_of(settings.kind), settings, "bad\nkey-1234567", lambda _: ModelInfo("far/m"), Pace()
    )
    trial = await soon(try_key(provider, ""))
    assert (trial.good, "key-1234567" in trial.why) == (False, False)


async def test_a_list_in_another_form_tells_no_names_but_the_key_is_good():
    async with Answers({"/v1/models": ["m1"]}) as server:
        assert await soon(try_key(at(server.port), "")) == KeyTrial(good=True)
