"""Ending: a turn's one terminal event, with everything that was still open settled in the same commit.

Once put together it is only ever repeated, never replaced.
"""

from __future__ import annotations

from collections.abc import Callable

from quintet.domain.errors import Cancelled, ErrorInfo, Interrupted, QuintetError
from quintet.domain.event import AnyPayload, ItemAdded, TurnFinished, TurnSteered
from quintet.domain.ids import new_id
from quintet.domain.item import Item, UserMessage
from quintet.domain.turn import TurnState
from quintet.engine.feed import Feed
from quintet.engine.running import RunningTurn

Leftovers = Callable[[ErrorInfo | None], list[AnyPayload]]


class Ending:
    """`leftovers` gives what the model and its calls left open."""

    def __init__(self, feed: Feed, running: RunningTurn, leftovers: Leftovers) -> None:
        self._feed = feed
        self._running = running
        self._leftovers = leftovers
        self._last: tuple[TurnFinished, list[AnyPayload]] | None = None  # the last commit, once it is put together

    @property
    def begun(self) -> bool:
        return self._last is not None

    async def finish(self, state: TurnState, steps: int, error: ErrorInfo | None = None) -> TurnFinished:
        await self._running.close()
        await self._running.moments.close()
        self._last = (TurnFinished(state, steps, error), [*self._leftovers(error), *self._steers()])
        return await self.again()

    async def finish_stopped(self, steps: int) -> TurnFinished:
        """Somebody cancelled the turn, or the process is being shut down."""
        stopped, reason = self._running.stopped_as, self._running.stop_reason
        assert stopped is not None
        words = f": {reason}" if reason else ""
        error: QuintetError = (
            Cancelled(f"The turn was cancelled{words}.")
            if stopped is TurnState.CANCELLED
            else Interrupted(f"The turn was interrupted{words}.")
        )
        return await self.finish(stopped, steps, error.info())

    async def again(self) -> TurnFinished:
        """The last commit, as it was put together; once more if it failed before."""
        assert self._last is not None
        finished, leftovers = self._last
        await self._feed.finish(self._running.lease, finished, leftovers)
        return finished

    def _steers(self) -> list[AnyPayload]:
        """What was accepted and the model has not seen becomes part of the thread."""
        lease, now = self._running.lease, self._feed.clock.now_ms()
        said: list[AnyPayload] = []
        for steer in self._running.steers if self._running.starter.keeps_steers else ():
            item = Item(new_id("itm"), lease.thread, lease.turn, 0, now, UserMessage(steer.parts, steered=True))
            said += [ItemAdded(item), TurnSteered(steer.id, item.id)]
        return said
