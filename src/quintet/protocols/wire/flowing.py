"""A prompt that runs a flow: each input of the walk is a turn of the engine's, told within the turn of the prompt."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from quintet.domain.errors import QuintetError
from quintet.domain.event import TurnFinished
from quintet.domain.item import Part, TextPart
from quintet.domain.turn import TurnState, WhenBusy
from quintet.engine.commands import Called
from quintet.engine.flows import FlowToRun, Walk, answer_of
from quintet.engine.ralph import again
from quintet.protocols.wire import models as wire
from quintet.protocols.wire.ends import result_of

if TYPE_CHECKING:
    from quintet.protocols.wire.running import Running

FINISHED = wire.PromptResult("finished")
CANCELLED = wire.PromptResult("cancelled")


async def run_flow(running: Running, called: Called) -> wire.PromptResult:
    async def walked() -> wire.PromptResult:
        assert called.command is not None
        assert called.command.flow is not None
        try:
            found = await called.command.flow()
        except (QuintetError, OSError) as error:
            said = error.line() if isinstance(error, QuintetError) else f"The skill cannot be read: {error}"
            await running.voice.text(said)
            return FINISHED
        return await _walked(running, found, called.words)

    await running.fits()
    return await _told_whole(running, walked)


async def run_again(running: Running, parts: tuple[Part, ...]) -> wire.PromptResult:
    """The prompt itself, as often as the client's flags say."""
    found = again(running.typed, running.client.house.repeats)
    return await _told_whole(running, lambda: _walked(running, found, "", parts))


async def _told_whole(running: Running, walked: Callable[[], Awaitable[wire.PromptResult]]) -> wire.PromptResult:
    results: list[wire.PromptResult] = []

    async def inside() -> None:
        results.append(await walked())

    await running.voice.whole(inside)
    return results[0]


async def _walked(running: Running, found: FlowToRun, said: str, first: tuple[Part, ...] = ()) -> wire.PromptResult:
    """`first`: what the model is given at first, where that is more than its words."""
    walk, steps = Walk(found.flow, said, found.most), 0
    while (words := walk.input()) is not None:
        if running.cancelled:
            return CANCELLED
        finished = await _turn(running, found, words, first, begins=walk.inputs == 1)
        steps += finished.steps
        if finished.state is not TurnState.DONE:
            return result_of(finished)
        walk.answered(await answer_of(running.client.house.feed.journal, await running.last_turn()))
    if walk.stopped:
        await running.voice.text(walk.stopped)
    return wire.PromptResult("max_steps_reached", steps) if walk.exhausted else FINISHED


async def _turn(
    running: Running, found: FlowToRun, words: str, first: tuple[Part, ...], *, begins: bool
) -> TurnFinished:
    """One input. Where somebody has to agree to the flow, the first turn's input is what the person typed, and the
    flow's words come behind the yes. A later one waits for its place: others may use the thread in between."""
    starter, said = running.client.starter(), words
    if begins and found.agreement is not None:
        starter, said = starter.needing(replace(found.agreement, words=words)), running.typed
    busy = WhenBusy.REJECT if begins else WhenBusy.QUEUE
    parts = first if begins and first else (TextPart(said),)
    return await running.turn(parts, starter, shown=words, when_busy=busy)
