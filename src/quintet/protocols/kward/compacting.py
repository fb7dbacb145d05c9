"""sessions/compact, and what a client is told when a thread is made shorter by itself."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec import UNSET

from quintet.domain import event as ev
from quintet.domain.errors import ErrorInfo
from quintet.domain.item import Summary
from quintet.domain.thread import Thread
from quintet.domain.turn import TurnState
from quintet.engine.files_seen import files_seen
from quintet.engine.subscription import replay
from quintet.protocols.kward import models as wire
from quintet.protocols.kward.client import Client, Opened, thread_of
from quintet.protocols.kward.errors import Failed
from quintet.protocols.kward.house import House
from quintet.protocols.kward.times import iso
from quintet.protocols.kward.transcript import counted, whole
from quintet.rpc.call import Call
from quintet.rpc.connection import Connection
from quintet.rpc.rows import Family

COMPACTING = Family("compacting", form="either")
NOTHING, ALREADY = "Nothing to compact", "Already compacted"
EMPTY = "Compaction produced an empty summary; context was not changed."


@COMPACTING.method(
    "sessions/compact",
    params=wire.CompactParams,
    result=wire.Compacted,
    summary="Have the older part of a conversation summarised; its records stay.",
)
async def compact(call: Call[Client], params: wire.CompactParams) -> wire.Compacted:
    client, house = call.state, call.state.house
    shortening = Shortening(call.connection, client.session(params.session_id))
    async with client.in_order(params.session_id) as session:
        await shortening.begun()
        session.compacting += 1
        # Only its place in the queue is waited for here: while it is summarised, other requests are answered.
        working = asyncio.ensure_future(_compacted(house, session, params.custom_instructions or ""))
        await _queued(house, session, working)
    try:
        result = await working
    except BaseException as error:
        await shortening.end(None, str(error) or type(error).__name__)
        raise
    finally:
        session.compacting -= 1
    await shortening.end(result, None)
    return result


async def _queued(house: House, session: Opened, working: asyncio.Future[wire.Compacted]) -> None:
    def ours(event: ev.Event) -> bool:
        return event.thread == session.thread and isinstance(event.payload, ev.TurnQueued)

    with house.feed.watching(ours) as seen:
        waited: set[asyncio.Future[Any]] = {seen, working}
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)


async def _compacted(house: House, session: Opened, wishes: str) -> wire.Compacted:
    thread = await thread_of(house, session)
    mark = thread.view.mark()
    if mark is not None and mark.summary and mark.at == thread.last_ordinal:
        raise Failed(ALREADY)
    before = (await house.feed.journal.marks()).last
    started = await house.turns.compact(thread.id, house.starter(), wishes)
    ended = await house.turns.wait(started.turn.id)
    if ended.state is not TurnState.DONE:
        raise Failed(words_of(ended.error))
    finished = await _outcome(house, thread, started.turn.id, before)
    if finished is None or not finished.summary_item:
        raise Failed(words_of(finished.error if finished else None))
    house.seen.forget(thread.id)
    return await result_of(house, thread.id, finished)


async def _outcome(house: House, thread: Thread, turn: str, after: int) -> ev.CompactionFinished | None:
    """What the turn's own event says of it."""
    found: ev.CompactionFinished | None = None
    async for event in replay(house.feed.journal, after, thread.root):
        if isinstance(event, ev.Event) and event.turn == turn and isinstance(event.payload, ev.CompactionFinished):
            found = event.payload
    return found


def words_of(error: ErrorInfo | None) -> str:
    """In Kward's words where it has some."""
    if error is None or error.code == "invalid":
        return NOTHING
    return EMPTY if error.data.get("reason") == "no_summary" else error.message


async def result_of(house: House, thread: str, finished: ev.CompactionFinished) -> wire.Compacted:
    now = await house.feed.journal.thread(thread)
    items = await house.threads.items(thread)
    summary = next(
        (i.body for i in items if i.id == finished.summary_item and isinstance(i.body, Summary)), Summary("")
    )
    mark = now.view.mark()
    told = counted(whole(now, items))
    kept = next((n for n, m in enumerate(told) if mark and m.items[-1].ordinal >= mark.first), None)
    read, modified = files_seen(items, await house.feed.journal.checkpoints(thread=thread), now.settings.cwd)
    details = wire.CompactDetails(sorted(set(read)), sorted(set(modified)))
    entry = UNSET if kept is None else f"message:{kept}"
    return wire.Compacted(summary.text, finished.tokens_before, details, entry)


class Shortening:
    """One compaction of a session, as its client is told of it."""

    def __init__(self, connection: Connection[Client], session: Opened) -> None:
        self._connection = connection
        self._house = connection.state.house
        self._session = session

    async def begun(self) -> None:
        await self._tell("compactionStart", {})

    async def over(self, finished: ev.CompactionFinished) -> None:
        """By itself, in the middle of a turn."""
        if finished.summary_item:
            self._house.seen.forget(self._session.thread)
            await self.end(await result_of(self._house, self._session.thread, finished), None)
        else:
            await self.end(None, finished.error.message if finished.error else None)

    async def end(self, result: wire.Compacted | None, words: str | None) -> None:
        told = {"result": result, "aborted": words is not None, "willRetry": False, "errorMessage": words}
        await self._tell("compactionEnd", told)

    async def _tell(self, type: str, payload: Any) -> None:
        now = iso(self._house.feed.clock.now_ms())
        await self._connection.notify("session/event", wire.SessionEvent(now, self._session.id, type, payload))
