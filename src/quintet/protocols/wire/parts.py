"""Parts of what is said, in the core's words as in Wire's. Pure: what lies at an address somebody else has to get."""

from __future__ import annotations

import re

from quintet.domain.errors import Invalid
from quintet.domain.item import ImagePart, MediaKind, MediaPart, Part, TextPart
from quintet.protocols.wire import models as wire

# Files that a model's own server keeps, by the name it gave them: nobody else can open these.
OF_THE_SERVER = "ms://"
_DATA = re.compile(r"data:([\w.+-]+/[\w.+-]+)(?:;[\w=.-]+)*;base64,([A-Za-z0-9+/\s]*={0,2}\s*)\Z")
_NOUNS = {
    MediaKind.IMAGE: "An image given as a data URI must be an image in base64.",
    MediaKind.AUDIO: "Sound given as a data URI must be in base64.",
    MediaKind.VIDEO: "A video given as a data URI must be in base64.",
}


def wire_part(part: Part) -> wire.ContentPart:
    match part:
        case TextPart(text=text):
            return wire.TextPart(text)
        case ImagePart(media_type=media_type, data=data):
            return wire.ImageURLPart(wire.Url(f"data:{media_type};base64,{data}", part.label or None))
        case MediaPart():
            return _media(part)


def _media(part: MediaPart) -> wire.ContentPart:
    url = wire.Url(part.url, part.label or None)
    match part.kind:
        case MediaKind.IMAGE:
            return wire.ImageURLPart(url)
        case MediaKind.AUDIO:
            return wire.AudioURLPart(url)
        case MediaKind.VIDEO:
            return wire.VideoURLPart(url)


def url_of(part: wire.ImageURLPart | wire.AudioURLPart | wire.VideoURLPart) -> tuple[MediaKind, wire.Url]:
    match part:
        case wire.ImageURLPart(image_url=url):
            return MediaKind.IMAGE, url
        case wire.AudioURLPart(audio_url=url):
            return MediaKind.AUDIO, url
        case wire.VideoURLPart(video_url=url):
            return MediaKind.VIDEO, url


def held(kind: MediaKind, given: wire.Url) -> ImagePart | MediaPart | None:
    """What the URL itself holds, or names on the model's own server; None where it would have to be fetched."""
    url, label = given.url, given.id or ""
    if url[:5].lower() != "data:":
        passed_on = kind is not MediaKind.IMAGE and url.startswith(OF_THE_SERVER)
        return MediaPart(kind, url, label=label) if passed_on else None
    found = _DATA.match(url)
    data = "".join(found[2].split()) if found else ""
    if found is None or not _whole(data) or (kind is MediaKind.IMAGE and not found[1].startswith("image/")):
        raise Invalid(_NOUNS[kind])
    return ImagePart(found[1], data, label=label) if kind is MediaKind.IMAGE else MediaPart(kind, url, label=label)


def _whole(data: str) -> bool:
    """Base64 that can be read: what cannot would be refused by the model's server, with every later prompt, too."""
    return bool(signs := len(data.rstrip("="))) and signs % 4 != 1
