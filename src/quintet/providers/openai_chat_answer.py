"""A chat completion as it arrives, event by event, made into chunks. Knows no request and no network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from quintet.domain.model import (
    Chunk,
    Finish,
    FinishChunk,
    ReasoningChunk,
    TextChunk,
    ToolInput,
    ToolStart,
    Usage,
    UsageChunk,
)
from quintet.providers.dialect import count, decoded, named, refuse, unique_id
from quintet.providers.spoken_calls import SpokenCalls

SIGNED = "chat:"
_FINISH = {
    "stop": Finish.STOP,
    "eos": Finish.STOP,
    "tool_calls": Finish.TOOL_CALLS,
    "function_call": Finish.TOOL_CALLS,
    "length": Finish.LENGTH,
    "content_filter": Finish.REFUSAL,
}


class ChatParser:
    def __init__(self, tools: Sequence[str]) -> None:
        self.finished = False
        self._thinking = False
        self._calls: dict[int, tuple[str, str]] = {}  # by index: the id the server gave, the one its pieces go under
        self._reason: Finish | None = None
        self._answer_id = ""
        self._spoken = SpokenCalls(tools)

    @property
    def whole(self) -> bool:
        return self.finished or self._reason is not None

    def event(self, name: str, data: bytes) -> Iterable[Chunk]:
        if data == b"[DONE]":
            self.finished = True
            return ()
        message = decoded(data)
        if message.get("error"):
            raise refuse(message["error"])
        chunks: list[Chunk] = []
        choices = message.get("choices")
        if choices:
            choice = choices[0]
            delta = choice.get("delta") or choice.get("message")
            if delta:
                self._delta(delta, chunks)
            reason = choice.get("finish_reason")
            if reason and self._reason is not Finish.REFUSAL:
                self._reason = _FINISH.get(reason, Finish.OTHER)
            if reason:
                self._answer_id = named(message.get("id"))
        if usage := message.get("usage"):
            chunks.append(UsageChunk(_usage(usage)))
        return chunks

    def _delta(self, delta: dict[str, Any], chunks: list[Chunk]) -> None:
        text = delta.get("content")
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        if type(text) is list:
            text, thought = _parted(text)
        if thought:
            # Marked as this wire's own: it goes back to the servers that want it, never to another wire.
            chunks.append(ReasoningChunk(str(thought), "" if self._thinking else SIGNED))
            self._thinking = True
        if text:
            self._thinking = False
            chunks += self._spoken.add(str(text))
        for call in delta.get("tool_calls") or ():
            self._thinking = False
            self._call(call, chunks)
        if refusal := delta.get("refusal"):
            chunks.append(TextChunk(str(refusal)))
            self._reason = Finish.REFUSAL

    def _call(self, call: dict[str, Any], chunks: list[Chunk]) -> None:
        function = call.get("function") or {}
        arguments = function.get("arguments")
        given, name = str(call.get("id") or ""), function.get("name")
        index = call.get("index")
        index = index if isinstance(index, int) else len(self._calls) if name else len(self._calls) - 1
        known = self._calls.get(index)
        # Some servers repeat the id with every piece, some give all calls the same index.
        if known is None or (name and given and given != known[0]):
            if not name:
                return  # pieces of a call that never began
            known = given, unique_id(given or f"call_{index}", [made for _, made in self._calls.values()])
            if index in self._calls:
                self._calls[-1 - len(self._calls)] = self._calls[index]  # out of the way, its id stays taken
            self._calls[index] = known
            chunks.append(ToolStart(known[1], str(name), fed=bool(arguments)))
        if arguments:
            text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
            chunks.append(ToolInput(known[1], text))

    def end(self) -> Iterable[Chunk]:
        rest = list(self._spoken.end())
        called = bool(self._calls) or self._spoken.found
        reason = Finish.TOOL_CALLS if called and self._reason in (None, Finish.STOP) else self._reason
        if reason is not None and self.whole:
            rest.append(FinishChunk(reason, self._answer_id))
            self.finished = True
        return rest


def _parted(parts: Sequence[Any]) -> tuple[str, str]:
    """(text, thought) of content that comes in typed parts, as Databricks sends it."""
    text = thought = ""
    for part in parts:
        match part:
            case {"type": "reasoning", "summary": [*told]}:
                thought += "".join(str(entry.get("text", "")) for entry in told)
            case {"text": str(words)}:
                text += words
    return text, thought


def _usage(usage: dict[str, Any]) -> Usage:
    prompt = usage.get("prompt_tokens_details") or {}
    completion = usage.get("completion_tokens_details") or {}
    cached = prompt.get("cached_tokens")
    return Usage(
        input_tokens=count(usage.get("prompt_tokens")),
        output_tokens=count(usage.get("completion_tokens")),
        cached_tokens=count(usage.get("cached_tokens") if cached is None else cached),
        reasoning_tokens=count(completion.get("reasoning_tokens")),
    )
