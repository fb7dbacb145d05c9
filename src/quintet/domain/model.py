"""Models as the engine sees them: a request made of items, and a stream of chunks coming back."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from quintet.domain.item import Item, MediaKind, MediaPart
from quintet.domain.tool import ToolSpec


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """As the provider reported it; None means it did not say."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None  # of the input: read from the provider's cache
    reasoning_tokens: int | None = None
    cache_written_tokens: int | None = None  # of the input: put into that cache, where it is counted


class Finish(StrEnum):
    STOP = "stop"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"
    REFUSAL = "refusal"
    OTHER = "other"


class ModelInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known of a model. None: nobody knows, which is not the same as none."""

    reference: str  # "provider/model"
    context_window: int | None = None
    max_output: int | None = None
    vision: bool = False
    reasoning: bool = False
    input_price: float | None = None  # US dollars per million tokens
    output_price: float | None = None
    cached_price: float | None = None  # of input tokens read from the provider's cache
    cache_write_price: float | None = None  # of input tokens written to it, where that costs extra
    as_of: str = ""  # the day of the catalog's word, where anything of this is from there
    price_reported: bool = False  # the price was told by others than who asks it: costs by it are about right
    thoughts_in_limit: bool = False  # a limit of output counts thoughts too
    summarises: bool = True  # False: no language model, there is no sense in asking it for a summary
    fallback: tuple[str, ...] = ()  # references to try in this order when it cannot answer
    audio: bool = False
    video: bool = False

    def takes(self, kind: MediaKind) -> bool:
        return {MediaKind.IMAGE: self.vision, MediaKind.AUDIO: self.audio, MediaKind.VIDEO: self.video}[kind]


class ModelRequest(msgspec.Struct, frozen=True):
    model: str  # the part after "provider/"
    instructions: str
    items: tuple[Item, ...]
    tools: tuple[ToolSpec, ...]
    thread: str
    options: dict[str, Any] = {}
    effort: str = ""  # how hard a model that thinks shall, in its provider's words; empty: as it likes
    restarts: bool = False  # an answer that breaks off may begin anew, behind a RetryChunk; else it is kept as it is


class TextChunk(msgspec.Struct, frozen=True, gc=False):
    text: str


class ReasoningChunk(msgspec.Struct, frozen=True, gc=False):
    text: str
    signature: str = ""


class ToolStart(msgspec.Struct, frozen=True, gc=False):
    """A tool call begins. The call id is the provider's own; the engine makes it unique if it repeats."""

    call_id: str
    name: str
    fed: bool = False  # the first of its input came with it and is the next chunk


class ToolInput(msgspec.Struct, frozen=True, gc=False):
    """More of a call's JSON text."""

    call_id: str
    text: str


class MediaChunk(msgspec.Struct, frozen=True):
    """A picture, sound or a moving picture in the answer: whole, where words come in pieces."""

    part: MediaPart


class UsageChunk(msgspec.Struct, frozen=True):
    usage: Usage


class FinishChunk(msgspec.Struct, frozen=True):
    reason: Finish
    answer_id: str = ""  # the provider's own name for the answer, where it says one


class RetryChunk(msgspec.Struct, frozen=True):
    """The provider is trying again by itself; watchers are told."""

    attempt: int
    wait_s: float
    reason: str
    kind: str = ""  # of the failure, in a word
    most: int = 0  # attempts there can be; 0: not known
    status: int | None = None  # what the provider answered, where it answered


Chunk = TextChunk | ReasoningChunk | MediaChunk | ToolStart | ToolInput | UsageChunk | FinishChunk | RetryChunk
