"""Summariser: one model call whose answer is a text for the engine, not for the people watching.

It is a step in the journal, so that what it used is counted; its words appear only as the item made of them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from quintet.domain.errors import ErrorInfo, ProviderFailed
from quintet.domain.event import StepFinished, StepRetried, StepStarted
from quintet.domain.ids import new_id
from quintet.domain.model import Chunk, Finish, FinishChunk, ModelRequest, RetryChunk, TextChunk, Usage, UsageChunk
from quintet.domain.ports import Provider
from quintet.domain.turn import Lease
from quintet.engine.feed import Feed
from quintet.engine.storable import storable

LONGEST = 100_000  # characters; a model that goes on beyond that repeats itself
CUT_OFF = "\n[The summary was cut off here.]"


class Summariser:
    def __init__(self, feed: Feed, lease: Lease, model: str) -> None:
        self.step = new_id("stp")
        self._feed = feed
        self._lease = lease
        self._model = model
        self._usage: Usage | None = None
        self._finish: Finish | None = None

    @property
    def started(self) -> StepStarted:
        return StepStarted(self.step, 0, self._model)

    def finished(self, error: ErrorInfo | None = None) -> StepFinished:
        return StepFinished(self.step, 0, self._model, self._finish, self._usage, error)

    async def text(self, provider: Provider, request: ModelRequest) -> str:
        """What the model says. ProviderFailed when it says nothing, refuses or does not stop."""
        pieces: list[str] = []
        size = 0
        chunks = provider.stream(request)
        try:
            async for chunk in chunks:
                match chunk:
                    case TextChunk(text=text):
                        pieces.append(text)
                        size += len(text)
                    case UsageChunk(usage=usage):
                        self._usage = usage
                    case FinishChunk(reason=reason):
                        self._finish = reason
                    case RetryChunk(attempt=attempt, wait_s=wait_s, reason=why):
                        await self._feed.say(self._lease, StepRetried(self.step, attempt, wait_s, why))
                if size > LONGEST:
                    raise ProviderFailed(f"The summary did not end after {LONGEST:,} characters.", reason="runaway")
        finally:
            await _close(chunks)
        return self._whole(storable("".join(pieces)).strip())

    def _whole(self, text: str) -> str:
        if self._finish is Finish.REFUSAL or not text:
            words = "refused to summarise" if self._finish is Finish.REFUSAL else "gave no summary"
            raise ProviderFailed(f"The model {words}.", reason="no_summary")
        return text + CUT_OFF if self._finish is Finish.LENGTH else text


async def _close(chunks: AsyncIterator[Chunk]) -> None:
    close = getattr(chunks, "aclose", None)
    if close is not None:
        await close()
