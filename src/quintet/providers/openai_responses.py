"""OpenAI's responses. Nothing is kept on the server: every call sends the whole thread, with reasoning as the server
encrypted it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from quintet.domain.item import (
    AssistantMessage,
    Item,
    Part,
    Reasoning,
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
from quintet.providers.dialect import count, decoded, refuse, result_text
from quintet.providers.settings import ModelSettings

SIGNED = "responses:"  # marks encrypted reasoning as this wire's


class OpenAIResponses:
    path = "/responses"

    def headers(self, key: str) -> dict[str, str]:
        return {"authorization": f"Bearer {key}"} if key else {}

    def body(self, request: ModelRequest, model: ModelSettings) -> dict[str, Any]:
        given = [entry for item in request.items for entry in _entries(item, vision=model.vision)]
        body: dict[str, Any] = {"model": request.model, "input": given, "stream": True, "store": False}
        if request.instructions:
            body["instructions"] = request.instructions
        if request.tools:
            body["tools"] = [
                {"type": "function", "name": t.name, "description": t.description, "parameters": t.parameters}
                for t in request.tools
            ]
        if model.reasoning:
            body["include"] = ["reasoning.encrypted_content"]
        if model.max_output:
            body["max_output_tokens"] = model.max_output
        body["prompt_cache_key"] = request.thread
        return body | request.options

    def parser(self, request: ModelRequest) -> ResponsesParser:
        return ResponsesParser()


def _entries(item: Item, *, vision: bool) -> list[dict[str, Any]]:
    match item.body:
        case UserMessage(parts=parts):
            return [{"role": "user", "content": _content(parts, vision=vision)}]
        case AssistantMessage(text=text):
            return [{"role": "assistant", "content": [{"type": "output_text", "text": text}]}] if text else []
        case Reasoning(signature=signature, partial=partial):
            return [] if partial or not signature.startswith(SIGNED) else [_reasoning(signature)]
        case ToolCall(call_id=call_id, name=name, input=given):
            return [{"type": "function_call", "call_id": call_id, "name": name, "arguments": given or "{}"}]
        case ToolResult():
            return _result(item.body, vision=vision)
        case Summary(text=text):
            words = f"[Summary of the conversation until here]\n{text}"
            return [{"role": "user", "content": [{"type": "input_text", "text": words}]}]
        case _:
            return []


def _result(result: ToolResult, *, vision: bool) -> list[dict[str, Any]]:
    entry = {"type": "function_call_output", "call_id": result.call_id, "output": result_text(result)}
    if result.images and vision:
        return [entry, {"role": "user", "content": _content(result.images, vision=True)}]
    return [entry]


def _reasoning(signature: str) -> dict[str, Any]:
    kept: dict[str, Any] = msgspec.json.decode(signature[len(SIGNED) :])
    return {"type": "reasoning", **kept}


def _content(parts: Sequence[Part], *, vision: bool) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, TextPart):
            content.append({"type": "input_text", "text": part.text})
        elif vision:
            content.append({"type": "input_image", "image_url": f"data:{part.media_type};base64,{part.data}"})
        else:
            content.append({"type": "input_text", "text": "[an image was left out: this model takes no images]"})
    return content


class ResponsesParser:
    def __init__(self) -> None:
        self.finished = False
        self._calls: dict[str, str] = {}  # by the entry's id: the call's id
        self._grown: set[str] = set()  # calls whose input came in pieces
        self._reason: Finish | None = None
        self._called = False

    def event(self, name: str, data: bytes) -> Iterable[Chunk]:
        if data == b"[DONE]":
            return ()
        message = decoded(data)
        kind = message.get("type") or name
        match kind:
            case "response.output_text.delta":
                return (TextChunk(message.get("delta") or ""),)
            case "response.function_call_arguments.delta":
                return self._input(message)
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                return (ReasoningChunk(message.get("delta") or ""),)
            case "response.reasoning_summary_part.added":
                return (ReasoningChunk("\n\n"),) if message.get("summary_index") else ()
            case "response.refusal.delta":
                self._reason = Finish.REFUSAL
                return (TextChunk(message.get("delta") or ""),)
            case "response.output_item.added":
                return self._begun(message.get("item") or {})
            case "response.output_item.done":
                return self._done(message.get("item") or {})
            case "response.completed" | "response.incomplete" | "response.failed":
                return self._over(kind, message.get("response") or {})
            case "error":
                raise refuse(message.get("error") or message)
        return ()

    def _begun(self, item: dict[str, Any]) -> list[Chunk]:
        if item.get("type") != "function_call":
            return []
        call_id = str(item.get("call_id") or item.get("id") or "")
        self._calls[str(item.get("id") or call_id)] = call_id
        self._called = True
        return [ToolStart(call_id, str(item.get("name") or ""))]

    def _input(self, message: dict[str, Any]) -> list[Chunk]:
        entry = str(message.get("item_id") or "")
        if entry not in self._calls:
            return []
        self._grown.add(entry)
        return [ToolInput(self._calls[entry], message.get("delta") or "")]

    def _done(self, item: dict[str, Any]) -> list[Chunk]:
        if item.get("type") == "reasoning" and item.get("encrypted_content"):
            kept = {key: item[key] for key in ("id", "summary", "encrypted_content") if key in item}
            return [ReasoningChunk("", SIGNED + msgspec.json.encode(kept).decode())]
        if item.get("type") != "function_call":
            return []
        entry = str(item.get("id") or item.get("call_id") or "")
        begun = [] if entry in self._calls else self._begun(item)
        if entry not in self._grown and item.get("arguments"):
            self._grown.add(entry)
            return [*begun, ToolInput(self._calls[entry], str(item["arguments"]))]
        return begun

    def _over(self, kind: str, response: dict[str, Any]) -> list[Chunk]:
        self.finished = True
        chunks: list[Chunk] = [UsageChunk(_usage(response["usage"]))] if response.get("usage") else []
        if kind == "response.failed":
            raise refuse(response.get("error") or "the response failed")
        if kind == "response.incomplete":
            why = (response.get("incomplete_details") or {}).get("reason")
            self._reason = Finish.LENGTH if why == "max_output_tokens" else Finish.REFUSAL
        elif self._reason is None:
            self._reason = Finish.TOOL_CALLS if self._called else Finish.STOP
        return [*chunks, FinishChunk(self._reason)]

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
