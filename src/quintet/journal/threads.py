"""Threads and projects as rows: made, deleted, erased step by step. Each rule is one transaction."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from quintet.domain import event as ev
from quintet.domain.errors import Busy, Conflict
from quintet.domain.event import Event
from quintet.domain.ids import new_id
from quintet.domain.item import Item
from quintet.domain.project import DEFAULT, NAME_ALONE, Project, root_of_name, slug
from quintet.domain.thread import Handle, Thread, ThreadSettings
from quintet.domain.turn import ClientKey
from quintet.domain.view import ViewReason
from quintet.journal.emitting import emit
from quintet.journal.keys import keep_key, known_key
from quintet.journal.recovery import end_dead
from quintet.journal.transaction import Transaction

ERASE_STEP = 500


def create_thread(
    tx: Transaction,
    thread: Thread,
    handle: Handle | None,
    items: Sequence[Item],
    *,
    takes_name: bool = False,
    key: ClientKey | None = None,
) -> Thread:
    before = known_key(tx, key) if key is not None else None
    made = tx.any_thread(before.thread) if before is not None else None
    if made is not None and not made.deleted_ms:
        return made
    if key is not None:
        keep_key(tx, key, thread.id)
    if thread.project.startswith(NAME_ALONE):
        thread = replace(thread, project=named_project(tx, thread.project.removeprefix(NAME_ALONE)).id)
    fresh = replace(
        thread,
        created_ms=thread.created_ms or tx.now_ms,
        updated_ms=thread.updated_ms or tx.now_ms,
        last_ordinal=0,
        owner="",
        epoch=0,
        active_turn="",
        deleted_ms=0,
    )
    if tx.rows.thread(thread.id) is not None:
        raise Conflict(f"There is a thread {thread.id} already.", thread=thread.id)
    tx.rows.insert_thread(fresh)
    emit(tx, ev.ThreadCreated(fresh), thread.id)
    if handle is not None:
        live = tx.rows.handle(handle.protocol, handle.scope, handle.external_id)
        if live is not None and not live.deleted_ms and not takes_name:
            raise Conflict(f"{handle.external_id!r} names another thread already.", thread=live.thread)
        tx.rows.drop_handle(handle, tx.now_ms)
        tx.rows.insert_handle(replace(handle, thread=thread.id, deleted_ms=0))
    for item in items:
        emit(tx, ev.ItemAdded(item), thread.id)
    tx.put_thread(replace(tx.thread(thread.id), updated_ms=fresh.updated_ms))
    return tx.thread(thread.id)


def replace_items(tx: Transaction, thread: str, items: Sequence[Item]) -> list[Event]:
    """Hide everything and put these items in its place."""
    _idle(tx, thread)
    before = len(tx.events)
    emit(tx, ev.ViewChanged(ViewReason.REPLACE), thread)
    for item in items:
        emit(tx, ev.ItemAdded(replace(item, ordinal=0)), thread)
    return tx.events[before:]


def add_items(tx: Transaction, thread: str, items: Sequence[Item]) -> list[Event]:
    """Put these behind what is there."""
    _idle(tx, thread)
    before = len(tx.events)
    for item in items:
        emit(tx, ev.ItemAdded(replace(item, ordinal=0)), thread)
    return tx.events[before:]


def _idle(tx: Transaction, thread: str) -> None:
    end_dead(tx, thread)
    for row in tx.rows.turns(thread, live=True):
        raise Busy("A turn is running or waiting in this thread.", owner=row.turn.runner, turn=row.turn.id)


def add_handle(tx: Transaction, handle: Handle) -> Handle:
    """One more name for a thread; the same name again is no change."""
    tx.thread(handle.thread)
    live = tx.rows.handle(handle.protocol, handle.scope, handle.external_id)
    if live is not None and not live.deleted_ms:
        if live.thread != handle.thread:
            raise Conflict(f"{handle.external_id!r} names another thread already.", thread=live.thread)
        return live
    tx.rows.insert_handle(replace(handle, deleted_ms=0))
    return replace(handle, deleted_ms=0)


def delete_thread(tx: Transaction, thread: str) -> list[str]:
    """thread.deleted for it and everything below it, deepest first; their rows go afterwards."""
    end_dead(tx, thread)
    doomed = _below(tx, thread)
    for here in doomed:
        for row in tx.rows.turns(here.id, live=True):
            raise Busy("A turn is running or waiting in this thread.", owner=row.turn.runner, turn=row.turn.id)
    for here in doomed:
        emit(tx, ev.ThreadDeleted(), here.id)
    return [here.id for here in doomed]


def _below(tx: Transaction, thread: str) -> list[Thread]:
    tree = [t for t in tx.rows.tree(tx.thread(thread).root) if not t.deleted_ms]
    doomed = {thread}
    for here in reversed(tree):  # shallowest first, so that a parent is known before its children
        if here.parent in doomed:
            doomed.add(here.id)
    return [t for t in tree if t.id in doomed]


def erase_step(tx: Transaction, thread: str) -> bool:
    """One bounded step of an erasure; False when nothing is left but the tombstone and its thread.deleted."""
    gone = tx.any_thread(thread)
    if gone is None or not gone.deleted_ms:
        return False
    if tx.rows.erase_some(thread, ERASE_STEP):
        return True
    tx.rows.erase_rest(thread)
    tx.put_thread(_tombstone(gone))
    return False


def _tombstone(gone: Thread) -> Thread:
    """What is kept is named, not what goes: whatever a thread may have some day goes by itself."""
    return Thread(
        gone.id,
        gone.root,
        gone.project,
        "",
        ThreadSettings(""),
        gone.created_ms,
        gone.updated_ms,
        parent=gone.parent,
        depth=gone.depth,
        epoch=gone.epoch,
        deleted_ms=gone.deleted_ms,
    )


def project(tx: Transaction, root: str, name: str) -> Project:
    known = tx.rows.projects()
    for found in known:
        if found.root == root:
            return found
    taken = {DEFAULT, *(p.name for p in known)}
    base = slug(name)
    free = next(n for n in _numbered(base, len(taken) + 2) if n not in taken)
    return _added(tx, Project(new_id("prj"), root, free))


def named_project(tx: Transaction, name: str) -> Project:
    """The project of this name; one that is a name alone where there is none."""
    for found in tx.rows.projects():
        if found.name == name:
            return found
    return _added(tx, Project(new_id("prj"), root_of_name(name), name))


def _added(tx: Transaction, fresh: Project) -> Project:
    tx.rows.insert_project(fresh)
    emit(tx, ev.ProjectAdded(fresh))
    return fresh


def _numbered(base: str, count: int) -> list[str]:
    return [base, *(f"{base}-{n}" for n in range(2, count + 2))]
