"""What a request tells of the conversation so far, as items: enough to find the step of a script that comes next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
        case {"type": "function_call_output", "call_id": call_id} | {"role": "tool", "tool_call_id": call_id}:
            return [ToolResult(call_id, "", ResultStatus.OK, "")]
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


def _blocks(content: list[dict[str, Any]], words: Callable[[str], Body]) -> list[Body]:
    bodies: list[Body] = []
    for block in content:
        match block:
            case {"type": "tool_use", "id": call_id, "name": name}:
                bodies.append(ToolCall(call_id, name, ""))
            case {"type": "tool_result", "tool_use_id": call_id}:
                bodies.append(ToolResult(call_id, "", ResultStatus.OK, ""))
            case {"type": "thinking" | "redacted_thinking"}:
                bodies.append(Reasoning(""))
            case {"type": "text" | "input_text" | "output_text", "text": text}:
                bodies.append(words(text))
    return bodies
