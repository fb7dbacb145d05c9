"""How each dialect says what a script says: chunks in, frames of a server-sent event stream out."""

from __future__ import annotations

import json
from typing import Any, ClassVar

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


def event(data: dict[str, Any], name: str = "") -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}\n\n".encode()


class Speech:
    """One answer. `say` gives the frames of a chunk; `finish` and usage are kept for `end`."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.calls: dict[str, int] = {}
        self.usage: Usage | None = Usage(input_tokens=1, output_tokens=1)
        self.reason: str | None = None

    def begin(self) -> bytes:
        return b""

    def say(self, chunk: Chunk) -> bytes:
        match chunk:
            case TextChunk(text=text):
                return self.text(text)
            case ReasoningChunk(text=text):
                return self.thought(text)
            case ToolStart(call_id=call_id, name=name):
                self.calls[call_id] = len(self.calls)
                return self.call(call_id, name)
            case ToolInput(call_id=call_id, text=text):
                return self.input(call_id, text)
            case UsageChunk(usage=usage):
                self.usage = usage
            case FinishChunk(reason=reason):
                self.reason = self.REASONS[reason]
        return b""

    REASONS: ClassVar[dict[Finish, str]]

    def text(self, text: str) -> bytes:
        raise NotImplementedError

    def thought(self, text: str) -> bytes:
        raise NotImplementedError

    def call(self, call_id: str, name: str) -> bytes:
        raise NotImplementedError

    def input(self, call_id: str, text: str) -> bytes:
        raise NotImplementedError

    def refuse(self) -> bytes:
        raise NotImplementedError

    def error(self, code: str, message: str) -> bytes:
        raise NotImplementedError

    def end(self) -> list[bytes]:
        """The last frames; the very last says that it is over."""
        raise NotImplementedError


class ChatSpeech(Speech):
    REASONS: ClassVar = {
        Finish.STOP: "stop",
        Finish.TOOL_CALLS: "tool_calls",
        Finish.LENGTH: "length",
        Finish.REFUSAL: "content_filter",
        Finish.OTHER: "because",
    }

    def frame(self, delta: dict[str, Any], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return event(self._of([choice]))

    def _of(self, choices: list[Any]) -> dict[str, Any]:
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": self.model,
            "choices": choices,
        }

    def begin(self) -> bytes:
        return self.frame({"role": "assistant", "content": ""})

    def text(self, text: str) -> bytes:
        return self.frame({"content": text})

    def thought(self, text: str) -> bytes:
        return self.frame({"reasoning_content": text})

    def call(self, call_id: str, name: str) -> bytes:
        function = {"name": name, "arguments": ""}
        index = len(self.calls) - 1
        return self.frame({"tool_calls": [{"index": index, "id": call_id, "type": "function", "function": function}]})

    def input(self, call_id: str, text: str) -> bytes:
        return self.frame({"tool_calls": [{"index": self.calls[call_id], "function": {"arguments": text}}]})

    def refuse(self) -> bytes:
        self.reason = "stop"
        return self.frame({"refusal": "I will not do that."})

    def error(self, code: str, message: str) -> bytes:
        return event({"error": {"code": code, "message": message}})

    def end(self) -> list[bytes]:
        frames = [] if self.reason is None else [self.frame({}, self.reason)]
        if self.usage is not None:
            frames.append(event(self._of([]) | {"usage": self._usage(self.usage)}))
        return [*frames, b"data: [DONE]\n\n"]

    def _usage(self, usage: Usage) -> dict[str, Any]:
        counts: dict[str, Any] = {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens}
        counts["prompt_tokens_details"] = {"cached_tokens": usage.cached_tokens}
        counts["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
        return counts


class _Blocks(Speech):
    """Dialects whose answer consists of numbered blocks that begin and end."""

    def __init__(self, model: str) -> None:
        super().__init__(model)
        self.index = -1
        self.open = ""  # what kind the open block is
        self.thoughts = 0
        self.words: list[str] = []

    def block(self, kind: str) -> bytes:
        """Frames that close the open block and begin one of this kind, if it is not open already."""
        if self.open == kind and kind in ("text", "thinking"):
            return b""
        before = self.close_block()
        self.index += 1
        self.open, self.words = kind, []
        return before + self.open_block(kind)

    def open_block(self, kind: str) -> bytes:
        raise NotImplementedError

    def close_block(self) -> bytes:
        raise NotImplementedError


class MessagesSpeech(_Blocks):
    REASONS: ClassVar = {
        Finish.STOP: "end_turn",
        Finish.TOOL_CALLS: "tool_use",
        Finish.LENGTH: "max_tokens",
        Finish.REFUSAL: "refusal",
        Finish.OTHER: "because",
    }

    def frame(self, kind: str, **more: Any) -> bytes:
        return event({"type": kind, **more}, kind)

    def begin(self) -> bytes:
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": self.model, "content": []}
        if self.usage is not None:
            message["usage"] = self._given(self.usage)
        return self.frame("message_start", message=message) + self.frame("ping")

    def delta(self, kind: str, **more: Any) -> bytes:
        return self.frame("content_block_delta", index=self.index, delta={"type": kind, **more})

    def text(self, text: str) -> bytes:
        return self.block("text") + self.delta("text_delta", text=text)

    def thought(self, text: str) -> bytes:
        return self.block("thinking") + self.delta("thinking_delta", thinking=text)

    def call(self, call_id: str, name: str) -> bytes:
        before = self.close_block()
        self.index += 1
        self.open = "tool_use"
        self.calls[call_id] = self.index
        block = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
        return before + self.frame("content_block_start", index=self.index, content_block=block)

    def input(self, call_id: str, text: str) -> bytes:
        delta = {"type": "input_json_delta", "partial_json": text}
        return self.frame("content_block_delta", index=self.calls[call_id], delta=delta)

    def open_block(self, kind: str) -> bytes:
        block = {"type": kind, kind: ""}
        return self.frame("content_block_start", index=self.index, content_block=block)

    def close_block(self) -> bytes:
        if not self.open:
            return b""
        signature = b""
        if self.open == "thinking":
            self.thoughts += 1
            signature = self.delta("signature_delta", signature=f"sig_{self.thoughts}")
        self.open = ""
        return signature + self.frame("content_block_stop", index=self.index)

    def refuse(self) -> bytes:
        self.reason = "refusal"
        return b""

    def error(self, code: str, message: str) -> bytes:
        return self.frame("error", error={"type": code, "message": message})

    def end(self) -> list[bytes]:
        more: dict[str, Any] = {"delta": {"stop_reason": self.reason}}
        if self.usage is not None:
            more["usage"] = {"output_tokens": self.usage.output_tokens}
        return [self.close_block(), self.frame("message_delta", **more), self.frame("message_stop")]

    def _given(self, usage: Usage) -> dict[str, Any]:
        cached = usage.cached_tokens or 0
        plain = None if usage.input_tokens is None else usage.input_tokens - cached
        return {"input_tokens": plain, "cache_read_input_tokens": cached, "output_tokens": 1}


class ResponsesSpeech(_Blocks):
    REASONS: ClassVar = {
        Finish.STOP: "completed",
        Finish.TOOL_CALLS: "completed",
        Finish.LENGTH: "max_output_tokens",
        Finish.REFUSAL: "content_filter",
        Finish.OTHER: "because",
    }

    def __init__(self, model: str) -> None:
        super().__init__(model)
        self.inputs: dict[int, list[str]] = {}
        self.names: dict[int, tuple[str, str]] = {}

    def frame(self, kind: str, **more: Any) -> bytes:
        return event({"type": kind, **more}, kind)

    def begin(self) -> bytes:
        return self.frame("response.created", response={"id": "resp_1", "status": "in_progress"})

    def text(self, text: str) -> bytes:
        before = self.block("text")
        self.words.append(text)
        frame = self.frame("response.output_text.delta", item_id=f"item_{self.index}", content_index=0, delta=text)
        return before + frame

    def thought(self, text: str) -> bytes:
        before = self.block("thinking")
        self.words.append(text)
        frame = self.frame(
            "response.reasoning_summary_text.delta", item_id=f"item_{self.index}", summary_index=0, delta=text
        )
        return before + frame

    def call(self, call_id: str, name: str) -> bytes:
        before = self.close_block()
        self.index += 1
        self.open = "call"
        self.calls[call_id] = self.index
        self.inputs[self.index], self.names[self.index] = [], (call_id, name)
        return before + self.frame("response.output_item.added", output_index=self.index, item=self._call(""))

    def _call(self, arguments: str) -> dict[str, Any]:
        call_id, name = self.names[self.index]
        kind = "function_call"
        return {"type": kind, "id": f"item_{self.index}", "call_id": call_id, "name": name, "arguments": arguments}

    def input(self, call_id: str, text: str) -> bytes:
        index = self.calls[call_id]
        self.inputs[index].append(text)
        return self.frame("response.function_call_arguments.delta", item_id=f"item_{index}", delta=text)

    def open_block(self, kind: str) -> bytes:
        item: dict[str, Any] = {"id": f"item_{self.index}", "type": "message" if kind == "text" else "reasoning"}
        return self.frame("response.output_item.added", output_index=self.index, item=item)

    def close_block(self) -> bytes:
        words, kind, self.open = "".join(self.words), self.open, ""
        item: dict[str, Any] = {"id": f"item_{self.index}"}
        match kind:
            case "":
                return b""
            case "text":
                item |= {"type": "message", "content": [{"type": "output_text", "text": words}]}
            case "thinking":
                self.thoughts += 1
                summary = [{"type": "summary_text", "text": words}]
                item |= {"type": "reasoning", "summary": summary, "encrypted_content": f"enc_{self.thoughts}"}
            case _:
                item = self._call("".join(self.inputs[self.index]))
        return self.frame("response.output_item.done", output_index=self.index, item=item)

    def refuse(self) -> bytes:
        self.reason = "completed"
        return self.block("text") + self.frame("response.refusal.delta", delta="I will not do that.")

    def error(self, code: str, message: str) -> bytes:
        error = {"code": code, "message": message}
        return self.frame("response.failed", response={"id": "resp_1", "status": "failed", "error": error})

    def end(self) -> list[bytes]:
        response: dict[str, Any] = {"id": "resp_1", "status": "completed"}
        if self.usage is not None:
            response["usage"] = self._usage(self.usage)
        if self.reason == "completed":
            return [self.close_block(), self.frame("response.completed", response=response)]
        if self.reason is None:
            return [self.close_block(), b"data: [DONE]\n\n"]
        response |= {"status": "incomplete", "incomplete_details": {"reason": self.reason}}
        return [self.close_block(), self.frame("response.incomplete", response=response)]

    def _usage(self, usage: Usage) -> dict[str, Any]:
        counts: dict[str, Any] = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
        counts["input_tokens_details"] = {"cached_tokens": usage.cached_tokens}
        counts["output_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
        return counts


SPEECHES: dict[str, type[Speech]] = {
    "/chat/completions": ChatSpeech,
    "/messages": MessagesSpeech,
    "/responses": ResponsesSpeech,
}
