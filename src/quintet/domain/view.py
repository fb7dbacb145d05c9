"""View: which items clients and the model see. A pure fold over thread.view_changed; items themselves never move.

Ranges are of ordinals, both ends included. *Hidden* items are invisible to the model and marked for clients;
a *mark* (compaction or clear) changes only where the model starts reading.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


class ViewReason(StrEnum):
    REVERT = "revert"
    UNREVERT = "unrevert"
    COMPACTION = "compaction"
    CLEAR = "clear"
    REPLACE = "replace"


class Mark(msgspec.Struct, frozen=True, omit_defaults=True):
    """From when it was made (`at`, the last ordinal then), the model reads the summary and what follows `first`."""

    at: int
    first: int
    summary: int = 0  # ordinal of the summary item, 0 for a clear
    also: tuple[int, ...] = ()  # older items that stay whole, e.g. what the person asked for in the turn that runs


class View(msgspec.Struct, frozen=True, omit_defaults=True):
    hidden: tuple[tuple[int, int], ...] = ()
    reverted: tuple[int, int] | None = None  # hidden until unrevert; the next turn makes it final
    marks: tuple[Mark, ...] = ()

    def is_hidden(self, ordinal: int) -> bool:
        ranges = self.hidden if self.reverted is None else (*self.hidden, self.reverted)
        return any(low <= ordinal <= high for low, high in ranges)

    def mark(self) -> Mark | None:
        """The newest compaction or clear that is itself still visible."""
        for mark in reversed(self.marks):
            if not self.is_hidden(mark.summary or mark.at):
                return mark
        return None

    def model_ordinals(self, last: int) -> list[int]:
        """The ordinals a model is sent, in order: the summary, what stays whole, what was kept and what came after."""
        mark = self.mark()
        if mark is None:
            return [n for n in range(1, last + 1) if not self.is_hidden(n)]
        summaries = {m.summary for m in self.marks if m.summary}
        kept = [n for n in range(mark.first, last + 1) if n not in summaries and not self.is_hidden(n)]
        also = [n for n in mark.also if n < mark.first and not self.is_hidden(n)]
        return [mark.summary, *also, *kept] if mark.summary else kept


EVERYTHING = View()


def changed(
    view: View,
    reason: ViewReason,
    *,
    last: int,
    keep_through: int = 0,
    first_kept: int = 0,
    summary: int = 0,
    also: tuple[int, ...] = (),
) -> View:
    """The view after one change; `last` is the thread's last ordinal at that moment."""
    match reason:
        case ViewReason.REVERT:
            return _with(view, reverted=(keep_through + 1, last) if keep_through < last else None)
        case ViewReason.UNREVERT:
            return _with(view, reverted=None)
        case ViewReason.COMPACTION:
            return _with(view, marks=(*view.marks, Mark(last, first_kept, summary, also)))
        case ViewReason.CLEAR:
            return _with(view, marks=(*view.marks, Mark(last, last + 1)))
        case ViewReason.REPLACE:
            return View(hidden=((1, last),) if last else ())


def settled(view: View) -> View:
    """A new turn makes a revert final: the range stays hidden and marks made inside it are forgotten."""
    if view.reverted is None:
        return view
    low, high = view.reverted
    marks = tuple(m for m in view.marks if not low <= (m.summary or m.at) <= high)
    return View(hidden=(*view.hidden, view.reverted), marks=marks)


def forked(view: View, through: int) -> View:
    """The view of a fork that ends at `through`: hidden items were not copied, later compactions never happened."""
    return View(marks=tuple(m for m in view.marks if m.at <= through and not view.is_hidden(m.summary or m.at)))


def _with(
    view: View, *, reverted: tuple[int, int] | str | None = "same", marks: tuple[Mark, ...] | None = None
) -> View:
    kept = view.reverted if isinstance(reverted, str) else reverted
    return View(hidden=view.hidden, reverted=kept, marks=view.marks if marks is None else marks)
