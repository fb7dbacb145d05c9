"""What a user says, as the engine takes it; and what the model cannot take of it. Opens nothing itself."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

from quintet.domain.errors import Invalid
from quintet.domain.item import ImagePart, Part, TextPart
from quintet.domain.model import ModelInfo
from quintet.protocols.wire import models as wire

_DATA = re.compile(r"data:([\w.+-]+/[\w.+-]+)(?:;[\w=.-]+)*;base64,([A-Za-z0-9+/=\s]*)\Z")


Fetch = Callable[[str], Awaitable[ImagePart]]


async def no_fetch(address: str) -> ImagePart:
    raise Invalid("An image must be given as a data URI with base64: no address is opened for it.")


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
        case wire.ImageURLPart(image_url=wire.Url(url=url)):
            return data_image(url) or await fetch(url)
        case wire.AudioURLPart() | wire.VideoURLPart():
            raise Invalid("Sound and moving pictures cannot be given to a model.")  # `lacks` has said so before


def data_image(url: str) -> ImagePart | None:
    """The image that the URL itself holds."""
    if found := _DATA.match(url):
        return ImagePart(found[1], "".join(found[2].split()))
    if url[:5].lower() == "data:":
        raise Invalid("An image given as a data URI must be an image in base64.")
    return None


def lacks(given: wire.UserInput, model: ModelInfo) -> str:
    """The first capability that the input needs and the model has not, in the words of Kimi's configuration."""
    for part in given if not isinstance(given, str) else ():
        match part:
            case wire.ImageURLPart() if not model.vision:
                return "image_in"
            case wire.AudioURLPart():
                return "audio_in"
            case wire.VideoURLPart():
                return "video_in"
            case wire.ThinkPart() if not model.reasoning:
                return "thinking"
    return ""
