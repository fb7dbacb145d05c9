"""Offline: what answers when no model is connected. No network and no pretence of a language model: it turns the
commands of offline_language.py into real tool calls and tells what the tools really returned.

Remembers nothing between calls; a message without its call is acted on, a call with its result is answered.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence

import msgspec

from quintet.domain.ids import new_id
from quintet.domain.item import (
    AssistantMessage,
    Item,
    ResultStatus,
    ToolCall,
    ToolResult,
    UserMessage,
    spoken,
    tool_of,
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
)
from quintet.providers.offline_language import Call, Speak, Wish, command_list, understand

ANSWER_LENGTH = 6_000
PIECE = 24  # characters of a streamed piece: small enough that every front end is seen streaming

CONNECT = (
    "To connect a model, set ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENROUTER_API_KEY and name one with "
    "`quintet run -m anthropic/MODEL` (or openai/, openrouter/). Or name a server in config.toml, which lies where "
    "`quintet version` says:\n\n"
    '    default_model = "my/model-name"\n\n'
    "    [providers.my]\n"
    '    kind = "openai-chat"\n'
    '    base_url = "http://127.0.0.1:11434/v1"\n\n'
    'The kinds are openai-chat, openai-responses and anthropic; `api_key_env = "NAME"` names the variable with its '
    "key, where it needs one.\n"
)
WHAT_IT_IS = "This is Quintet's offline model: no language model is connected, so it understands only these commands."


class OfflineProvider:
    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        message, since = _last_message(request.items)
        wish = _next(_wish(message), since)
        if isinstance(wish, Call) and all(tool.known_as != wish.tool for tool in request.tools):
            wish = Speak(f"That needs the tool `{wish.tool}`, which is not offered in this turn.")
        for chunk in _chunks(wish):
            yield chunk


def _last_message(items: Sequence[Item]) -> tuple[str, Sequence[Item]]:
    """The last user message (a steering one too) and what came after it."""
    for place in range(len(items) - 1, -1, -1):
        body = items[place].body
        if isinstance(body, UserMessage):
            return spoken(body.parts), items[place + 1 :]
    return "", items


def _wish(message: str) -> Wish:
    return understand(message) or Speak(f"{WHAT_IT_IS}\n\n{command_list()}\n\n{CONNECT}")


def _next(wish: Wish, since: Sequence[Item]) -> Wish:
    """The next of the calls the wish takes, or, after the last or a failed one, words about its result."""
    called = {item.body.call_id: item.body for item in since if isinstance(item.body, ToolCall)}
    results = [b for item in since if isinstance(b := item.body, ToolResult) and b.call_id in called]
    steps = _steps(wish)
    if results:
        last = results[-1]
        if last.status is ResultStatus.OK and len(results) < len(steps):
            return steps[len(results)]
        return Speak(_told(called[last.call_id], last))
    if any(isinstance(item.body, AssistantMessage) for item in since):
        return Speak("That is all; send the next command.")
    return steps[0] if steps else wish


def _steps(wish: Wish) -> tuple[Call, ...]:
    """An edit is refused on a file that was not read, so it is read first."""
    if not isinstance(wish, Call):
        return ()
    return (Call("read", {"path": wish.arguments["path"]}), wish) if wish.tool == "edit" else (wish,)


def _told(call: ToolCall, result: ToolResult) -> str:
    text = _clipped(result.text)
    match result.status:
        case ResultStatus.OK:
            return _success(call, result, text)
        case ResultStatus.DENIED:
            return f"`{call.name}` was not allowed, so nothing was done. {text}".strip()
        case ResultStatus.CANCELLED:
            return f"`{call.name}` was cancelled. {text}".strip()
        case ResultStatus.UNKNOWN:
            return f"Nobody knows whether `{call.name}` was carried out. {text}".strip()
        case _:
            reason = f" ({result.message})" if result.message and result.message not in text else ""
            return f"`{call.name}` did not work{reason}: {text}"


def _success(call: ToolCall, result: ToolResult, text: str) -> str:
    given = _arguments(call)
    match tool_of(call):
        case "read":
            return f"{given.get('path', 'The file')}:\n\n{text}"
        case "shell":
            return f"`{given.get('command', '')}` ended with {result.message or 'success'}.\n\n{text}"
        case _:
            return text or result.message or "Done."


def _arguments(call: ToolCall) -> dict[str, object]:
    try:
        return msgspec.json.decode(call.input.encode(), type=dict[str, object])
    except msgspec.DecodeError:
        return {}


def _clipped(text: str) -> str:
    if len(text) <= ANSWER_LENGTH:
        return text
    return f"{text[:ANSWER_LENGTH]}\n[{len(text) - ANSWER_LENGTH} more characters are in the tool's result]"


def _chunks(wish: Wish) -> Iterator[Chunk]:
    if isinstance(wish, Call):
        call_id = new_id("cal")
        yield ToolStart(call_id, wish.tool)
        for piece in _pieces(msgspec.json.encode(wish.arguments).decode()):
            yield ToolInput(call_id, piece)
        yield FinishChunk(Finish.TOOL_CALLS)
        return
    for piece in _pieces(wish.thought):
        yield ReasoningChunk(piece)
    for piece in _pieces(wish.text):
        yield TextChunk(piece)
    yield FinishChunk(Finish.STOP)


def _pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), PIECE):
        yield text[start : start + PIECE]
