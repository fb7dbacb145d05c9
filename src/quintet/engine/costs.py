"""Costs: what steps used, times the price of the model that was used. What nobody knows is unknown, never nothing.

A projection: computed from step.finished events whenever it is asked for, with the prices as they are known then.
"""

from __future__ import annotations

import msgspec

from quintet.domain.model import ModelInfo, Usage

MILLION = 1_000_000


class Cost(msgspec.Struct, frozen=True):
    usd: float | None  # None: unknown
    exact: bool = True  # False: something in it had to be priced as something else


UNKNOWN = Cost(None)


def is_priced(info: ModelInfo) -> bool:
    return info.input_price is not None and info.output_price is not None


def cost_of(usage: Usage | None, info: ModelInfo) -> Cost:
    """Input without the cache at its price, what was read from the cache at that of the cache. Where that one is not
    known it is taken as plain input, which is marked."""
    if info.input_price is None or info.output_price is None:
        return UNKNOWN
    if not info.input_price and not info.output_price:
        return Cost(0.0)  # free, whatever was used
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return UNKNOWN
    read = min(usage.cached_tokens or 0, usage.input_tokens)
    written = min(usage.cache_written_tokens or 0, usage.input_tokens - read)
    read_price, write_price = (
        info.input_price if price is None else price for price in (info.cached_price, info.cache_write_price)
    )
    total = (
        (usage.input_tokens - read - written) * info.input_price
        + read * read_price
        + written * write_price
        + usage.output_tokens * info.output_price
    )
    guessed = (read and info.cached_price is None) or (written and info.cache_write_price is None)
    beyond = info.context_window is not None and usage.input_tokens > info.context_window  # may be billed higher
    return Cost(total / MILLION, exact=not (guessed or beyond or info.price_reported))


class Tally(msgspec.Struct):
    """A running sum of steps. Tokens are those the provider reported; steps it did not report are counted apart."""

    steps: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    usd: float = 0.0  # of what is known
    exact: bool = True
    unknown_cost: int = 0  # steps whose cost nobody knows
    unknown_usage: int = 0  # steps whose tokens nobody knows
    written_tokens: int = 0
    reasoning_tokens: int = 0

    def add(self, usage: Usage | None, info: ModelInfo) -> Cost:
        cost = cost_of(usage, info)
        self.steps += 1
        if usage is None or usage.input_tokens is None or usage.output_tokens is None:
            self.unknown_usage += 1
        if usage is not None:
            self.input_tokens += usage.input_tokens or 0
            self.output_tokens += usage.output_tokens or 0
            self.cached_tokens += usage.cached_tokens or 0
            self.written_tokens += usage.cache_written_tokens or 0
            self.reasoning_tokens += usage.reasoning_tokens or 0
        if cost.usd is None:
            self.unknown_cost += 1
        else:
            self.usd += cost.usd
            self.exact = self.exact and cost.exact
        return cost

    def join(self, other: Tally) -> None:
        self.exact = self.exact and other.exact
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def cost(self) -> float | None:
        """The whole cost; None as soon as a part of it is unknown."""
        return None if self.unknown_cost else self.usd

    @property
    def cache_hits(self) -> float | None:
        """Which part of the input came from the provider's cache."""
        return self.cached_tokens / self.input_tokens if self.input_tokens else None


_SUMS = tuple(name for name in Tally.__struct_fields__ if name != "exact")


def dollars(amount: float) -> str:
    """Two digits where that says enough, more for small sums."""
    return f"${amount:,.2f}" if amount >= 1 or not amount else f"${amount:.4f}"
