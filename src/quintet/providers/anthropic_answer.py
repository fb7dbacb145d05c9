"""An answer of Anthropic's messages as it arrives, made into chunks. Knows no request and no network."""

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

SIGNED = "anthropic:"  # marks a signature as this wire's, so that no other is sent it
HIDDEN = "anthropic-hidden:"  # thinking the server encrypted whole
_FINISH = {
    "end_turn": Finish.STOP,
    "stop_sequence": Finish.STOP,
    "pause_turn": Finish.STOP,
    "tool_use": Finish.TOOL_CALLS,
    "max_tokens": Finish.LENGTH,
    "model_context_window_exceeded": Finish.LENGTH,
    "refusal": Finish.REFUSAL,
}


class MessagesParser:
    def __init__(self) -> None:
        self.finished = False
        self._calls: dict[int, str] = {}
        self._usage: dict[str, Any] = {}
        self._reason: Finish | None = None
        self._answer_id = ""
        self._thought = False  # the last block was thinking
        self._signed = -1  # the block whose signature has begun

    @property
    def whole(self) -> bool:
        return self.finished or self._reason is not None

    def event(self, name: str, data: bytes) -> Iterable[Chunk]:
        message = decoded(data)
        kind = message.get("type") or name
        match kind:
            case "content_block_delta":
                return self._delta(message.get("index", 0), message.get("delta") or {})
            case "content_block_start":
                return self._start(message.get("index", 0), message.get("content_block") or {})
            case "message_start":
                begun = message.get("message") or {}
                self._usage |= begun.get("usage") or {}
                self._answer_id = named(begun.get("id"))
            case "message_delta":
                self._usage |= {k: v for k, v in (message.get("usage") or {}).items() if v is not None}
                reason = (message.get("delta") or {}).get("stop_reason")
                if reason:
                    self._reason = _FINISH.get(reason, Finish.OTHER)
            case "message_stop":
                self.finished = True
            case "error":
                raise refuse(message.get("error"))
        return ()

    def _start(self, index: int, block: dict[str, Any]) -> list[Chunk]:
        kind = block.get("type")
        # Each block of thinking has a signature of its own and goes back as a block of its own.
        begun: list[Chunk] = [THOUGHT_ENDS] if self._thought else []
        self._thought = kind in ("thinking", "redacted_thinking")
        match kind:
            case "tool_use":
                made = unique_id(str(block.get("id") or f"call_{index}"), self._calls.values())
                self._calls[index] = made
                given = block.get("input")
                begun.append(ToolStart(made, str(block.get("name") or ""), fed=bool(given)))
                if given:
                    begun.append(ToolInput(made, msgspec.json.encode(given).decode()))
            case "text" if block.get("text"):
                begun.append(TextChunk(str(block["text"])))
            case "thinking" if block.get("thinking"):
                begun.append(ReasoningChunk(str(block["thinking"])))
            case "redacted_thinking":
                begun.append(ReasoningChunk("", HIDDEN + str(block.get("data", ""))))
        return begun

    def _delta(self, index: int, delta: dict[str, Any]) -> list[Chunk]:
        match delta.get("type"):
            case "text_delta":
                return [TextChunk(str(delta.get("text") or ""))]
            case "input_json_delta" if index in self._calls and delta.get("partial_json"):
                return [ToolInput(self._calls[index], str(delta["partial_json"]))]
            case "thinking_delta":
                return [ReasoningChunk(str(delta.get("thinking") or ""))]
            case "signature_delta":
                return self._signature(index, str(delta.get("signature") or ""))
        return []

    def _signature(self, index: int, text: str) -> list[Chunk]:
        """It may come in pieces; only the first is marked."""
        first = self._signed != index
        self._signed = index
        return [ReasoningChunk("", (SIGNED if first else "") + text)]

    def end(self) -> Iterable[Chunk]:
        rest: list[Chunk] = [UsageChunk(_usage(self._usage))] if self._usage else []
        if self._reason is not None:
            rest.append(FinishChunk(self._reason, self._answer_id))
            self.finished = True
        return rest


def _usage(usage: dict[str, Any]) -> Usage:
    """This wire counts cached tokens apart; everywhere else in Quintet they are part of the input."""
    plain, read, made = (
        count(usage.get(name)) for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    )
    return Usage(
        input_tokens=None if plain is None else plain + (read or 0) + (made or 0),
        output_tokens=count(usage.get("output_tokens")),
        cached_tokens=read,
        cache_written_tokens=made,
    )
