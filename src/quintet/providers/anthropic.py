"""Anthropic's messages. Thinking comes with a signature that has to go back with it unchanged."""

from __future__ import annotations

from collections.abc import Sequence
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
    ModelInfo,
    ModelRequest,
)
from quintet.providers.anthropic_answer import HIDDEN, SIGNED, MessagesParser
from quintet.providers.dialect import (
    groups,
    left_out,
    side,
    summary_text,
    without_last_thought,
)

VERSION = "2023-06-01"
DEFAULT_OUTPUT = 8_192  # this wire demands a limit


class Anthropic:
    path = "/messages"

    def headers(self, key: str) -> dict[str, str]:
        return {"anthropic-version": VERSION} | ({"x-api-key": key} if key else {})

    def body(self, request: ModelRequest, model: ModelInfo) -> dict[str, Any]:
        messages: list[dict[str, Any]] = []
        for run in groups(request.items):
            role = "assistant" if side(run[0]) == "model" else "user"
            said = without_last_thought(run)
            content = [block for item in said for block in _blocks(item, vision=model.vision)]
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
            return [{"type": "text", "text": summary_text(text)}]
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
    content = [{"type": "text", "text": result.text or "(no output)"}, *_content(result.images, vision=vision)]
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
            content.append({"type": "text", "text": left_out([part])})  # there is no form for sound and videos
    return content
