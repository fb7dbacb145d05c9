"""What the engine asks the client: approvals, its own tools, questions, hooks. Answers become the engine's decisions.

A request is open until it is answered or settled elsewhere; an answer that comes later finds nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from quintet.domain.errors import AlreadyResolved, Invalid, QuintetError
from quintet.domain.grant import Scope
from quintet.domain.interaction import Approval, ExternalCall, HookRequest, Question, Verdict
from quintet.domain.item import Media, MediaPart, named
from quintet.engine.interactions import Answer
from quintet.protocols.wire import models as wire
from quintet.protocols.wire.asked import Asked, HookResponse, QuestionResponse
from quintet.protocols.wire.events import RETURN_VALUE
from quintet.protocols.wire.house import ME, House
from quintet.protocols.wire.parts import held, url_of
from quintet.rpc.connection import Connection
from quintet.rpc.faults import AlreadyOpen, BadReply, Ended, Remote

SAME_ID = "Another call with the same id is still being answered. Call again later."


class Requests:
    """Of one turn."""

    def __init__(self, connection: Connection[Any], house: House) -> None:
        self._connection = connection
        self._house = house
        self._waiting: dict[str, asyncio.Task[None]] = {}  # by interaction: for the client
        self._answering: set[asyncio.Task[None]] = set()

    async def ask(self, asked: Asked) -> None:
        """Returned when the request has its place behind what was sent before."""
        task = asyncio.get_running_loop().create_task(self._ask(asked))
        self._waiting[asked.interaction.id] = task
        task.add_done_callback(self._answering.discard)
        await asyncio.sleep(0)  # the task's first step sends the request, or puts it into the writer's queue

    def settled(self, interaction: str) -> None:
        """Somebody has answered, or the engine itself: the client's word is waited for no longer."""
        if (task := self._waiting.pop(interaction, None)) is not None:
            task.cancel()

    async def close(self) -> None:
        """The turn is over."""
        for interaction in list(self._waiting):
            self.settled(interaction)
        if self._answering:
            await asyncio.wait(set(self._answering))

    async def _ask(self, asked: Asked) -> None:
        try:
            got = await self._connection.ask("request", asked.message, id=asked.id)
            answer = self._understood(asked, got)
        except AlreadyOpen:
            if not isinstance(asked.interaction.request, ExternalCall):
                return  # asked before, and still waited for
            # The id of a call is its model's: two agents may use one at the same time, and no client could tell them.
            answer = _failed(asked, SAME_ID)
        except Ended:
            return  # the turn is cancelled with the connection, and that settles it
        except Remote as error:
            answer = _failed(asked, error.error.message)
        except BadReply as error:
            answer = _failed(asked, str(error))
        task = self._waiting.pop(asked.interaction.id, None)
        if task is not None:
            self._answering.add(task)  # from here on it is not given up: a decision is on its way
            await self._decide(asked, answer)

    async def _decide(self, asked: Asked, answer: Answer) -> None:
        try:
            await self._house.interactions.answer(asked.interaction.id, answer, ME)
            if answer.broad:
                await self._allow_alike(asked)
        except AlreadyResolved:
            pass  # the event tells who was first
        except QuintetError as error:
            self._house.log(f"An answer of the client was not taken: {error.line()}")

    async def _allow_alike(self, asked: Asked) -> None:
        """A yes for the rest of the thread holds for what waits already."""
        request = asked.interaction.request
        for other in await self._house.interactions.pending(asked.interaction.root):
            alike = isinstance(other.request, Approval) and isinstance(request, Approval) and other.request.broad
            if alike and other.request.effect is request.effect:  # type: ignore[union-attr]
                with suppress(AlreadyResolved):
                    await self._house.interactions.answer(other.id, Answer(Verdict.ALLOW), ME)

    def _understood(self, asked: Asked, got: Any) -> Answer:
        if isinstance(got, dict) and got.get("request_id", asked.id) != asked.id:
            self._house.log(f"The client answered {asked.id} with the request_id {got['request_id']!r}.")
        try:
            return _ROWS[type(asked.interaction.request)](asked, got)
        except (msgspec.ValidationError, ValueError, Invalid) as error:
            self._house.log(f"The client's answer to {asked.id} is malformed: {error}")
            return _failed(asked, f"malformed answer: {error}")


def _approval(asked: Asked, got: Any) -> Answer:
    answer = msgspec.convert({"request_id": asked.id} | _object(got), wire.ApprovalResponse)
    request = asked.interaction.request
    assert isinstance(request, Approval)
    if answer.response == "reject":
        return Answer(Verdict.DENY, answer.feedback, ends_turn=not answer.feedback)
    if answer.response == "approve":
        return Answer(Verdict.ALLOW, answer.feedback)
    for_thread = any(offer.scope is Scope.THREAD for offer in request.offers)
    scope = Scope.THREAD if request.broad or for_thread else Scope.CALL
    return Answer(Verdict.ALLOW, answer.feedback, remember=scope, protocol_only=True, broad=request.broad)


def _external(asked: Asked, got: Any) -> Answer:
    value = msgspec.convert({"tool_call_id": asked.id} | _object(got), wire.ToolResult).return_value
    return Answer(
        Verdict.ANSWER,
        result={
            "text": _words(value),
            "media": msgspec.to_builtins(_media(value)),
            "is_error": value.is_error,
            "message": value.message,
            RETURN_VALUE: msgspec.to_builtins(value),
        },
    )


def _words(value: wire.ToolReturnValue) -> str:
    """What the model reads: the output, and the message where there is no output."""
    parts = [wire.TextPart(value.output)] if isinstance(value.output, str) else value.output
    return "\n".join(text for text in map(_text, parts) if text) or value.message


def _text(part: wire.ContentPart) -> str:
    """What is neither text nor held by the result itself is named: nothing is fetched for a tool."""
    match part:
        case wire.TextPart(text=text) | wire.ThinkPart(think=text):
            return text
        case _:
            kind, url = url_of(part)
            return "" if held(kind, url) else named(MediaPart(kind, url.url))


def _media(value: wire.ToolReturnValue) -> list[Media]:
    """What the model gets to see or hear."""
    parts = [] if isinstance(value.output, str) else value.output
    urls = [url_of(part) for part in parts if not isinstance(part, wire.TextPart | wire.ThinkPart)]
    return [found for kind, url in urls if (found := held(kind, url))]


def _question(asked: Asked, got: Any) -> Answer:
    given = msgspec.convert(_object(got), QuestionResponse).answers
    request = asked.interaction.request
    assert isinstance(request, Question)
    chosen = []
    for item in request.items:
        words, labels = given.get(item.text, ""), {option.label for option in item.options}
        several = tuple(word.strip() for word in words.split(","))
        split = item.multiple and words not in labels and labels.issuperset(several)
        chosen.append(several if split else (words,) if words else ())
    if not any(chosen):
        return Answer(Verdict.DENY, "the client gave no answer")
    return Answer(Verdict.ANSWER, answers=tuple(chosen))


def _hook(asked: Asked, got: Any) -> Answer:
    answer = msgspec.convert(_object(got), HookResponse)
    return Answer(Verdict.DENY if answer.action == "block" else Verdict.ALLOW, answer.reason)


def _object(got: Any) -> dict[str, Any]:
    if not isinstance(got, dict):
        raise ValueError("not an object")
    return got


_ROWS: dict[type, Callable[[Asked, Any], Answer]] = {
    Approval: _approval,
    ExternalCall: _external,
    Question: _question,
    HookRequest: _hook,
}


def _failed(asked: Asked, words: str) -> Answer:
    """The client could not answer: no approval, a failed tool, no choice; a hook that fails objects to nothing."""
    match asked.interaction.request:
        case Approval():
            return Answer(Verdict.DENY, ends_turn=True)
        case ExternalCall():
            return Answer(Verdict.ANSWER, result={"text": words, "is_error": True, "message": words})
        case Question():
            return Answer(Verdict.DENY, words)
        case HookRequest():
            return Answer(Verdict.ALLOW, f"the client failed: {words}")
