"""Scripted: a model that replays a script (the language is described in script.py). For tests, demos and benches.

It remembers nothing: which step comes next is read off the request's items, so a resumed thread, a fork or another
process goes on where the thread is. No network; one pass over ready-made chunks, so that it never is what a bench
measures.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence

from quintet.domain.errors import ProviderFailed
from quintet.domain.item import AssistantMessage, Item, Reasoning, ResultStatus, ToolCall, ToolResult, UserMessage
from quintet.domain.model import Chunk, Finish, FinishChunk, ModelRequest, TextChunk
from quintet.providers.script import Delay, Fail, Say, Script, Step, Until, parse_script

BREATH = 64  # chunks between two looks at the event loop, so that a long burst cannot starve it
UNTIL_LIMIT_S = 60.0
UNTIL_LOOK_S = 0.005


class ScriptedProvider:
    """Plays a script. Relative paths of `until` lines are taken from `directory`."""

    def __init__(self, script: Script | str, *, directory: str = "") -> None:
        self._script = parse_script(script) if isinstance(script, str) else script
        self._directory = directory

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        steps = self._script.steps
        number = next_step(self._script, request.items)
        if number >= len(steps):
            yield TextChunk(f"The script is over: all {len(steps)} of its steps have been played.")
            yield FinishChunk(Finish.STOP)
            return
        said = 0
        for act in steps[number].acts:
            if type(act) is not Say:
                await self._act(act)
                continue
            chunk = act.chunk
            for _ in range(act.times):
                if act.every_s:
                    await asyncio.sleep(act.every_s)
                yield chunk
                said += 1
                if not said % BREATH:
                    await asyncio.sleep(0)

    async def _act(self, act: object) -> None:
        match act:
            case Delay(seconds=seconds):
                await asyncio.sleep(seconds)
            case Fail(code=code, message=message):
                raise ProviderFailed(f"The scripted model failed: {message} ({code}).", code=code, reason=code)
            case Until(path=path):
                await self._until(os.path.join(self._directory, path))

    async def _until(self, path: str) -> None:
        deadline = asyncio.get_running_loop().time() + UNTIL_LIMIT_S
        while not _exists(path):
            if asyncio.get_running_loop().time() > deadline:
                raise ProviderFailed(f"The scripted model waited {UNTIL_LIMIT_S:.0f} s for {path}.", code="until")
            await asyncio.sleep(UNTIL_LOOK_S)


def _exists(path: str) -> bool:
    return os.path.exists(path)  # one look; a file system that hangs is not what scripts are for


def next_step(script: Script, items: Sequence[Item]) -> int:
    """How many of the script's steps these items hold already.

    What one model call says (reasoning, words, calls) lies together in the items; a user's message, a tool's result or
    another turn comes between two such groups. A step that leaves no item, such as one that only fails, counts as
    played once a turn has ended where it was due. A summary stands for nothing: behind a compaction counting starts
    with what was kept.
    """
    if not items:
        return 0
    if script.per_turn:
        items = [item for item in items if item.turn == items[-1].turn]
    count = calls = 0
    turn = items[0].turn
    speaking = due = False
    for item in items:
        body = item.body
        if item.turn != turn:
            count += due and _at(script, count).silent
            turn, speaking, due, calls = item.turn, False, False, 0
        match body:
            case UserMessage():
                speaking, due, calls = False, True, 0
            case ToolResult(status=status):
                speaking, due = False, status in (ResultStatus.OK, ResultStatus.ERROR)
            case AssistantMessage() | Reasoning() | ToolCall():
                calls += isinstance(body, ToolCall)
                # Calls of one step whose results were stored in between are still the same step.
                more = isinstance(body, ToolCall) and 1 < calls <= _at(script, count - 1).calls
                if not speaking and not more:
                    count += 1
                    calls = int(isinstance(body, ToolCall))
                speaking, due = True, False
    return count


_NO_STEP = Step((), 0, silent=False)


def _at(script: Script, number: int) -> Step:
    return script.steps[number] if 0 <= number < len(script.steps) else _NO_STEP
