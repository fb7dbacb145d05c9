"""Compaction: when a thread grows too long for its model, older items give way to a summary of them.

Decides when, has the summary made, and commits it with the change of view. Items never move; what the model is told
beside them (the instructions of agent, project and person) is no part of this and cannot be summarised away.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from quintet.domain.compaction import recorded
from quintet.domain.errors import (
    STORAGE_ERRORS,
    Denied,
    ErrorInfo,
    Invalid,
    ProviderFailed,
    QuintetError,
    as_quintet_error,
)
from quintet.domain.event import AnyPayload, CompactionFinished, CompactionStarted, ItemAdded, ViewChanged
from quintet.domain.ids import new_id
from quintet.domain.item import Item, Summary, user_text
from quintet.domain.model import ModelRequest, Usage
from quintet.domain.view import ViewReason
from quintet.engine.candidates import Candidates
from quintet.engine.context import Context
from quintet.engine.cut import Cut, cut
from quintet.engine.feed import Feed
from quintet.engine.files_seen import files_lines
from quintet.engine.gauge import CHARACTERS_A_TOKEN, SHARE, Gauge, Room, rough_items, text_tokens
from quintet.engine.retelling import instructions, retold
from quintet.engine.running import RunningTurn
from quintet.engine.summariser import Summariser

KEPT = 0.2  # of the window: newest items that stay as they are
TOO_MANY_INEFFECTIVE = 2
LONG = 1_000  # rough tokens: a summary of that much should be shorter, of less it need not be
TRIMS = 3  # for one request that is refused as too long, each to half of what it was
THRESHOLD, REQUESTED, TOO_LONG = "threshold", "requested", "too_long"


class Compaction:
    """Of one turn. `request` is what would be sent to the model now."""

    def __init__(
        self,
        feed: Feed,
        running: RunningTurn,
        models: Candidates,
        context: Context,
        request: Callable[[], ModelRequest],
    ) -> None:
        self._feed = feed
        self._running = running
        self._models = models
        self._context = context
        self._request = request
        self._gauge = Gauge()
        self._record = running.thread.compaction
        self._tries = 0  # to make one refused request shorter
        self._trims = 0
        self._held: Denied | None = None  # a hook does not want it: asked once a turn, it gets no shorter by asking
        self._failure: QuintetError | None = None  # of the last compaction
        self._under_way: tuple[Summariser, int] | None = None  # with the size it began with

    @property
    def _room(self) -> Room | None:
        return Room.of(self._models.info, self._running.starter.compact_at or SHARE)

    async def make_room(self) -> None:
        """Before a request: compact where the model's window is known and nearly full."""
        room = self._room
        if room is None or self._gauge.tokens(self._request()) < room.threshold:
            return
        if self._may_try():
            await self._compact(THRESHOLD)
        if self._gauge.tokens(self._request()) > room.usable:
            await self._trim(THRESHOLD, room.threshold)

    def answered(self, request: ModelRequest, usage: Usage | None) -> None:
        """The model took the request, and may have counted it."""
        self._tries = self._trims = 0
        if usage is not None:
            self._gauge.measured(request, usage)

    async def refused(self, error: QuintetError) -> bool:
        """The model refused the request for its length. True when it is shorter now: ask again. Tries are counted, so
        that this comes to an end."""
        self._gauge.refused(self._request(), self._room)
        self._tries += 1
        due = self._tries == 1 and self._may_try()
        if due and await self._compact(TOO_LONG):
            return True
        if self._trims >= TRIMS:
            return False
        self._trims += 1
        return await self._trim(TOO_LONG, self._gauge.tokens(self._request()) // 2)

    def given_up(self, error: QuintetError) -> QuintetError:
        """What ends the turn when the model refuses and nothing could be made shorter."""
        if error.data.get("reason") != TOO_LONG:
            return error
        why = "Nothing in it can be summarised or left out any more"
        if self._record.ineffective >= TOO_MANY_INEFFECTIVE:
            why = f"The last {self._record.ineffective} compactions hardly helped"
        elif self._held:
            why = self._held.message.rstrip(".")
        elif self._record.failed:
            why = "Compacting it failed"
        return ProviderFailed(
            f"This thread is too long for {self._models.model}. {why}, so it is not tried again. ({error.message})",
            next_step="Choose a model with a larger context with `-m`, or go on in a new thread; "
            "`quintet threads compact` tries once more.",
            **error.data,
        )

    async def requested(self, wishes: str) -> None:
        """A person wants it: now, whatever happened before. Raises what it fails with."""
        if not await self._compact(REQUESTED, wishes) and self._failure is not None:
            raise self._failure

    def leftovers(self, error: ErrorInfo | None) -> list[AnyPayload]:
        """The end of a compaction that was cut off, for the turn's last commit. Nothing of it is kept."""
        if self._under_way is None:
            return []
        summariser, before = self._under_way
        self._under_way = None
        return [summariser.finished(error), CompactionFinished(tokens_before=before, error=error)]

    # --- with the model --------------------------------------------------------------------------------------------
    async def _compact(self, reason: str, wishes: str = "") -> bool:
        """Whether the thread is shorter now. A failure is told to whoever watches; the turn goes on without."""
        before = self._gauge.tokens(self._request())
        chosen = self._cut(resting=reason == REQUESTED)
        if chosen is None:
            self._failure = _nothing(self._context.seen())
            return False
        if not self._models.info.summarises:
            self._failure = _no_language_model(self._models.model)
            return False
        self._failure = self._held = await self._running.moments.before_compaction(_trigger(reason), before)
        if self._failure is not None:
            return False
        model, lease = self._models.model, self._running.lease
        summariser = Summariser(self._feed, lease, model)
        self._under_way = (summariser, before)
        await self._feed.say(lease, CompactionStarted(reason, before), summariser.started)
        try:
            request = self._summary_request(chosen, reason, wishes)
            text = await summariser.text(self._models.provider, request)
            item = await self._summary(text)
        except STORAGE_ERRORS:
            raise
        except Exception as error:
            return await self._fail(summariser, before, 0, as_quintet_error(error))
        return await self._commit(summariser, before, chosen, item, reason)

    def _may_try(self) -> bool:
        able = self._running.starter.compacts and self._models.info.summarises
        return able and self._held is None and self._record.may_try(self._context.last)

    def _cut(self, *, resting: bool) -> Cut | None:
        context, turn = self._context, self._running.lease.turn
        seen, room = context.seen(), self._room
        size = rough_items(seen)
        keep = int(KEPT * (min(self._gauge.rough(room.window), size) if room else size))
        if (wanted := self._running.starter.keep_recent) is not None:
            keep = wanted if room is None else min(wanted, self._gauge.rough(room.threshold) // 2)
        if resting:
            keep = max(keep, self._running.starter.keep_least)
        return cut(seen, keep, first=context.first_kept, turn=turn, resting=resting)

    def _summary_request(self, chosen: Cut, reason: str, wishes: str) -> ModelRequest:
        room, lease, words = self._room, self._running.lease, instructions(wishes)
        if room is not None:
            most = self._gauge.rough(room.threshold) * CHARACTERS_A_TOKEN - len(words)
        else:
            most = rough_items(chosen.older) * CHARACTERS_A_TOKEN
            most = most // 2 if reason == TOO_LONG else most * 2  # all of it, unless it may be what is too long
        told = Item(new_id("itm"), lease.thread, lease.turn, 1, 0, user_text(retold(chosen.older, most)))
        return replace(self._request(), instructions=words, items=(told,), tools=())

    async def _summary(self, text: str) -> Item:
        """The item to be added, masked as it will be stored, so that its size is the true one."""
        lease, journal = self._running.lease, self._feed.journal
        checkpoints = await journal.checkpoints(thread=lease.thread)
        files = files_lines(self._context.all(), checkpoints, self._running.thread.settings.cwd)
        body = Summary(self._feed.mask(f"{text}\n\n{files}" if files else text))
        # Nobody else adds items while this turn holds the thread, so the next ordinal is known.
        last = (await journal.thread(lease.thread)).last_ordinal
        return Item(new_id("itm"), lease.thread, lease.turn, last + 1, self._feed.clock.now_ms(), body)

    async def _commit(self, summariser: Summariser, before: int, chosen: Cut, item: Item, reason: str) -> bool:
        behind = self._context.compacted(item, chosen.first_kept, chosen.also)
        after = self._gauge.tokens(replace(self._request(), items=behind.for_model()))
        if after >= before:
            return await self._fail(summariser, before, after, _no_gain(reason, rough_items(chosen.older)))
        self._under_way = None
        change = ViewChanged(ViewReason.COMPACTION, 0, chosen.first_kept, item.ordinal, chosen.also)
        finished = CompactionFinished(item.id, before, after)
        await self._feed.say(self._running.lease, ItemAdded(item), change, summariser.finished(), finished)
        self._context.become(behind)
        self._remember(finished)
        await self._running.moments.after_compaction(_trigger(reason), after)
        return True

    async def _fail(self, summariser: Summariser, before: int, after: int, failure: QuintetError) -> bool:
        self._under_way = None
        self._failure = failure
        finished = CompactionFinished("", before, after, failure.info())
        await self._feed.say(self._running.lease, summariser.finished(failure.info()), finished)
        self._remember(finished)
        return False

    def _remember(self, finished: CompactionFinished) -> None:
        """The same fold as the journal's, for the rest of this turn."""
        self._record = recorded(
            self._record,
            last=self._context.last,
            before=finished.tokens_before,
            after=finished.tokens_after,
            summarised=bool(finished.summary_item),
            error=finished.error.code if finished.error else "",
        )

    # --- without ---------------------------------------------------------------------------------------------------
    async def _trim(self, reason: str, tokens: int) -> bool:
        """The last resort: notes instead of old results, for this turn's requests. The journal keeps them whole."""
        request = self._request()
        before = self._gauge.tokens(request)
        over = self._gauge.rough(before - tokens)
        trimmed = self._context.trimmed(rough_items(request.items) - over)
        after = self._gauge.tokens(replace(request, items=trimmed.for_model()))
        if after >= before:
            return False
        self._context.become(trimmed)
        finished = CompactionFinished("", before, after)
        await self._feed.say(self._running.lease, CompactionStarted(reason, before), finished)
        return True


def _no_language_model(model: str) -> QuintetError:
    return Invalid(
        f"{model} is no language model and cannot summarise; nothing was changed.",
        next_step="Connect a model (docs/howto/connect-a-model.md), then choose it: `-m`, or `/model` in chat.",
    )


def _nothing(seen: Sequence[Item]) -> QuintetError:
    """There is a summary only, or so little that it is left as it is: then with its size."""
    told = [item for item in seen if not isinstance(item.body, Summary)]
    size = {"text_tokens": text_tokens(seen)} if told else {}
    return Invalid(
        "There is nothing to compact in this thread.", next_step="Go on; it is compacted when it grows.", **size
    )


def _no_gain(reason: str, size: int) -> QuintetError:
    """Of a few words no summary is shorter; of many it is the model's fault."""
    if reason == REQUESTED and size < LONG:
        return Invalid(
            f"There is nothing to compact yet: the older part of this thread is about {size} tokens, and its summary "
            "was no shorter. Nothing was changed.",
            next_step="Go on; a thread is compacted by itself when it grows.",
        )
    return ProviderFailed("The summary was not shorter than what it stood for.")


def _trigger(reason: str) -> str:
    """As hooks know it."""
    return "manual" if reason == REQUESTED else "auto"
