"""OpenAI's chat completions, as spoken by OpenAI, OpenRouter, Databricks, Kimi, Ollama, LM Studio, vLLM and llama.cpp.

They agree on the shape and differ in what they leave out, so everything but the shape is optional here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

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
from quintet.providers.dialect import count, decoded, groups, refuse, result_text, side, text_of_parts
from quintet.providers.settings import ModelSettings
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


class OpenAIChat:
    path = "/chat/completions"

    def headers(self, key: str) -> dict[str, str]:
        return {"authorization": f"Bearer {key}"} if key else {}

    def body(self, request: ModelRequest, model: ModelSettings) -> dict[str, Any]:
        messages: list[dict[str, Any]] = []
        if request.instructions:
            messages.append({"role": "system", "content": request.instructions})
        turn = request.items[-1].turn if request.items else ""
        for run in groups(request.items):
            messages += _messages(run, turn, vision=model.vision)
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
            body["max_tokens"] = model.max_output
        return body | request.options

    def parser(self, request: ModelRequest) -> ChatParser:
        return ChatParser([tool.name for tool in request.tools])


def _messages(run: Sequence[Item], turn: str, *, vision: bool) -> list[dict[str, Any]]:
    match side(run[0]):
        case "model":
            return [_assistant(run, turn)]
        case "result":
            return _results(run, vision=vision)
        case _:
            return [_user(item, vision=vision) for item in run]


def _assistant(run: Sequence[Item], turn: str) -> dict[str, Any]:
    said = [item.body for item in run]
    message: dict[str, Any] = {"role": "assistant"}
    text = "".join(b.text for b in said if isinstance(b, AssistantMessage))
    thought = "".join(b.text for b in said if isinstance(b, Reasoning) and b.signature.startswith(SIGNED))
    calls = [b for b in said if isinstance(b, ToolCall)]
    message["content"] = text or (None if calls else "")
    if thought and calls and run[-1].turn == turn:
        # Thinking models go on thinking between the calls of one turn and want it back; later it is refused by some.
        message["reasoning_content"] = thought
    if calls:
        message["tool_calls"] = [
            {"id": c.call_id, "type": "function", "function": {"name": c.name, "arguments": c.input or "{}"}}
            for c in calls
        ]
    return message


def _results(run: Sequence[Item], *, vision: bool) -> list[dict[str, Any]]:
    """Results first, all of them; pictures cannot stand in a result here and follow as the user's."""
    results = [item.body for item in run if isinstance(item.body, ToolResult)]
    messages: list[dict[str, Any]] = [
        {"role": "tool", "tool_call_id": r.call_id, "content": result_text(r)} for r in results
    ]
    pictures: list[Part] = [image for r in results for image in r.images]
    if pictures and vision:
        messages.append({"role": "user", "content": _content(pictures, vision=True)})
    return messages


def _user(item: Item, *, vision: bool) -> dict[str, Any]:
    match item.body:
        case UserMessage(parts=parts):
            return {"role": "user", "content": _content(parts, vision=vision)}
        case Summary(text=text):
            return {"role": "user", "content": f"[Summary of the conversation until here]\n{text}"}
        case body:
            return {"role": "user", "content": getattr(body, "text", "")}


def _content(parts: Sequence[Part], *, vision: bool) -> str | list[dict[str, Any]]:
    images = [part for part in parts if isinstance(part, ImagePart)]
    if not images or not vision:
        told = f"\n[{len(images)} image(s) left out: this model takes no images]" if images else ""
        return text_of_parts(parts) + told
    content: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, TextPart):
            content.append({"type": "text", "text": part.text})
        else:
            url = f"data:{part.media_type};base64,{part.data}"
            content.append({"type": "image_url", "image_url": {"url": url}})
    return content


class ChatParser:
    def __init__(self, tools: Sequence[str]) -> None:
        self.finished = False
        self._thinking = False
        self._calls: dict[int, str] = {}  # by index: the id its pieces go under
        self._reason: Finish | None = None
        self._spoken = SpokenCalls(tools)

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
            choice = choices[0] or {}
            delta = choice.get("delta") or choice.get("message")
            if delta:
                self._delta(delta, chunks)
            reason = choice.get("finish_reason")
            if reason:
                self._reason = _FINISH.get(reason, Finish.OTHER)
        if usage := message.get("usage"):
            chunks.append(UsageChunk(_usage(usage)))
        return chunks

    def _delta(self, delta: dict[str, Any], chunks: list[Chunk]) -> None:
        text = delta.get("content")
        if text:
            chunks += self._spoken.add(text) if type(text) is str else ()
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        if thought and type(thought) is str:
            # Marked as this wire's own: it goes back to the servers that want it, never to another wire.
            chunks.append(ReasoningChunk(thought, "" if self._thinking else SIGNED))
        self._thinking = bool(thought)
        for call in delta.get("tool_calls") or ():
            self._call(call, chunks)
        if refusal := delta.get("refusal"):
            chunks.append(TextChunk(str(refusal)))
            self._reason = Finish.REFUSAL

    def _call(self, call: dict[str, Any], chunks: list[Chunk]) -> None:
        function = call.get("function") or {}
        index = call.get("index")
        index = index if isinstance(index, int) else len(self._calls) if function.get("name") else len(self._calls) - 1
        known = self._calls.get(index)
        if known is None or (function.get("name") and call.get("id") not in ("", None, known)):
            if not function.get("name"):
                return  # pieces of a call that never began
            self._calls[index] = str(call.get("id") or f"call_{index}")
            chunks.append(ToolStart(self._calls[index], str(function["name"])))
        arguments = function.get("arguments")
        if arguments:
            text = arguments if isinstance(arguments, str) else _as_json(arguments)
            chunks.append(ToolInput(self._calls[index], text))

    def end(self) -> Iterable[Chunk]:
        rest = list(self._spoken.end())
        called = bool(self._calls) or self._spoken.found
        reason = Finish.TOOL_CALLS if called and self._reason in (None, Finish.STOP) else self._reason
        if reason is not None:
            rest.append(FinishChunk(reason))
            self.finished = True
        return rest


def _as_json(value: Any) -> str:
    import msgspec

    return msgspec.json.encode(value).decode()


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
