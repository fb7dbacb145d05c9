"""What is known of models: from the catalog, from the file, and where nothing is known."""

from __future__ import annotations

import re

import msgspec
import pytest

from quintet.domain.item import user_text
from quintet.domain.model import ModelInfo, Usage
from quintet.engine.costs import cost_of
from quintet.providers.catalog import catalog, known
from quintet.providers.settings import ModelSettings, ProviderKind, ProviderSettings
from quintet.providers.table import ModelTable
from tests.fakes.model_server import ModelServer
from tests.fakes.requests import all_chunks, request_of
from tests.fakes.waiting import soon
from tests.fakes.wires import wire

KEYS = {"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "b", "OPENROUTER_API_KEY": "c"}
GO = request_of([user_text("go")])
PRICES = ("input_price", "output_price", "cached_price", "cache_write_price")


def prices(info: ModelInfo) -> list[float | None]:
    return [getattr(info, name) for name in PRICES]


@pytest.mark.req("models:K1")
def test_every_vendor_says_when_its_prices_were_looked_up_and_where():
    for name, vendor in catalog().vendors.items():
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", vendor.as_of), name
        assert vendor.source.startswith("https://"), name
    names = [(v, n) for v, vendor in catalog().vendors.items() for e in vendor.models for n in e.names]
    assert len(names) == len(set(names))


@pytest.mark.req("models:K1")
def test_every_price_says_whether_it_was_seen_with_its_vendor_or_told_by_others_and_when():
    for vendor in catalog().vendors.values():
        for entry in vendor.models:
            assert bool(entry.seen) == (entry.input_price is not None), entry.names
            assert re.fullmatch(r"(20\d\d-\d\d-\d\d)?", entry.as_of), entry.names
    kinds = {e.seen for v in catalog().vendors.values() for e in v.models}
    assert kinds == {"", "vendor", "reported"}


@pytest.mark.req("models:K1")
def test_a_price_told_by_others_is_marked_and_one_a_person_wrote_is_not():
    table = ModelTable(environment=KEYS)
    assert not table.info("anthropic/claude-opus-5").price_reported
    told = table.info("openai/gpt-5-mini")
    assert told.price_reported
    assert told.as_of == "2026-06-28"
    assert not cost_of(Usage(10, 10), told).exact
    written = {"openai/gpt-5-mini": ModelSettings(input_price=1.0, output_price=2.0)}
    assert not ModelTable(models=written, environment=KEYS).info("openai/gpt-5-mini").price_reported
    half = {"openai/gpt-5-mini": ModelSettings(input_price=1.0)}
    assert ModelTable(models=half, environment=KEYS).info("openai/gpt-5-mini").price_reported, (
        "the other half is theirs"
    )
    far = ProviderSettings(ProviderKind.OPENAI_CHAT, base_url="https://gateway.example/v1", api_key="k")
    assert not ModelTable({"far": far}).info("far/gpt-5-mini").price_reported


@pytest.mark.req("models:K8")
@pytest.mark.parametrize(
    ("url", "model", "said", "name"),
    [
        ("https://api.openai.com/v1", "gpt-5", None, "max_completion_tokens"),
        ("https://api.openai.com/v1", "gpt-4o", None, "max_completion_tokens"),
        ("https://gateway.example/v1", "gpt-5", None, "max_completion_tokens"),
        ("https://openrouter.ai/api/v1", "openai/gpt-5", None, "max_tokens"),
        ("https://api.deepseek.com", "deepseek-v4-pro", None, "max_tokens"),
        ("https://api.moonshot.ai/v1", "kimi-k3", None, "max_tokens"),
        ("http://127.0.0.1:11434/v1", "gpt-5", None, "max_tokens"),  # whatever it is called, a server of one's own
        ("https://api.openai.com/v1", "of-tomorrow", None, "max_completion_tokens"),
        ("https://gateway.example/v1", "gpt-4o", None, "max_tokens"),
        ("https://mine.example/v1", "my-deployment", True, "max_completion_tokens"),
        ("https://api.openai.com/v1", "gpt-5", False, "max_tokens"),
    ],
)
async def test_a_limit_of_output_has_the_name_its_server_knows(url, model, said, name):
    """What is known of the model at its address, sent over a real wire."""
    settings = ModelSettings(max_output=77, thoughts_in_limit=said)
    far = ProviderSettings(ProviderKind.OPENAI_CHAT, base_url=url, api_key="k")
    info = ModelTable({"far": far}, {f"far/{model}": settings})._sent(f"far/{model}")
    async with ModelServer() as server:
        provider = wire(server, ProviderKind.OPENAI_CHAT, model=info)
        await soon(all_chunks(provider, GO))
        await provider.close()
    (body,) = (request.body for request in server.requests)
    assert {key: value for key, value in body.items() if key.startswith("max_")} == {name: 77}


@pytest.mark.req("models:K1")
def test_entries_make_sense_reading_the_cache_is_never_dearer_and_writing_it_never_cheaper():
    for vendor in catalog().vendors.values():
        for entry in vendor.models:
            assert (entry.input_price is None) == (entry.output_price is None), entry.names
            if entry.input_price is not None:
                assert 0 < (entry.cached_price or entry.input_price) <= entry.input_price < entry.output_price
                assert (entry.cache_write_price or entry.input_price) >= entry.input_price
            assert entry.max_output is None or entry.context_window > entry.max_output


@pytest.mark.req("models:K1")
@pytest.mark.parametrize(
    ("reference", "window", "input_price"),
    [
        ("anthropic/claude-sonnet-4-5", 200_000, 3.0),
        ("anthropic/claude-sonnet-4-5-20250929", 200_000, 3.0),
        ("anthropic/claude-opus-4-20250514", 200_000, 15.0),
        ("openai/gpt-5-mini", 272_000, 0.25),
        ("openai/gpt-5-2025-08-07", 272_000, 1.25),
        ("openrouter/anthropic/claude-sonnet-4.5", 200_000, 3.0),
        ("openrouter/anthropic/claude-sonnet-4.5:nitro", 200_000, None),
        ("openrouter/deepseek/deepseek-v4-pro", 1_000_000, None),
        ("openrouter/nobody/nothing", None, None),
        ("openai/gpt-5-mini-tuned-by-us", None, None),
        ("openai/gpt-5x", None, None),
        ("nobody/gpt-5", None, None),
    ],
)
def test_a_model_is_known_by_its_name_at_the_address_of_its_vendor(reference, window, input_price):
    info = ModelTable(environment=KEYS).info(reference)
    assert (info.context_window, info.input_price) == (window, input_price)
    assert bool(info.as_of) == (window is not None)


@pytest.mark.req("models:K2")
@pytest.mark.parametrize(
    ("url", "window", "price"),
    [
        ("https://api.anthropic.com/v1", 200_000, 3.0),
        ("https://gateway.example/v1", 200_000, None),  # the same model at another's price
        ("http://127.0.0.1:11434/v1", None, None),  # whoever started that server chose its window
        ("http://192.168.1.9:8000/v1", None, None),
    ],
)
def test_a_price_holds_only_at_the_address_it_was_looked_up_for(url, window, price):
    far = ProviderSettings(ProviderKind.ANTHROPIC, base_url=url, api_key="k")
    info = ModelTable({"far": far}).info("far/claude-sonnet-4-5")
    assert (info.context_window, info.input_price, info.output_price) == (window, price, price and 15.0)


@pytest.mark.req("models:K2")
def test_what_the_file_says_goes_before_the_catalog_key_by_key():
    said = ModelSettings(context_window=50_000, vision=False, output_price=0.0)
    table = ModelTable(models={"anthropic/claude-sonnet-4-5": said}, environment=KEYS)
    info = table.info("anthropic/claude-sonnet-4-5")
    assert (info.context_window, info.max_output, info.vision, info.reasoning) == (50_000, 64_000, False, True)
    assert prices(info) == [3.0, 0.0, 0.3, 3.75]


@pytest.mark.req("models:K2")
def test_the_cache_prices_of_the_catalog_do_not_go_with_an_input_price_somebody_wrote():
    table = ModelTable(models={"anthropic/claude-sonnet-4-5": ModelSettings(input_price=1.0)}, environment=KEYS)
    assert prices(table.info("anthropic/claude-sonnet-4-5")) == [1.0, 15.0, None, None]
    given = ModelSettings(input_price=1.0, cached_price=0.5, cache_write_price=2.0)
    table = ModelTable(models={"anthropic/claude-sonnet-4-5": given}, environment=KEYS)
    assert prices(table.info("anthropic/claude-sonnet-4-5")) == [1.0, 15.0, 0.5, 2.0]


@pytest.mark.req("models:K2")
def test_what_nobody_knows_is_none_and_a_model_without_any_server_costs_nothing():
    table = ModelTable({"far": ProviderSettings(ProviderKind.OPENAI_CHAT, base_url="http://127.0.0.1:1/v1")})
    assert table.info("far/some-model") == ModelInfo("far/some-model")
    assert prices(table.info("offline/offline")) == [0.0, 0.0, None, None]


def test_a_catalogs_largest_output_is_asked_for_only_on_the_wire_that_demands_a_number():
    table = ModelTable(environment=KEYS)
    assert table._sent("anthropic/claude-sonnet-4-5").max_output == 64_000
    assert table._sent("openai/gpt-5").max_output is None
    table = ModelTable(models={"openai/gpt-5": ModelSettings(max_output=9)}, environment=KEYS)
    assert table._sent("openai/gpt-5").max_output == 9


async def test_what_is_known_of_a_model_is_what_its_requests_are_made_by():
    async with ModelServer() as server:
        far = ProviderSettings(ProviderKind.ANTHROPIC, base_url=server.url)
        table = ModelTable({"far": far}, {"far/m": ModelSettings(max_output=77)})
        await soon(all_chunks(table.resolve("far/m")[1], GO))
        await soon(all_chunks(table.resolve("far/n")[1], msgspec.structs.replace(GO, model="n")))
        await table.close()
    assert [r.body["max_tokens"] for r in server.requests] == [77, 8192]


def test_a_claude_of_a_router_is_the_vendors_own_with_another_spelling():
    found = known("https://openrouter.ai/api/v1", "anthropic/claude-opus-4.7")
    assert found is not None
    assert found.entry.names[0] == "claude-opus-4-7"
