"""Gauge: how large a request is, in tokens. A rough count of characters, set right by what the provider counted."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from quintet.domain.item import Body, Item, MediaKind, Part, Reasoning, TextPart, ToolCall, ToolResult, UserMessage
from quintet.domain.model import ModelInfo, ModelRequest, Usage

CHARACTERS_A_TOKEN = 4
ITEM_TOKENS = 8  # what a wire wraps around each item
# However long or large: how many bytes a second of it takes says little about how many tokens it is.
MEDIA_TOKENS = {MediaKind.IMAGE: 1_500, MediaKind.AUDIO: 1_500, MediaKind.VIDEO: 10_000}
LOWEST_FACTOR = 0.5  # a provider that counts less than that leaves something out
SHARE = 0.8  # of the room for input: where compaction begins


class Room(msgspec.Struct, frozen=True):
    """What a model with a known window can be sent."""

    window: int
    usable: int  # for input: the window without the answer
    threshold: int

    @classmethod
    def of(cls, info: ModelInfo, share: float = SHARE) -> Room | None:
        if not info.context_window:
            return None
        window = info.context_window
        # Some say that an answer may be as long as the window; it never is while there is anything to answer to.
        usable = window - min(info.max_output or 0, window // 2)
        return cls(window, usable, int(usable * share))


class Gauge:
    def __init__(self) -> None:
        self._factor = 1.0

    def tokens(self, request: ModelRequest) -> int:
        return int(rough_request(request) * self._factor)

    def rough(self, tokens: float) -> int:
        """So many real tokens in rough ones, as the functions below count them."""
        return int(tokens / self._factor)

    def measured(self, request: ModelRequest, usage: Usage | None) -> None:
        """The provider has counted this request. What is added to it later is counted in the same proportion."""
        if usage is not None and usage.input_tokens:
            self._factor = max(LOWEST_FACTOR, usage.input_tokens / rough_request(request))

    def refused(self, request: ModelRequest, room: Room | None) -> None:
        """Too long for its model: whatever was counted, it is at least as large as what fits."""
        if room is not None:
            self._factor = max(self._factor, room.usable / rough_request(request))


def rough_request(request: ModelRequest) -> int:
    tools = len(msgspec.json.encode(request.tools)) if request.tools else 0
    return 1 + rough_items(request.items) + (len(request.instructions) + tools) // CHARACTERS_A_TOKEN


def text_tokens(items: Sequence[Item]) -> int:
    """Of what was said and read alone, without what a wire wraps around it."""
    return sum(map(_characters, items)) // CHARACTERS_A_TOKEN


def rough_items(items: Sequence[Item]) -> int:
    return sum(rough_item(item.body) for item in items)


def rough_item(body: Body) -> int:
    match body:
        case UserMessage(parts=parts):
            return ITEM_TOKENS + sum(map(_rough_part, parts))
        case ToolCall(call_id=call_id, name=name, input=given):
            return ITEM_TOKENS + (len(call_id) + len(name) + len(given)) // CHARACTERS_A_TOKEN
        case ToolResult(text=text, images=images):
            return ITEM_TOKENS + len(text) // CHARACTERS_A_TOKEN + sum(map(_rough_part, images))
        case Reasoning(text=text, signature=signature):
            return ITEM_TOKENS + (len(text) + len(signature)) // CHARACTERS_A_TOKEN
        case _:
            return ITEM_TOKENS + len(body.text) // CHARACTERS_A_TOKEN


def _characters(item: Item) -> int:
    match item.body:
        case UserMessage(parts=parts):
            return sum(len(part.text) for part in parts if isinstance(part, TextPart))
        case ToolCall() | Reasoning():
            return 0
        case body:
            return len(body.text)


def _rough_part(part: Part) -> int:
    return len(part.text) // CHARACTERS_A_TOKEN if isinstance(part, TextPart) else MEDIA_TOKENS[part.kind]
