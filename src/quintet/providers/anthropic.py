"""Anthropic's messages. Thinking comes with a signature that has to go back with it unchanged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from quintet.domain.item import (
    AssistantMessage,
    ImagePart,
    Item,
    Part,
    Reasoning,
    ResultStatus,
    Summary,
    TextPart,
    ToolCall,
    ToolResult,
    UserMessage,
)
from quintet.domain.model import (
    Chunk,
    Finish,
    FinishChunk,
    ModelRequest,
    ReasoningChunk,
    TextChunk,
    ToolInput,
    ToolStart,
    Usage,
    UsageChunk,
)
from quintet.providers.dialect import count, decoded, groups, refuse, side
from quintet.providers.settings import ModelSettings

VERSION = "2023-06-01"
DEFAULT_OUTPUT = 8_192  # this wire demands a limit
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


class Anthropic:
    path = "/messages"

    def headers(self, key: str) -> dict[str, str]:
        return {"anthropic-version": VERSION} | ({"x-api-key": key} if key else {})

    def body(self, request: ModelRequest, model: ModelSettings) -> dict[str, Any]:
        messages: list[dict[str, Any]] = []
        for run in groups(request.items):
            role = "assistant" if side(run[0]) == "model" else "user"
            content = [block for item in run for block in _blocks(item, vision=model.vision)]
            if not content:
                continue
            if messages and messages[-1]["role"] == role:  # results and the words after them are one message here
                messages[-1]["content"] += content
            else:
                messages.append({"role": role, "content": content})
        _mark_cached(messages)
        body: dict[str, Any] = {
            "model": request.model,
            "max_tokens": model.max_output or DEFAULT_OUTPUT,
            "messages": messages,
            "stream": True,
        }
        if request.instructions:
            body["system"] = [{"type": "text", "text": request.instructions, "cache_control": {"type": "ephemeral"}}]
        if request.tools:
            body["tools"] = [
                {"name": t.name, "description": t.description, "input_schema": t.parameters} for t in request.tools
            ]
        return body | request.options

    def parser(self, request: ModelRequest) -> MessagesParser:
        return MessagesParser()


def _mark_cached(messages: list[dict[str, Any]]) -> None:
    """Everything up to the last message is the same in the next call: let the server keep it."""
    if messages:
        block = messages[-1]["content"][-1]
        if block["type"] in ("text", "tool_result", "image"):
            block["cache_control"] = {"type": "ephemeral"}


def _blocks(item: Item, *, vision: bool) -> list[dict[str, Any]]:
    match item.body:
        case UserMessage(parts=parts):
            return _content(parts, vision=vision)
        case AssistantMessage(text=text):
            return [{"type": "text", "text": text}] if text.strip() else []
        case Reasoning(text=text, signature=signature, partial=partial):
            return [] if partial else _thinking(text, signature)
        case ToolCall():
            return [{"type": "tool_use", "id": item.body.call_id, "name": item.body.name, "input": _input(item.body)}]
        case ToolResult():
            return [_result(item.body, vision=vision)]
        case Summary(text=text):
            return [{"type": "text", "text": f"[Summary of the conversation until here]\n{text}"}]
        case _:
            return []


def _thinking(text: str, signature: str) -> list[dict[str, Any]]:
    if signature.startswith(SIGNED):
        return [{"type": "thinking", "thinking": text, "signature": signature[len(SIGNED) :]}]
    if signature.startswith(HIDDEN):
        return [{"type": "redacted_thinking", "data": signature[len(HIDDEN) :]}]
    return []  # somebody else's thinking: this wire refuses it without its own signature


def _input(call: ToolCall) -> Any:
    try:
        value = msgspec.json.decode(call.input or "{}")
    except msgspec.DecodeError:
        return {"unreadable": call.input}  # it failed then; the wire takes only objects
    return value if isinstance(value, dict) else {"value": value}


def _result(result: ToolResult, *, vision: bool) -> dict[str, Any]:
    images: list[Part] = list(result.images) if vision else []
    content = [{"type": "text", "text": result.text or "(no output)"}, *_content(images, vision=vision)]
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": result.call_id, "content": content}
    if result.status is not ResultStatus.OK:
        block["is_error"] = True
    return block


def _content(parts: Sequence[Part], *, vision: bool) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, TextPart):
            if part.text.strip():
                content.append({"type": "text", "text": part.text})
        elif isinstance(part, ImagePart) and vision:
            source = {"type": "base64", "media_type": part.media_type, "data": part.data}
            content.append({"type": "image", "source": source})
        else:
            content.append({"type": "text", "text": "[an image was left out: this model takes no images]"})
    return content


class MessagesParser:
    def __init__(self) -> None:
        self.finished = False
        self._calls: dict[int, str] = {}
        self._usage: dict[str, Any] = {}
        self._reason: Finish | None = None

    def event(self, name: str, data: bytes) -> Iterable[Chunk]:
        message = decoded(data)
        match message.get("type") or name:
            case "content_block_delta":
                return self._delta(message.get("index", 0), message.get("delta") or {})
            case "content_block_start":
                return self._start(message.get("index", 0), message.get("content_block") or {})
            case "message_start":
                self._usage |= (message.get("message") or {}).get("usage") or {}
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
        match block.get("type"):
            case "tool_use":
                self._calls[index] = str(block.get("id") or f"call_{index}")
                begun = ToolStart(self._calls[index], str(block.get("name") or ""))
                given = block.get("input")
                return [begun, ToolInput(begun.call_id, msgspec.json.encode(given).decode())] if given else [begun]
            case "text" if block.get("text"):
                return [TextChunk(str(block["text"]))]
            case "thinking" if block.get("thinking"):
                return [ReasoningChunk(str(block["thinking"]))]
            case "redacted_thinking":
                return [ReasoningChunk("", HIDDEN + str(block.get("data", "")))]
        return []

    def _delta(self, index: int, delta: dict[str, Any]) -> list[Chunk]:
        match delta.get("type"):
            case "text_delta":
                return [TextChunk(delta.get("text") or "")]
            case "input_json_delta" if index in self._calls:
                return [ToolInput(self._calls[index], delta.get("partial_json") or "")]
            case "thinking_delta":
                return [ReasoningChunk(delta.get("thinking") or "")]
            case "signature_delta":
                return [ReasoningChunk("", SIGNED + str(delta.get("signature") or ""))]
        return []

    def end(self) -> Iterable[Chunk]:
        rest: list[Chunk] = [UsageChunk(_usage(self._usage))] if self._usage else []
        if self._reason is not None:
            rest.append(FinishChunk(self._reason))
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
    )
