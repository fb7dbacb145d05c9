"""StatusUpdate: how full the context is, what a step took, whether plan mode is on. Pure."""

from __future__ import annotations

from quintet.domain.event import StepFinished
from quintet.protocols.wire.models import StatusUpdate, TokenUsage


def after_step(said: StepFinished, window: int | None, *, plan_mode: bool | None) -> StatusUpdate:
    usage, answer = said.usage, said.answer_id or None
    if usage is None or usage.input_tokens is None:
        return StatusUpdate(message_id=answer, plan_mode=plan_mode)
    read, written = usage.cached_tokens or 0, usage.cache_written_tokens or 0
    other = max(0, usage.input_tokens - read - written)
    return StatusUpdate(
        context_usage=_share(usage.input_tokens, window),
        context_tokens=usage.input_tokens,
        max_context_tokens=window,
        token_usage=TokenUsage(other, usage.output_tokens or 0, read, written),
        message_id=answer,
        plan_mode=plan_mode,
    )


def filled(tokens: int, window: int | None) -> StatusUpdate:
    """Between steps: what the model will read is now so much."""
    usage = 0.0 if tokens == 0 else _share(tokens, window)
    return StatusUpdate(context_usage=usage, context_tokens=tokens, max_context_tokens=window)


def _share(tokens: int, window: int | None) -> float | None:
    return min(1.0, tokens / window) if window else None
