"""Reading: rows become nouns again, checked on the way. Knows no particular store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from quintet.domain import event as ev
from quintet.domain.errors import NotFound, StorageDamaged
from quintet.domain.event import AnyPayload, Event, EventPage, Marks
from quintet.domain.grant import Grant, Scope
from quintet.domain.interaction import Interaction
from quintet.domain.item import Damaged, Item, UserMessage
from quintet.domain.thread import Thread
from quintet.domain.turn import Turn, TurnState
from quintet.journal.codec import encode, event_holds, item_of, payload_of
from quintet.journal.rows import EventRow, Reads, TurnRow

MAX_PAGE = 5_000
MOST_LOOKED_THROUGH = 50_000


def marks(rows: Reads) -> Marks:
    counter = rows.counter()
    return Marks(counter.next - 1, counter.pruned_through, counter.signals_through)


def events(rows: Reads, after: int, root: str, limit: int) -> list[Event]:
    return decoded(rows, rows.events(after, root, min(max(limit, 0), MAX_PAGE)))


def events_of(rows: Reads, after: int, project: str, limit: int) -> EventPage:
    """Looks through so many numbers at most: a large store with little of this project is no reason to hold up all
    who read."""
    last = rows.counter().next - 1
    most, through = min(max(limit, 1), MAX_PAGE), min(after + MOST_LOOKED_THROUGH, last)
    found = decoded(rows, rows.project_events(after, through, project, most))
    if len(found) == most:
        through = found[-1].seq
    return EventPage(found, max(through, after), through < last)


def facts(rows: Reads, after: int, root: str, limit: int) -> list[Event]:
    return decoded(rows, rows.facts(after, root, min(max(limit, 0), MAX_PAGE)))


def decoded(rows: Reads, found: Sequence[EventRow]) -> list[Event]:
    """Event rows as events; what another row holds is fetched, what does not match its checksum is marked damaged."""
    items = _items_of(rows, found)
    out = []
    for row in found:
        if row.kind == "item.added":
            payload = _item_added(row, items)
        elif row.kind in ELSEWHERE:
            payload = _from_elsewhere(rows, row)
        else:
            payload = payload_of(row)
        out.append(
            Event(row.seq, row.kind, row.at_ms, payload, row.thread, row.root, row.turn, damaged=payload is None)
        )
    return out


def _items_of(rows: Reads, found: Iterable[EventRow]) -> dict[tuple[str, int], Item]:
    """All items these events speak of, one range per thread instead of one look-up per event."""
    ranges: dict[str, tuple[int, int]] = {}
    for row in found:
        if row.kind == "item.added" and row.body.isdigit():
            n = int(row.body)
            low, high = ranges.get(row.thread, (n, n))
            ranges[row.thread] = (min(low, n), max(high, n))
    return {
        (item.thread, item.ordinal): item_of(item)
        for thread, (low, high) in ranges.items()
        for item in rows.item_range(thread, low, high)
    }


def _item_added(row: EventRow, items: dict[tuple[str, int], Item]) -> AnyPayload | None:
    if not event_holds(row, row.body) or not row.body.isdigit():
        return None
    item = items.get((row.thread, int(row.body)))
    return None if item is None or isinstance(item.body, Damaged) else ev.ItemAdded(item)


ELSEWHERE = {"turn.queued", "interaction.requested", "interaction.resolved", "command.posted"}


def _from_elsewhere(rows: Reads, row: EventRow) -> AnyPayload | None:
    """The payload as it was first published. Its checksum covers the other row, so it is encoded again to compare."""
    try:
        payload = _fetched(rows, row)
    except (msgspec.MsgspecError, UnicodeDecodeError, StorageDamaged):
        return None
    return payload if payload is not None and event_holds(row, encode(payload)) else None


def _fetched(rows: Reads, row: EventRow) -> AnyPayload | None:
    if row.kind == "turn.queued":
        kept = rows.turn(row.turn)
        if kept is None:
            return None
        return ev.TurnQueued(as_queued(replace(whole_turn(rows, kept), mode=kept.mode)))
    name = row.body.decode()
    if row.kind == "command.posted":
        command = rows.command(name)
        return None if command is None else ev.CommandPosted(replace(command, outcome=None, detail=""))
    asked = rows.interaction(name)
    if asked is None:
        return None
    if row.kind == "interaction.requested":
        return ev.InteractionRequested(replace(asked, decision=None))
    return None if asked.decision is None else ev.InteractionResolved(asked.id, asked.call_id, asked.decision)


def as_queued(turn: Turn) -> Turn:
    """The turn as it was before anything happened to it: what turn.queued says, however often it is read."""
    return replace(turn, state=TurnState.QUEUED, started_ms=0, finished_ms=0, error=None, cancelling=False, input=0)


def whole_turn(rows: Reads, row: TurnRow) -> Turn:
    """The turn with its input, which a claimed one keeps in its first item."""
    if not row.input_ordinal:
        return row.turn
    for item in rows.item_range(row.turn.thread, row.input_ordinal, row.input_ordinal):
        body = item_of(item).body
        if isinstance(body, UserMessage):
            return replace(row.turn, parts=body.parts, input=row.input_ordinal)
    raise StorageDamaged(f"The input of the turn {row.turn.id} is damaged.", turn=row.turn.id)


def turn(rows: Reads, turn: str) -> Turn:
    row = rows.turn(turn)
    if row is None:
        raise NotFound(f"There is no turn {turn}.", turn=turn)
    return whole_turn(rows, row)


def began(rows: Reads, turn: str) -> int:
    row = rows.turn(turn)
    if row is None:
        raise NotFound(f"There is no turn {turn}.", turn=turn)
    return row.started_seq


def turns(rows: Reads, thread: str, *, live: bool) -> list[Turn]:
    """One damaged input does not hide the other turns: that turn comes without its parts."""
    out = []
    for row in rows.turns(thread, live=live):
        try:
            out.append(whole_turn(rows, row))
        except StorageDamaged:
            out.append(row.turn)
    return out


def thread(rows: Reads, thread: str) -> Thread:
    found = rows.thread(thread)
    if found is None or found.deleted_ms:
        raise NotFound(f"There is no thread {thread}.", thread=thread)
    return found


def tree(rows: Reads, here: str) -> list[Thread]:
    return [found for found in rows.tree(thread(rows, here).root) if not found.deleted_ms]


def items(rows: Reads, thread: str, after: int, limit: int, *, newest: bool) -> list[Item]:
    found = rows.thread(thread)
    if found is None or found.deleted_ms:
        raise NotFound(f"There is no thread {thread}.", thread=thread)
    return [item_of(row) for row in rows.items(thread, after, min(max(limit, 0), MAX_PAGE), newest=newest)]


def interaction(rows: Reads, interaction: str) -> Interaction:
    found = rows.interaction(interaction)
    if found is None:
        raise NotFound(f"There is no request {interaction}.", interaction=interaction)
    return found


def grants(rows: Reads, root: str, project: str, now_ms: int) -> list[Grant]:
    live = [g for g in rows.grants() if g.live(now_ms)]
    if not root and not project:
        return live
    return [
        g
        for g in live
        if g.scope is Scope.ALWAYS
        or (g.scope is Scope.PROJECT and g.project == project)
        or (g.scope in (Scope.THREAD, Scope.CALL) and g.thread == root)
    ]


def checkpoints(rows: Reads, thread: str, after: int) -> list[Event]:
    return decoded(rows, rows.checkpoints(thread, after))


def open_checkpoints(rows: Reads) -> list[Event]:
    """Of turns that run now, or whose process died in them: what was put aside and not settled yet."""
    found: list[Event] = []
    for here in rows.owned():
        turn = rows.turn(here.active_turn)
        made: dict[str, Event] = {}
        for event in checkpoints(rows, here.id, turn.started_seq) if turn is not None else ():
            if isinstance(event.payload, ev.CheckpointMade):
                made[event.payload.call_id] = event
            elif isinstance(event.payload, ev.CheckpointSettled):
                made.pop(event.payload.call_id, None)
        found += made.values()
    return found


def usage(rows: Reads, after: int, since_ms: int, root: str, limit: int) -> list[Event]:
    """Steps belong to turns, so whatever was used since then was used after the first of the turns that ended later,
    or have not ended, began. By their numbers, so a clock that was set back hides nothing of them."""
    if since_ms:
        begun = rows.first_begun(since_ms)
        if begun is None:
            return []
        after = max(after, begun - 1)
    return decoded(rows, rows.usage(after, root, min(max(limit, 0), MAX_PAGE)))


def unknown_effects(rows: Reads, thread: str) -> list[Event]:
    found = [row for seq in rows.unknown_effects(thread) if (row := rows.event(seq)) is not None]
    return decoded(rows, found)
