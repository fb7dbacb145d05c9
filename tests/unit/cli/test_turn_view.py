"""A turn on the terminal: what happened is said as it was."""

from __future__ import annotations

import io

import pytest

from quintet.cli.terminal import Screen
from quintet.cli.turn_view import TextView
from quintet.domain.errors import Cancelled
from quintet.domain.event import Event, InteractionResolved
from quintet.domain.interaction import Decision, Verdict
from quintet.domain.principal import ENGINE, local
from quintet.domain.turn import Mode, Turn, TurnState
from tests.fakes.engine import Process
from tests.fakes.providers import GatedProvider, OneModel
from tests.unit.engine.conftest import lone

__all__ = ["lone"]


@pytest.mark.parametrize(
    ("reason", "says"),
    [
        ("timeout", "nobody answered in time"),
        ("cancelled", "the turn was cancelled"),
        ("interrupted", "the turn was interrupted"),
        ("on-ask deny", "nobody can be asked here"),
        ("on-ask fail", "nobody can be asked here"),
        ("failed", "the turn ended (failed)"),
    ],
)
async def test_a_denial_by_nobody_says_what_it_was(lone: Process, reason: str, says: str) -> None:
    err = io.StringIO()
    screen = Screen(out=io.StringIO(), err=err)
    view = TextView(screen, lone.interactions, local("cli"), OneModel(GatedProvider()), prompts=False, waits=False)
    decision = Decision(Verdict.DENY, ENGINE, 0, reason)
    view.show(Event(1, "interaction.resolved", 0, InteractionResolved("int_1", "c1", decision)))
    assert err.getvalue() == f"  denied: {says}\n"


@pytest.mark.req("first_minutes:F12")
async def test_a_cancelled_turn_says_so_once(lone: Process) -> None:
    err = io.StringIO()
    screen = Screen(out=io.StringIO(), err=err)
    view = TextView(screen, lone.interactions, local("cli"), OneModel(GatedProvider()), prompts=False, waits=False)
    error = Cancelled("The turn was cancelled.").info()
    view.end(Turn("trn_1", "thr_1", TurnState.CANCELLED, "own", Mode.ASK, local("cli"), (), 0, error=error))
    assert err.getvalue() == (
        "The turn was cancelled. Send the request again when you want it. (docs/errors.md#cancelled)\n"
    )
