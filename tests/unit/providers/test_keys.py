"""Where keys go and where they never go."""

from __future__ import annotations

import pytest

from quintet.domain.errors import ProviderFailed
from quintet.domain.item import user_text
from quintet.domain.model import RetryChunk
from quintet.providers.settings import ProviderKind
from tests.fakes.model_server import ModelServer
from tests.fakes.requests import all_chunks, request_of, text_in
from tests.fakes.waiting import soon
from tests.fakes.wires import KEY, WIRES, wire

GO = request_of([user_text("go")])


@pytest.fixture(params=WIRES, ids=str)
def kind(request: pytest.FixtureRequest) -> ProviderKind:
    return request.param


async def test_a_redirect_is_refused_and_the_key_goes_nowhere_else(kind: ProviderKind) -> None:
    async with ModelServer() as other, ModelServer(faults=[f"redirect={other.url}"]) as server:
        provider = wire(server, kind)
        with pytest.raises(ProviderFailed, match="redirects to another address"):
            await soon(all_chunks(provider, GO))
        await provider.close()
    assert other.connections == 0
    assert len(server.requests) == 1


async def test_a_proxy_of_the_environment_is_used_and_what_it_leaves_out_is_not(
    kind: ProviderKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ModelServer("text: by proxy") as proxy, ModelServer("text: direct") as server:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.removesuffix("/v1"))
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        said = []
        for url in ("http://far.invalid/v1", server.url):
            provider = wire(url, kind)
            said.append(text_in(await soon(all_chunks(provider, GO))))
            await provider.close()
    assert said == ["by proxy", "direct"]
    assert proxy.requests[0].path.startswith("http://far.invalid/v1/")


async def test_a_key_is_masked_in_what_is_told_of_a_retry(kind: ProviderKind) -> None:
    """Servers quote what they were sent in any error, also in those that pass."""
    async with ModelServer(f"error: overloaded_error {KEY} has too many friends") as server:
        provider = wire(server, kind)
        told = []
        with pytest.raises(ProviderFailed) as failed:
            async for chunk in provider.stream(GO):
                told.append(chunk)
        await provider.close()
    assert len([c for c in told if isinstance(c, RetryChunk)]) == 2
    assert KEY not in str(told)
    assert "[redacted] has too many friends" in failed.value.message


async def test_a_header_that_no_header_may_be_is_not_quoted(kind: ProviderKind) -> None:
    async with ModelServer() as server:
        provider = wire(server, kind, headers={"x-own": "secret-value\r\nx-other: 1"})
        with pytest.raises(ProviderFailed, match="holds what no header may") as failed:
            await soon(all_chunks(provider, GO))
        await provider.close()
    assert "secret-value" not in str(failed.value.info())
    assert not server.requests


async def test_an_address_that_cannot_be_is_told_in_one_line(kind: ProviderKind) -> None:
    provider = wire("http://127.0.0.1:nowhere/v1", kind)
    with pytest.raises(ProviderFailed, match="its address is wrong"):
        await soon(all_chunks(provider, GO))
    await provider.close()
