"""Steps: how far a thread's files were taken back since its last turn, one step per undo, and the way forward again.

Pure: a fold over the restorations since that turn. Knows neither the disk nor the view.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from quintet.domain.view import ViewReason
from quintet.engine.changes import Restore

END = -1  # the place behind the thread's last item: nothing is taken back


class Step(msgspec.Struct):
    """Files were taken back to what they were after item `to`."""

    to: int
    restores: list[Restore]


class Steps(msgspec.Struct):
    back: list[Step] = []  # the last is where the files stand
    redone: list[Restore] = []  # what the last thing, where it was a redo, took forward, and what it did for that
    last: Restore | None = None

    @property
    def at(self) -> int:
        return self.back[-1].to if self.back else END

    def leads_to(self, place: int) -> bool:
        """Whether the files stood at this place on the way to where they are."""
        return place == END or any(step.to == place for step in self.back[:-1])

    @property
    def before(self) -> int:
        """Where they stood one step ago."""
        return self.back[-2].to if len(self.back) > 1 else END

    def since(self, place: int) -> list[Restore]:
        """Everything done since the files stood there, oldest first."""
        above = len(self.back)
        while above and self.back[above - 1].to != place:
            above -= 1
        return [restore for step in self.back[above:] for restore in step.restores]


def steps_of(restores: Sequence[Restore]) -> Steps:
    steps = Steps([], [])
    for restore in restores:
        fact, steps.last = restore.fact, restore
        if fact.reason is ViewReason.UNREVERT:
            _forward(steps, restore)
            continue
        steps.redone = []
        to = max(fact.keep_through, 0)  # records of an older version do not say it: one step for all of them
        taken: list[Restore] = []
        while steps.back and steps.back[-1].to <= to:
            taken = [*steps.back.pop().restores, *taken]  # the same once more, or forward to a place between two steps
        steps.back.append(Step(to, [*taken, restore]))
    return steps


def _forward(steps: Steps, restore: Restore) -> None:
    taken: list[Restore] = []
    while steps.at not in (restore.fact.keep_through, END):
        taken = [*steps.back.pop().restores, *taken]
    # One that takes nothing forward goes on with the redo before it: what that had left alone, or the next directory.
    steps.redone = [*(taken or steps.redone), restore]
