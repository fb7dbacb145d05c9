"""The edges of a turn, as a client is told of them: what comes before its beginning, and its last words. Pure."""

from __future__ import annotations

from collections.abc import Callable

from quintet.domain import event as ev
from quintet.domain.errors import ErrorInfo
from quintet.domain.hook import HookEvent
from quintet.domain.interaction import HookRequest, Interaction
from quintet.domain.turn import TurnState
from quintet.protocols.wire import models as wire
from quintet.protocols.wire.ends import needless, refused_input
from quintet.protocols.wire.models import Message
from quintet.protocols.wire.status import filled as status_of

Window = Callable[[], int | None]  # how much the model can read, as far as anybody knows
COMPACTED = "The context has been compacted."
_BEFORE_THE_TURN = (HookEvent.INPUT_GIVEN, HookEvent.THREAD_BEGUN)


def early(payload: object) -> bool:
    """What clients are told before the turn begins: the hooks that decide whether it does."""
    match payload:
        case ev.HookTriggered(event=event) | ev.HookResolved(event=event):
            return event in _BEFORE_THE_TURN
        case ev.InteractionRequested(interaction=Interaction(request=HookRequest(event=event))):
            return event in _BEFORE_THE_TURN
        case ev.InteractionResolved():
            return True  # of an approval it comes after the request, which has begun the turn
    return False


def refusal(said: ev.TurnFinished) -> list[Message]:
    """Why the input was not let through, if it was not."""
    reason = refused_input(said)
    return [] if reason is None else [_text(reason)]


def last_words(said: ev.TurnFinished, window: Window, *, filled: wire.StatusUpdate) -> list[Message]:
    """Of a turn that was there to summarise; `filled` is how much is left after that."""
    if refused := refusal(said):
        return refused
    if said.state is TurnState.DONE:
        return [_text(COMPACTED), Message("StatusUpdate", filled)]
    if needless(said):
        assert said.error is not None
        return _left_alone(said.error, window)
    return []


def _left_alone(error: ErrorInfo, window: Window) -> list[Message]:
    """What is short is told like any other compaction: that is what clients know."""
    size = error.data.get("text_tokens")
    if size is None:
        return [_text(error.message)]
    begun, over = (Message(kind, wire.Empty()) for kind in ("CompactionBegin", "CompactionEnd"))
    return [begun, over, _text(COMPACTED), Message("StatusUpdate", status_of(int(size), window()))]


def _text(text: str) -> Message:
    return Message("ContentPart", wire.TextPart(text))
