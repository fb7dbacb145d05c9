"""Items: what a thread durably consists of and what a model gets to see. Never rewritten once added."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any

import msgspec


class Attached(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a part is the content of, as whoever gave it named it. The model reads the part itself."""

    uri: str = ""  # empty: given in place, or what only names the image behind it
    media_type: str = ""
    name: str = ""


class MediaKind(StrEnum):
    IMAGE = "image"
    AUDIO = "audio"
    VIDEO = "video"


class TextPart(msgspec.Struct, frozen=True, tag="text", omit_defaults=True):
    text: str
    attached: Attached | None = None
    typed: str = ""  # by the person, where that stands for all text of the message: a command and its words


class ImagePart(msgspec.Struct, frozen=True, tag="image", omit_defaults=True):
    media_type: str
    data: str  # base64
    attached: Attached | None = None
    label: str = ""  # by which whoever gave it tells it from others

    @property
    def kind(self) -> MediaKind:
        return MediaKind.IMAGE


class MediaPart(msgspec.Struct, frozen=True, tag="media", omit_defaults=True):
    """Sound or a moving picture; of what a model sends, a still one too."""

    kind: MediaKind
    url: str  # a data URI that holds all of it in base64, or an address that its model's server knows
    attached: Attached | None = None
    label: str = ""

    @property
    def media_type(self) -> str:
        """Empty where only an address is known."""
        return self._data_uri()[0]

    @property
    def data(self) -> str:
        """In base64; empty where only an address is known."""
        return self._data_uri()[1]

    def _data_uri(self) -> tuple[str, str]:
        scheme, _, rest = self.url.partition(":")
        about, comma, data = rest.partition(",")
        return (about.partition(";")[0], data) if scheme.lower() == "data" and comma else ("", "")


Media = ImagePart | MediaPart
Part = TextPart | Media
_NOUNS = {MediaKind.IMAGE: "an image", MediaKind.AUDIO: "sound", MediaKind.VIDEO: "a video"}
_ADDRESS_SHOWN = 200


def named_image(media_type: str, data: str, name: object) -> ImagePart:
    """`name` as a client gave it, for people; only words are taken for one."""
    return ImagePart(media_type, data, Attached(name=name) if isinstance(name, str) and name else None)


class ResultStatus(StrEnum):
    OK = "ok"
    ERROR = "error"
    DENIED = "denied"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"  # the process died between intent and result


class UserMessage(msgspec.Struct, frozen=True, tag="user", omit_defaults=True):
    parts: tuple[Part, ...]
    steered: bool = False
    notice: str = ""  # which notice it tells the model; nobody has said it


class AssistantMessage(msgspec.Struct, frozen=True, tag="assistant", omit_defaults=True):
    text: str
    partial: bool = False  # the model was cut off; what came is kept and marked
    sent: MediaPart | None = None  # what it sent instead of words; the text then only names it


class Reasoning(msgspec.Struct, frozen=True, tag="reasoning", omit_defaults=True):
    text: str
    signature: str = ""
    partial: bool = False


class ToolCall(msgspec.Struct, frozen=True, tag="tool_call", omit_defaults=True):
    call_id: str
    name: str
    input: str  # the JSON text exactly as the model wrote it
    partial: bool = False
    own: str = ""  # the tool's own name, where the model knew it by another


class ToolResult(msgspec.Struct, frozen=True, tag="tool_result", omit_defaults=True):
    call_id: str
    name: str
    status: ResultStatus
    text: str  # what the model reads
    message: str = ""  # one short line for people
    display: tuple[dict[str, Any], ...] = ()
    changed_files: tuple[str, ...] = ()
    diff: str = ""
    images: tuple[Media, ...] = ()  # what the model gets to see beside the text, also moving, or to hear


class Summary(msgspec.Struct, frozen=True, tag="summary"):
    """What a compaction left of the items before it."""

    text: str


class Damaged(msgspec.Struct, frozen=True, tag="damaged", omit_defaults=True):
    """Stands where an item was whose stored bytes no longer match their checksum. Never sent to a model."""

    text: str = ""  # always empty: what is left of the bytes is not shown as if it were good


Body = UserMessage | AssistantMessage | Reasoning | ToolCall | ToolResult | Summary | Damaged


class Item(msgspec.Struct, frozen=True, omit_defaults=True):
    id: str
    thread: str
    turn: str
    ordinal: int  # 1, 2, 3 … within the thread; given by the journal, 0 before that
    at_ms: int
    body: Body
    origin: str = ""  # the item this one was forked or imported from


def tool_of(call: ToolCall) -> str:
    """The tool's own name, whatever the model calls it."""
    return call.own or call.name


def text_of(body: Body) -> str:
    """The searchable words of an item."""
    match body:
        case UserMessage(parts=parts):
            return "\n".join(p.text for p in parts if isinstance(p, TextPart))
        case ToolCall(name=name, input=given):
            return f"{name} {given}"
        case _:
            return body.text


def spoken(parts: Iterable[Part]) -> str:
    """What was said, without what was attached to it."""
    return "\n".join(p.text for p in parts if isinstance(p, TextPart) and p.attached is None)


def typed(parts: Sequence[Part]) -> str:
    """What the person typed, where the model was given something else for it."""
    return parts[0].typed if parts and isinstance(parts[0], TextPart) else ""


def as_typed(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """As the person gave them: a command in place of what the model was given for it."""
    words = typed(parts)
    return (TextPart(words), *(p for p in parts if not isinstance(p, TextPart))) if words else parts


def shown(parts: Sequence[Part]) -> str:
    """What was said, for people: what was attached is named and not told."""
    if words := typed(parts):
        return words
    files = [f"[attached: {p.attached.name or 'data'}]" for p in parts if isinstance(p, TextPart) and p.attached]
    # What has a name of its own comes behind a text that says it.
    nameless = [named(p) for p in parts if not isinstance(p, TextPart) and not (p.attached and p.attached.name)]
    return "\n".join([spoken(parts), *files, *nameless])


def named(part: Media) -> str:
    """What it is, in words, wherever it cannot be shown itself."""
    what = _NOUNS[part.kind]
    if not part.data and isinstance(part, MediaPart) and not part.media_type:
        return f"[{what} at {part.url[:_ADDRESS_SHOWN]}]"
    return f"[{what}, {part.media_type}, {len(part.data) * 3 // 4} bytes]"


def speaker(body: Body) -> str:
    """Who says it, in a word for people."""
    if isinstance(body, UserMessage) and body.notice:
        return "notice"
    words: dict[type, str] = {
        UserMessage: "you",
        AssistantMessage: "assistant",
        Reasoning: "thinking",
        ToolCall: "call",
        ToolResult: "result",
        Summary: "summary",
        Damaged: "damaged",
    }
    return words[type(body)]


def answered(items: list[Item]) -> list[Item]:
    """Without calls whose result is not among these: a model is never shown a call that nothing came of."""
    results = {i.body.call_id for i in items if isinstance(i.body, ToolResult)}
    return [i for i in items if not isinstance(i.body, ToolCall) or i.body.call_id in results]


def user_text(text: str, *, steered: bool = False) -> UserMessage:
    return UserMessage((TextPart(text),), steered)
