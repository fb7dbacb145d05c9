"""OpenAI's chat completions, as spoken by OpenAI, OpenRouter, Databricks, Kimi, Ollama, LM Studio, vLLM and llama.cpp.

They agree on the shape and differ in what they leave out, so everything but the shape is optional here. For sound and
videos there are two shapes, OpenAI's own for the formats that it knows and the one of those that take more.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from quintet.domain.item import (
    AssistantMessage,
    ImagePart,
    Item,
    Media,
    MediaKind,
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
    side,
    summary_text,
    text_of_parts,
)
from quintet.providers.openai_chat_answer import SIGNED, ChatParser

# What OpenAI itself takes as sound, by media type.
_OWN_FORMATS = {
    "audio/wav": "wav",
    "audio/wave": "wav",
    "audio/x-wav": "wav",
    "audio/vnd.wave": "wav",
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
}


class OpenAIChat:
    path = "/chat/completions"

    def headers(self, key: str) -> dict[str, str]:
        return {"authorization": f"Bearer {key}"} if key else {}

    def body(self, request: ModelRequest, model: ModelInfo) -> dict[str, Any]:
        messages: list[dict[str, Any]] = []
        if request.instructions:
            messages.append({"role": "system", "content": request.instructions})
        turn = request.items[-1].turn if request.items else ""
        for run in groups(request.items):
            messages += _messages(run, turn, model)
        body: dict[str, Any] = {"model": request.model, "messages": messages, "stream": True}
        body["stream_options"] = {"include_usage": True}
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "function": {"name": t.name, "description": t.description, "parameters": t.parameters},
                }
                for t in request.tools
            ]
        if model.max_output:
            # OpenAI's own refuse the old name; most others know no other.
            body["max_completion_tokens" if model.thoughts_in_limit else "max_tokens"] = model.max_output
        if request.effort and model.reasoning:
            body["reasoning_effort"] = request.effort
        return body | request.options

    def parser(self, request: ModelRequest) -> ChatParser:
        return ChatParser([tool.name for tool in request.tools])


def _messages(run: Sequence[Item], turn: str, model: ModelInfo) -> list[dict[str, Any]]:
    match side(run[0]):
        case "model":
            return _assistant(run, turn)
        case "result":
            return _results(run, model)
        case _:
            return _users(run, model)


def _assistant(run: Sequence[Item], turn: str) -> list[dict[str, Any]]:
    said = [item.body for item in run]
    message: dict[str, Any] = {"role": "assistant"}
    text = "".join(b.text for b in said if isinstance(b, AssistantMessage))
    thought = "".join(b.text for b in said if isinstance(b, Reasoning) and b.signature.startswith(SIGNED))
    calls = [b for b in said if isinstance(b, ToolCall)]
    if not text and not calls:
        return []  # a thought that nothing came of; an empty message is refused by some
    message["content"] = text or None
    if thought and calls and run[-1].turn == turn:
        # Thinking models go on thinking between the calls of one turn and want it back; later it is refused by some.
        message["reasoning_content"] = thought
    if calls:
        message["tool_calls"] = [
            {"id": c.call_id, "type": "function", "function": {"name": c.name, "arguments": c.input or "{}"}}
            for c in calls
        ]
    return [message]


def _results(run: Sequence[Item], model: ModelInfo) -> list[dict[str, Any]]:
    """Results first, all of them; pictures cannot stand in a result here and follow as the user's."""
    results = [item.body for item in run if isinstance(item.body, ToolResult)]
    messages: list[dict[str, Any]] = [
        {
            "role": "tool",
            "tool_call_id": r.call_id,
            "content": result_text(r, [part for part in r.images if not model.takes(part.kind)]),
        }
        for r in results
    ]
    pictures: list[Part] = [part for r in results for part in r.images if model.takes(part.kind)]
    if pictures:
        messages.append({"role": "user", "content": _content(pictures, model)})
    return messages


def _users(run: Sequence[Item], model: ModelInfo) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for kind, bodies in groupby((item.body for item in run), type):
        if kind is UserMessage:
            said = [_content(body.parts, model) for body in bodies if isinstance(body, UserMessage)]
            messages.append({"role": "user", "content": _together(said)})
        elif kind is Summary:
            messages += [{"role": "user", "content": summary_text(b.text)} for b in bodies if isinstance(b, Summary)]
    return messages


def _together(said: list[str | list[dict[str, Any]]]) -> str | list[dict[str, Any]]:
    """Inputs with no answer between them, since the first was cancelled, are one message: some servers want the sides
    to take turns."""
    if len(said) == 1:
        return said[0]
    blocks: list[dict[str, Any]] = []
    for content in said:
        blocks += [{"type": "text", "text": content}] if isinstance(content, str) else content
    return blocks


def _content(parts: Sequence[Part], model: ModelInfo) -> str | list[dict[str, Any]]:
    media = [part for part in parts if not isinstance(part, TextPart)]
    if not any(model.takes(part.kind) for part in media):
        words = [text_of_parts(parts), left_out(media)]
        return "\n".join(word for word in words if word)
    content: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, TextPart):
            content.append({"type": "text", "text": part.text})
        elif model.takes(part.kind):
            content.append(_media(part))
        else:
            content.append({"type": "text", "text": left_out([part])})
    return content


def _media(part: Media) -> dict[str, Any]:
    if isinstance(part, ImagePart):
        return {"type": "image_url", "image_url": {"url": f"data:{part.media_type};base64,{part.data}"}}
    if part.kind is MediaKind.AUDIO and (form := _OWN_FORMATS.get(part.media_type.lower())):
        return {"type": "input_audio", "input_audio": {"data": part.data, "format": form}}
    shape = f"{part.kind}_url"
    return {"type": shape, shape: {"url": part.url} | ({"id": part.label} if part.label else {})}
