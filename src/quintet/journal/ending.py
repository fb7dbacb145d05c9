"""A turn's one terminal event, however it ended; and, where it was a subagent's in the background, the notice of that
in the thread above, in the same commit: nobody waits for it in a call.
"""

from __future__ import annotations

from quintet.domain import event as ev
from quintet.domain.subagent import ended_notice
from quintet.journal.emitting import emit, turn_row
from quintet.journal.transaction import Transaction


def end_turn(tx: Transaction, finished: ev.TurnFinished, thread: str, turn: str) -> None:
    emit(tx, finished, thread, turn)
    if not turn_row(tx, turn).turn.background:
        return
    child = tx.any_thread(thread)
    above = tx.any_thread(child.parent) if child is not None else None
    if child is not None and above is not None and not above.deleted_ms:
        words = finished.error.message if finished.error else ""
        emit(tx, ev.NoticePosted(ended_notice(child, finished.state, words, tx.now_ms)), above.id)
