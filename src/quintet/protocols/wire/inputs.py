"""What a user says, as the engine takes it; and what the model cannot take of it. Opens nothing itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from quintet.domain.errors import Invalid
from quintet.domain.item import Media, MediaKind, Part, TextPart
from quintet.domain.model import ModelInfo
from quintet.protocols.wire import models as wire
from quintet.protocols.wire.parts import held, url_of

Fetch = Callable[[str, MediaKind], Awaitable[Media]]


async def no_fetch(address: str, kind: MediaKind) -> Media:
    raise Invalid("It must be given as a data URI with base64: no address is opened for it.")


async def core_parts(given: wire.UserInput, fetch: Fetch = no_fetch) -> tuple[Part, ...]:
    """An empty input is one, too. `fetch` gets what lies at an address."""
    if isinstance(given, str):
        return (TextPart(given),)
    return tuple([await _part(part, fetch) for part in given]) or (TextPart(""),)


def plain_text(given: wire.UserInput) -> str:
    """What was said, where it is nothing but text."""
    if isinstance(given, str):
        return given
    texts = [part.text for part in given if isinstance(part, wire.TextPart)]
    return " ".join(texts) if len(texts) == len(given) else ""


async def _part(part: wire.ContentPart, fetch: Fetch) -> Part:
    match part:
        case wire.TextPart(text=text):
            return TextPart(text)
        case wire.ThinkPart(think=text):
            return TextPart(text)
        case _:
            kind, url = url_of(part)
            return held(kind, url) or replace(await fetch(url.url, kind), label=url.id or "")


def lacks(given: wire.UserInput, model: ModelInfo) -> str:
    """The first capability that the input needs and the model has not, in the words of Kimi's configuration."""
    for part in given if not isinstance(given, str) else ():
        match part:
            case wire.ImageURLPart() if not model.vision:
                return "image_in"
            case wire.AudioURLPart() if not model.audio:
                return "audio_in"
            case wire.VideoURLPart() if not model.video:
                return "video_in"
            case wire.ThinkPart() if not model.reasoning:
                return "thinking"
    return ""
