"""How a turn ended, as its prompt is answered. Pure."""

from __future__ import annotations

from quintet.domain.errors import Denied, Invalid
from quintet.domain.event import TurnFinished
from quintet.domain.turn import TurnState
from quintet.protocols.wire import models as wire
from quintet.protocols.wire.errors import Failed


def needless(said: TurnFinished) -> bool:
    """There was nothing to do, or a hook held it back: not a failure."""
    return said.error is not None and said.error.code in (Invalid.code, Denied.code)


def refused_input(said: TurnFinished) -> str | None:
    """Why a hook, or somebody who was asked, did not let the input through, if that is how the turn ended."""
    data = said.error.data if said.state is TurnState.FAILED and said.error is not None else {}
    if said.error is not None and (data.get("hook") or data.get("agreement")):
        return str(said.error.data.get("reason") or said.error.message)
    return None


def result_of(finished: TurnFinished) -> wire.PromptResult:
    """What the prompt is answered with; raises what it is refused with."""
    if finished.state is TurnState.DONE or refused_input(finished) is not None:
        return wire.PromptResult("finished")
    if finished.state is not TurnState.FAILED or finished.error is None:
        return wire.PromptResult("cancelled")
    if finished.error.code == "step_limit":
        return wire.PromptResult("max_steps_reached", finished.steps)
    raise Failed(finished.error)


def is_expired_login(failure: Exception) -> bool:
    """For a server that is logged in to."""
    return isinstance(failure, Failed) and failure.info.data.get("status") == 401
