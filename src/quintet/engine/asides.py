"""Asides: questions beside a turn's work. The model answers from what the thread has told it, without any tool, and
neither question nor answer becomes part of the thread. What it uses is counted like every other step.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from msgspec.structs import replace

from quintet.domain.errors import STORAGE_ERRORS, ErrorInfo, Overloaded, ProviderFailed, TurnOver, as_quintet_error
from quintet.domain.event import AnyPayload, AsideAnswered, AsideAsked, StepFinished, StepRetried, StepStarted
from quintet.domain.ids import new_id
from quintet.domain.item import AssistantMessage, Body, Item, ResultStatus, ToolCall, ToolResult, named, user_text
from quintet.domain.model import (
    Chunk,
    Finish,
    FinishChunk,
    MediaChunk,
    ModelRequest,
    RetryChunk,
    TextChunk,
    ToolInput,
    ToolStart,
    Usage,
    UsageChunk,
)
from quintet.engine.candidates import Candidates
from quintet.engine.feed import Feed
from quintet.engine.running import RunningTurn
from quintet.engine.spending import Spending
from quintet.engine.storable import storable

AT_ONCE = 8  # beside one turn: each has the model read the whole thread
TRIES = 2  # a model that calls a tool is told that it cannot, once
LONGEST = 100_000  # characters; a model that goes on beyond that repeats itself
BESIDE = (
    "[A question beside the work, which goes on without you. Answer it now, in words, from what you know already. No "
    "tool can be called, nobody will ask again, and nothing of this is kept. If you do not know, say so.]\n\n{}"
)
NO_TOOLS = "No tool can be called here. Answer in words, from what you know already."


class Asides:
    """Of one turn. `request` gives what the model would be asked now; `spending` makes a look of its own at budgets."""

    def __init__(
        self,
        feed: Feed,
        running: RunningTurn,
        models: Candidates,
        request: Callable[[], ModelRequest],
        spending: Callable[[], Spending],
    ) -> None:
        self._feed = feed
        self._running = running
        self._models = models
        self._request = request
        self._spending = spending
        self.tasks: set[asyncio.Task[None]] = set()
        self._open: list[_Aside] = []
        self._closed = False

    def begin(self, question: str) -> None:
        """Beside the turn, which ends no sooner than this does; TurnOver when it ends already, Overloaded when as many
        as may be are open."""
        if self._closed or self._running.closing or self._running.stopped_as is not None:
            raise TurnOver("The turn had ended before this arrived.")
        if len(self.tasks) >= AT_ONCE:
            raise Overloaded(f"{AT_ONCE} questions are open beside this turn; ask again when one is answered.")
        task = asyncio.get_running_loop().create_task(self._beside(self._opened(question)))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def ask(self, question: str) -> None:
        """To its end. A model that fails is an answer, too; only a store that fails is raised."""
        await self._put(self._opened(question))

    def _opened(self, question: str) -> _Aside:
        """From here on it is told, whatever happens."""
        aside = _Aside(self._feed, self._running, self._models, self._spending(), question)
        self._open.append(aside)
        return aside

    async def _beside(self, aside: _Aside) -> None:
        with suppress(*STORAGE_ERRORS):  # the turn itself will run into that, and says it
            await self._put(aside)

    async def _put(self, aside: _Aside) -> None:
        await aside.put(self._request())
        self._open.remove(aside)

    async def close(self) -> None:
        """The turn ends, and what is still asked with it."""
        self._closed = True
        tasks = list(self.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def leftovers(self, error: ErrorInfo | None) -> list[AnyPayload]:
        """The ends of those that were cut off, for the turn's last commit."""
        return [payload for aside in self._open for payload in aside.cut_off(error)]


class _Aside:
    def __init__(self, feed: Feed, running: RunningTurn, models: Candidates, spending: Spending, question: str) -> None:
        self.id = new_id("asd")
        self._question = question
        self._feed = feed
        self._lease = running.lease
        self._model, self._provider = models.model, models.provider
        self._spending = spending
        self._agent = running.agent.name
        self._begun = False
        self._step = ""  # the one under way
        self._forget()

    def _forget(self) -> None:
        self._pieces: list[str] = []
        self._size = 0  # characters of words and calls
        self._calls: dict[str, tuple[str, list[str]]] = {}  # by call: the tool and its input
        self._usage: Usage | None = None
        self._finish: Finish | None = None

    async def put(self, request: ModelRequest) -> None:
        await self._feed.say(self._lease, AsideAsked(self.id, self._question))
        self._begun = True
        ended: list[AnyPayload] = []
        try:
            answered = AsideAnswered(self.id, await self._answer(request))
        except STORAGE_ERRORS:
            raise
        except Exception as error:
            told = as_quintet_error(error).info()
            ended = [self._finished(told)] if self._step else []
            answered = AsideAnswered(self.id, error=told)
        await self._feed.say(self._lease, *ended, answered)

    def cut_off(self, error: ErrorInfo | None) -> list[AnyPayload]:
        begun: list[AnyPayload] = [] if self._begun else [AsideAsked(self.id, self._question)]
        steps: list[AnyPayload] = [self._finished(error)] if self._step else []
        why = error or TurnOver("The turn ended before the answer came.").info()
        return [*begun, *steps, AsideAnswered(self.id, error=why)]

    async def _answer(self, request: ModelRequest) -> str:
        items = (*request.items, self._item(user_text(BESIDE.format(self._question))))
        for _ in range(TRIES):
            await self._spending.allow(self._model)
            await self._stream(replace(request, items=items))
            words = storable("".join(self._pieces)).strip()
            if words and not self._calls:
                return words
            if not self._calls:
                refused = self._finish is Finish.REFUSAL
                raise ProviderFailed(f"The model {'refused to answer' if refused else 'gave no answer'}.")
            items = (*items, *map(self._item, self._denied(words)))
        names = ", ".join(sorted({name for name, _ in self._calls.values()}))
        raise ProviderFailed(
            f"The model wanted to call {names} instead of answering.", next_step="Ask it as a turn of its own."
        )

    def _denied(self, words: str) -> list[Body]:
        """What it said and called, and that none of it was run."""
        bodies: list[Body] = [AssistantMessage(words)] if words else []
        for call_id, (name, given) in self._calls.items():
            bodies.append(ToolCall(call_id, name, storable("".join(given)) or "{}"))
        bodies += [ToolResult(i, name, ResultStatus.DENIED, NO_TOOLS) for i, (name, _) in self._calls.items()]
        return bodies

    async def _stream(self, request: ModelRequest) -> None:
        self._forget()
        step = new_id("stp")
        await self._feed.say(self._lease, StepStarted(step, 0, self._model, self._agent))
        self._step = step
        chunks = self._provider.stream(request)
        try:
            async for chunk in chunks:
                await self._take(step, chunk)
                if self._size > LONGEST:
                    raise ProviderFailed(f"The answer did not end after {LONGEST:,} characters.", reason="runaway")
        finally:
            close = getattr(chunks, "aclose", None)
            if close is not None:
                await close()
        await self._feed.say(self._lease, self._finished())
        self._step = ""

    async def _take(self, step: str, chunk: Chunk) -> None:
        match chunk:
            case TextChunk(text=text):
                self._grow(self._pieces, text)
            case MediaChunk(part=part):
                self._grow(self._pieces, named(part))
            case ToolStart(call_id=call_id, name=name):
                self._calls[call_id] = (storable(name), [])
            case ToolInput(call_id=call_id, text=text) if call_id in self._calls:
                self._grow(self._calls[call_id][1], text)
            case UsageChunk(usage=usage):
                self._usage = usage
            case FinishChunk(reason=reason):
                self._finish = reason
            case RetryChunk(attempt=attempt, wait_s=wait_s, reason=why):
                self._forget()
                await self._feed.say(self._lease, StepRetried(step, attempt, wait_s, why))

    def _grow(self, pieces: list[str], text: str) -> None:
        pieces.append(text)
        self._size += len(text)

    def _finished(self, error: ErrorInfo | None = None) -> StepFinished:
        return StepFinished(self._step, 0, self._model, self._finish, self._usage, error)

    def _item(self, body: Body) -> Item:
        """For the model alone: it is never added."""
        return Item(new_id("itm"), self._lease.thread, self._lease.turn, 0, self._feed.clock.now_ms(), body)
