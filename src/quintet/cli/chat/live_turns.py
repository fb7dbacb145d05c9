"""LiveTurns: which turns of a thread run or wait now, here or in another process."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from quintet.domain.errors import QuintetError
from quintet.domain.event import Event, ThreadDeleted, TurnFinished, TurnQueued, TurnStarted
from quintet.domain.turn import Turn, TurnState
from quintet.engine.turns import Turns


class LiveTurns:
    def __init__(
        self, turns: Turns, keep: Callable[[Coroutine[Any, Any, None]], object], fail: Callable[[QuintetError], None]
    ) -> None:
        self._turns = turns
        self._keep = keep
        self._fail = fail
        self._states: dict[str, TurnState] = {}  # by turn, in the order they came

    def __bool__(self) -> bool:
        return bool(self._states)

    @property
    def queued(self) -> int:
        return sum(state is TurnState.QUEUED for state in self._states.values())

    def begin(self, turns: Sequence[Turn]) -> None:
        """Another thread is looked at; these are live in it."""
        self._states = {}
        for turn in turns:
            self._live(turn.id, turn.state)

    def see(self, event: Event) -> None:
        match event.payload:
            case TurnQueued():
                self._live(event.turn, TurnState.QUEUED)
            case TurnStarted():
                self._live(event.turn, TurnState.RUNNING)
            case TurnFinished():
                self._states.pop(event.turn, None)
            case ThreadDeleted():
                self._states.clear()

    def _live(self, turn: str, state: TurnState) -> None:
        if turn not in self._states:
            self._keep(self._until_ended(turn))
        self._states[turn] = state

    async def _until_ended(self, turn: str) -> None:
        """Waiting also ends what a dead process left, and tells what a turn could not say itself."""
        try:
            await self._turns.wait(turn)
        except QuintetError as error:
            if self._states.pop(turn, None) is not None:
                self._fail(error)
