"""What a request tells: the instructions, and the conversation so far as items. Enough to find the step of a script
that comes next, or to make an answer up.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from quintet.domain.item import (
    AssistantMessage,
    Body,
    Item,
    Reasoning,
    ResultStatus,
    ToolCall,
    ToolResult,
    UserMessage,
    user_text,
)


class Told(NamedTuple):
    """What a model can know: nothing else."""

    instructions: str
    items: list[Item]


def told(body: dict[str, Any]) -> Told:
    return Told(_instructions(body), items_told(body))


def _instructions(body: dict[str, Any]) -> str:
    given = body.get("instructions", body.get("system", ""))
    for entry in body.get("messages", []):
        if entry.get("role") == "system":
            given = entry["content"]
    return _words(given)


def _words(content: Any) -> str:
    """Text that is one string, or comes in blocks."""
    return content if isinstance(content, str) else "".join(str(block.get("text", "")) for block in content)


def items_told(body: dict[str, Any]) -> list[Item]:
    entries = body.get("messages", body.get("input", []))
    bodies = [made for entry in entries for made in _bodies(entry)]
    items: list[Item] = []
    turn = 0
    for number, made in enumerate(bodies, 1):
        turn += isinstance(made, UserMessage)
        items.append(Item(f"itm_{number}", "told", f"trn_{turn}", number, 0, made))
    return items


def _bodies(entry: dict[str, Any]) -> list[Body]:
    match entry:
        case {"type": "reasoning"}:
            return [Reasoning("")]
        case {"type": "function_call", "call_id": call_id, "name": name, "arguments": given}:
            return [ToolCall(call_id, name, given)]
        case {"type": "function_call_output", "call_id": call_id, "output": content} | {
            "role": "tool",
            "tool_call_id": call_id,
            "content": content,
        }:
            return [_result(call_id, content)]
        case {"role": "assistant", "content": content}:
            said: list[Body] = [AssistantMessage(content)] if isinstance(content, str) and content else []
            said += _blocks(content, AssistantMessage) if isinstance(content, list) else []
            calls = entry.get("tool_calls", [])
            return said + [ToolCall(c["id"], c["function"]["name"], c["function"]["arguments"]) for c in calls]
        case {"role": "user", "content": list(content)}:
            return _blocks(content, user_text)
        case {"role": "user", "content": content}:
            return [user_text(str(content))]
        case _:
            return []


def _result(call_id: str, content: Any, *, failed: bool = False) -> ToolResult:
    """One wire says whether a call went well, on the others the words begin with it if it did not."""
    text = _words(content)
    status = next((s for s in ResultStatus if text.startswith(f"[{s}] ")), ResultStatus.OK)
    status = ResultStatus.ERROR if failed else status
    return ToolResult(call_id, "", status, text)


def _blocks(content: list[dict[str, Any]], words: Callable[[str], Body]) -> list[Body]:
    bodies: list[Body] = []
    for block in content:
        match block:
            case {"type": "tool_use", "id": call_id, "name": name, "input": given}:
                bodies.append(ToolCall(call_id, name, json.dumps(given)))
            case {"type": "tool_result", "tool_use_id": call_id, "content": given}:
                bodies.append(_result(call_id, given, failed=block.get("is_error", False)))
            case {"type": "thinking" | "redacted_thinking"}:
                bodies.append(Reasoning(""))
            case {"type": "text" | "input_text" | "output_text", "text": text}:
                bodies.append(words(text))
    return bodies
