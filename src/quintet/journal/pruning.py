"""Pruning: deltas go in seq order once nobody can need them, signals by age and number. Bounded steps."""

from __future__ import annotations

import msgspec

from quintet.journal.keys import KEY_LIFE_MS
from quintet.journal.transaction import Transaction

SPAN = 4_096  # how many numbers are looked at together
SPANS = 16  # and how often within one transaction
SIGNAL_LIFE_MS = 15 * 60 * 1000
SIGNALS_KEPT = 10_000


class Pruned(msgspec.Struct, frozen=True):
    """One step: deltas gone and their bytes, how far it looked, whether another step is due."""

    deltas: int
    size: int
    through: int
    more: bool


def prune_step(tx: Transaction, now_ms: int, grace_ms: int, looked: int) -> Pruned:
    """Up to number `looked` an earlier step found no deltas; none can have come since. The mark moves with what is
    gone, in one commit."""
    counter = tx.rows.counter()
    first = tx.rows.first_kept(now_ms - grace_ms)
    # A turn that runs or ended within the grace keeps everything from its start on; items never outlive their turn
    # unfinished, so no unfinished item can lie below.
    end = tx.next - 1 if first is None else min(first, tx.next) - 1
    through, count, size, spans = max(counter.pruned_through, looked), 0, 0, 0
    while not count and through < end and spans < SPANS:
        after, through = through, min(end, through + SPAN)
        count, size = tx.rows.drop_deltas(after, through)
        spans += 1
    if count:  # when nothing is gone nobody may be told of a gap
        tx.rows.set_marks(pruned_through=through, signals_through=counter.signals_through)
    return Pruned(count, size, through, through < end)


def prune_signals(tx: Transaction, now_ms: int) -> int:
    counter = tx.rows.counter()
    count, through = tx.rows.drop_signals(now_ms - SIGNAL_LIFE_MS, SIGNALS_KEPT)
    if count:
        through = max(through, counter.signals_through)
        tx.rows.set_marks(pruned_through=counter.pruned_through, signals_through=through)
    tx.rows.drop_keys(now_ms - KEY_LIFE_MS)
    return count
