"""How amounts are written for people: tokens, dollars and shares, and what is unknown as unknown."""

from __future__ import annotations

from quintet.domain.model import ModelInfo
from quintet.engine.costs import Tally, dollars


def tokens(count: int | None) -> str:
    if count is None:
        return "?"
    if count < 10_000:
        return f"{count:,}"
    return f"{count / 1_000_000:.1f}M" if count >= 1_000_000 else f"{count / 1000:.0f}k"


def price(amount: float | None) -> str:
    if amount is None:
        return "?"
    return f"{amount:.2f}" if amount % 1 and round(amount, 2) == amount else f"{amount:g}"


def prices(info: ModelInfo) -> str:
    """Dollars per million tokens: in, from the cache, out."""
    if info.input_price is None or info.output_price is None:
        return "price unknown"
    if not info.input_price and not info.output_price:
        return "free"
    cached = f" (cached ${price(info.cached_price)})" if info.cached_price is not None else ""
    about = "about " if info.price_reported else ""
    return f"{about}${price(info.input_price)} in{cached}, ${price(info.output_price)} out"


def cost(tally: Tally) -> str:
    """What is known of a cost, and that it is not all where it is not."""
    known = f"{'' if tally.exact else 'about '}{dollars(tally.usd)}"
    if not tally.unknown_cost:
        return known
    return "unknown" if tally.unknown_cost == tally.steps else f"{known} + unknown"


def share(part: float | None) -> str:
    return "?" if part is None else f"{part:.0%}"


def used(tally: Tally) -> str:
    if tally.unknown_usage == tally.steps:
        return f"tokens unknown, cost {cost(tally)}"
    return (
        f"{tokens(tally.input_tokens)} in ({share(tally.cache_hits)} from the cache), "
        f"{tokens(tally.output_tokens)} out, cost {cost(tally)}"
    )
