"""OpenAI's responses. Nothing is kept on the server: every call sends the whole thread, with reasoning as the server
encrypted it.
"""

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
from quintet.providers.dialect import (
    groups,
    left_out,
    result_text,
    summary_text,
    without_last_thought,
)
from quintet.providers.openai_responses_answer import SIGNED, ResponsesParser


class OpenAIResponses:
    path = "/responses"

    def headers(self, key: str) -> dict[str, str]:
        return {"authorization": f"Bearer {key}"} if key else {}

    def body(self, request: ModelRequest, model: ModelInfo) -> dict[str, Any]:
        given: list[dict[str, Any]] = []
        for run in groups(request.items):
            said = without_last_thought(run)
            given += [entry for item in said for entry in _entries(item, vision=model.vision)]
            given += _pictures(said) if model.vision else []
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
            if request.effort:
                body["reasoning"] = {"effort": request.effort}
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
        case ToolResult(call_id=call_id):
            refused = [part for part in item.body.images if not (vision and isinstance(part, ImagePart))]
            output = result_text(item.body, refused)
            return [{"type": "function_call_output", "call_id": call_id, "output": output}]
        case Summary(text=text):
            return [{"role": "user", "content": [{"type": "input_text", "text": summary_text(text)}]}]
        case _:
            return []


def _pictures(run: Sequence[Item]) -> list[dict[str, Any]]:
    """Pictures of results follow them as the user's, behind the last: not every server takes them inside."""
    results = [item.body for item in run if isinstance(item.body, ToolResult)]
    pictures: list[Part] = [part for r in results for part in r.images if isinstance(part, ImagePart)]
    return [{"role": "user", "content": _content(pictures, vision=True)}] if pictures else []


def _reasoning(signature: str) -> dict[str, Any]:
    kept: dict[str, Any] = msgspec.json.decode(signature[len(SIGNED) :])
    return {"type": "reasoning", "summary": [], **kept}


def _content(parts: Sequence[Part], *, vision: bool) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, TextPart):
            content.append({"type": "input_text", "text": part.text})
        elif vision and isinstance(part, ImagePart):
            content.append({"type": "input_image", "image_url": f"data:{part.media_type};base64,{part.data}"})
        else:
            # There is no form for sound and videos.
            content.append({"type": "input_text", "text": left_out([part])})
    return content
