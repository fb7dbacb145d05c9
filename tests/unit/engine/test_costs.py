"""What steps cost, and what is said when nobody knows."""

from __future__ import annotations

import pytest

from quintet.domain.model import ModelInfo, Usage
from quintet.engine.costs import UNKNOWN, Cost, Tally, cost_of, dollars

PRICED = ModelInfo("a/b", input_price=10.0, output_price=100.0, cached_price=1.0, cache_write_price=20.0)
MILLION = 1_000_000


@pytest.mark.req("models:B1")
@pytest.mark.parametrize(
    ("usage", "usd"),
    [
        (Usage(MILLION, 0), 10.0),
        (Usage(0, MILLION), 100.0),
        (Usage(MILLION, MILLION, cached_tokens=MILLION), 101.0),
        (Usage(MILLION, 0, cached_tokens=MILLION // 2), 5.5),
        (Usage(MILLION, 0, cached_tokens=MILLION // 2, cache_written_tokens=MILLION // 4), 0.5 + 5.0 + 2.5),
        (Usage(0, 0), 0.0),
        (Usage(10, 0, cached_tokens=MILLION), 0.00001),  # no more can come from the cache than there was
    ],
)
def test_each_kind_of_token_has_its_own_price(usage, usd):
    assert cost_of(usage, PRICED) == Cost(pytest.approx(usd))


@pytest.mark.req("models:B1")
@pytest.mark.parametrize(
    ("usage", "info"),
    [
        (None, PRICED),
        (Usage(), PRICED),
        (Usage(5, None), PRICED),
        (Usage(None, 5), PRICED),
        (Usage(5, 5), ModelInfo("a/b")),
        (Usage(5, 5), ModelInfo("a/b", input_price=1.0)),
        (Usage(5, 5), ModelInfo("a/b", output_price=0.0)),
    ],
)
def test_an_unknown_usage_or_price_is_an_unknown_cost_never_nothing(usage, info):
    assert cost_of(usage, info) == UNKNOWN
    tally = Tally()
    tally.add(Usage(MILLION, 0), PRICED)
    tally.add(usage, info)
    assert (tally.cost, tally.usd, tally.unknown_cost, tally.steps) == (None, 10.0, 1, 2)


@pytest.mark.req("models:B1")
def test_what_costs_nothing_costs_nothing_even_when_nobody_counted():
    assert cost_of(None, ModelInfo("offline/offline", input_price=0.0, output_price=0.0)) == Cost(0.0)


@pytest.mark.req("models:B1")
@pytest.mark.parametrize(
    ("usage", "known", "cost"),
    [
        (Usage(MILLION, 0, cached_tokens=MILLION), {}, Cost(10.0, exact=False)),
        (Usage(MILLION, 0, cache_written_tokens=MILLION), {}, Cost(10.0, exact=False)),
        (Usage(MILLION, 0), {}, Cost(10.0)),
        (Usage(MILLION, 0), {"context_window": MILLION - 1}, Cost(10.0, exact=False)),
    ],
)
def test_what_had_to_be_priced_as_something_else_is_marked(usage, known, cost):
    assert cost_of(usage, ModelInfo("a/b", input_price=10.0, output_price=1.0, **known)) == cost
    tally = Tally()
    tally.add(usage, ModelInfo("a/b", input_price=10.0, output_price=1.0, **known))
    assert tally.exact is cost.exact


@pytest.mark.req("models:B5")
def test_the_cache_hit_ratio_is_of_the_input_and_unknown_without_any():
    tally = Tally()
    assert tally.cache_hits is None
    tally.add(Usage(80, 5, cached_tokens=60), PRICED)
    tally.add(Usage(20, 5), PRICED)
    assert tally.cache_hits == 0.6


def test_tallies_join():
    one, other = Tally(), Tally()
    one.add(Usage(MILLION, 0), PRICED)
    other.add(None, PRICED)
    one.join(other)
    assert one == Tally(2, MILLION, 0, 0, 10.0, unknown_cost=1, unknown_usage=1)


@pytest.mark.parametrize(("amount", "words"), [(0, "$0.00"), (0.0123, "$0.0123"), (1234.5, "$1,234.50")])
def test_small_sums_are_shown_with_more_digits(amount, words):
    assert dollars(amount) == words
