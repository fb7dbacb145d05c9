"""Echo: a model that plays Kimi's scripts (echo_script.py), one for each call, and then has nothing more to say.

Unlike the scripted model it counts its own calls: a script that fails is used up, and the next attempt gets the next.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence

import msgspec

from quintet.domain.errors import Invalid, ProviderFailed
from quintet.domain.model import Chunk, ModelRequest, RetryChunk
from quintet.providers.attempts import Pace, Waits, failed
from quintet.providers.echo_script import Simulated, Unreadable, chunks_of

BREATH = 64  # chunks between two looks at the event loop


class EchoProvider:
    def __init__(self, name: str, scripts: Sequence[str], *, max_retries: int = 3, pace: Pace | None = None) -> None:
        self._name = name
        self._scripts = deque(scripts)
        self._max_retries = max_retries
        self._pace = pace or Pace()

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        waits = Waits(self._max_retries, self._pace)
        while True:
            try:
                for count, chunk in enumerate(self._next(), 1):
                    yield chunk
                    if not count % BREATH:
                        await asyncio.sleep(0)
                return
            except Simulated as error:
                failure = error.failure
            wait_s = waits.next(failure)
            if wait_s is None:
                raise failed(self._name, failure, waits.attempt)
            most = self._max_retries + 1
            yield RetryChunk(waits.attempt, round(wait_s, 3), failure.words, failure.reason, most, failure.status)
            await asyncio.sleep(wait_s)

    def _next(self) -> list[Chunk]:
        try:
            if not self._scripts:
                raise Unreadable("The echo scripts are used up.")
            return chunks_of(self._scripts.popleft())
        except Unreadable as error:
            # No step to take for the person: whoever wrote the script reads the words, and some compare them.
            raise ProviderFailed(str(error), next_step="", reason="script") from None


def scripts_in(text: str) -> list[str] | None:
    """The scripts of a file that is a JSON array of strings; None when it is something else."""
    if not text.lstrip().startswith("["):
        return None
    try:
        return msgspec.json.decode(text.encode(), type=list[str])
    except msgspec.DecodeError as error:
        raise Invalid(f"it must be a JSON array of strings ({error})") from None
