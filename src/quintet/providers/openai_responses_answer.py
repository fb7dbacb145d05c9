"""An answer of OpenAI's responses as it arrives, made into chunks. Knows no request and no network."""

from __future__ import annotations

from collections.abc import Iterable
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
from quintet.providers.dialect import THOUGHT_ENDS, count, decoded, named, refuse, unique_id

SIGNED = "responses:"  # marks encrypted reasoning as this wire's
_CUT = {"max_output_tokens": Finish.LENGTH, "content_filter": Finish.REFUSAL}


class ResponsesParser:
    def __init__(self) -> None:
        self.finished = False
        self._calls: dict[str, str] = {}  # by the entry's id: the call's id
        self._grown: set[str] = set()  # calls whose input came in pieces
        self._reason: Finish | None = None

    @property
    def whole(self) -> bool:
        return self.finished

    def event(self, name: str, data: bytes) -> Iterable[Chunk]:
        if data == b"[DONE]":
            return ()
        message = decoded(data)
        kind = message.get("type") or name
        if kind == "response.output_text.delta":
            return (TextChunk(str(message.get("delta") or "")),)
        match kind:
            case "response.function_call_arguments.delta":
                return self._input(message)
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                return (ReasoningChunk(str(message.get("delta") or "")),)
            case "response.reasoning_summary_part.added":
                return (ReasoningChunk("\n\n"),) if message.get("summary_index") else ()
            case "response.refusal.delta":
                self._reason = Finish.REFUSAL
                return (TextChunk(str(message.get("delta") or "")),)
            case "response.output_item.added":
                return self._begun(message.get("item") or {})
            case "response.output_item.done":
                return self._done(message.get("item") or {})
            case "response.completed" | "response.incomplete" | "response.failed":
                return self._over(kind, message.get("response") or {})
            case "error":
                raise refuse(message.get("error") or message)
            case "" if message.get("error"):
                raise refuse(message["error"])
        return ()

    def _begun(self, item: dict[str, Any], *, whole: bool = False) -> list[Chunk]:
        """`whole`: it comes with its arguments."""
        if item.get("type") != "function_call":
            return []
        call_id = str(item.get("call_id") or item.get("id") or "")
        made = unique_id(call_id, self._calls.values())
        self._calls[str(item.get("id") or call_id)] = made
        return [ToolStart(made, str(item.get("name") or ""), fed=whole)]

    def _input(self, message: dict[str, Any]) -> list[Chunk]:
        entry = str(message.get("item_id") or "")
        if entry not in self._calls or not message.get("delta"):
            return []
        self._grown.add(entry)
        return [ToolInput(self._calls[entry], str(message["delta"]))]

    def _done(self, item: dict[str, Any]) -> list[Chunk]:
        if item.get("type") == "reasoning" and item.get("encrypted_content"):
            kept = {key: item[key] for key in ("id", "summary", "encrypted_content") if key in item}
            return [ReasoningChunk("", SIGNED + msgspec.json.encode(kept).decode()), THOUGHT_ENDS]
        if item.get("type") != "function_call":
            return []
        entry = str(item.get("id") or item.get("call_id") or "")
        begun = [] if entry in self._calls else self._begun(item, whole=bool(item.get("arguments")))
        if entry not in self._grown and item.get("arguments"):
            self._grown.add(entry)
            return [*begun, ToolInput(self._calls[entry], str(item["arguments"]))]
        return begun

    def _over(self, kind: str, response: dict[str, Any]) -> list[Chunk]:
        if kind == "response.failed":
            raise refuse(response.get("error") or "the response failed")
        self.finished = True
        chunks: list[Chunk] = [UsageChunk(_usage(response["usage"]))] if response.get("usage") else []
        if kind == "response.incomplete":
            why = (response.get("incomplete_details") or {}).get("reason")
            self._reason = _CUT.get(str(why), Finish.OTHER)
        elif self._reason is None:
            self._reason = Finish.TOOL_CALLS if self._calls else Finish.STOP
        return [*chunks, FinishChunk(self._reason, named(response.get("id")))]

    def end(self) -> Iterable[Chunk]:
        return ()


def _usage(usage: dict[str, Any]) -> Usage:
    given = usage.get("input_tokens_details") or {}
    made = usage.get("output_tokens_details") or {}
    return Usage(
        input_tokens=count(usage.get("input_tokens")),
        output_tokens=count(usage.get("output_tokens")),
        cached_tokens=count(given.get("cached_tokens")),
        reasoning_tokens=count(made.get("reasoning_tokens")),
    )
