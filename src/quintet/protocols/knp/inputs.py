"""What a client says to begin a run, as the core's parts. Files are read here and now, by the one way in there is for
attachments; what they are called is kept beside what is in them, so that the history tells the same part again.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from quintet.domain.errors import Invalid, OutOfBounds
from quintet.domain.item import Attached, Part, TextPart
from quintet.domain.model import ModelInfo
from quintet.engine.attachments import Attachments, path_of
from quintet.protocols.knp import models as knp
from quintet.protocols.knp.mime import mime_type

MOST_PARTS = 100
CLOSED = "A file that is attached must lie in the project."


async def parts_of(
    given: Sequence[knp.ContentPart], attachments: Attachments, *, root: str, model: ModelInfo
) -> tuple[Part, ...]:
    """All of it, or Invalid and nothing is stored."""
    if not given or len(given) > MOST_PARTS:
        raise Invalid(f"`input` is a list of 1 to {MOST_PARTS} parts.")
    files = [part for part in given if isinstance(part, knp.FileContent)]
    try:
        found = await attachments.parts([_inner(part, root) for part in files], cwd=root, root=root, model=model)
    except OutOfBounds:
        raise Invalid(CLOSED) from None  # where it would have led is not repeated to who asks
    return _in_order(given, list(found))


def _inner(part: knp.FileContent, root: str) -> str:
    """The path from the project's root, which is what a leading slash means; a whole path in it is understood, too."""
    path = path_of(part.uri)
    inside = path.removeprefix(root) if path.startswith(f"{root}/") else path
    return inside.lstrip("/") or "."


def _in_order(given: Sequence[knp.ContentPart], found: list[Part]) -> tuple[Part, ...]:
    """An image comes with a text that names it, before it."""
    parts: list[Part] = []
    for part in given:
        match part:
            case knp.TextContent(text=text):
                parts.append(TextPart(text))
            case knp.DataContent(data=data):
                parts.append(TextPart(msgspec.json.encode(data).decode(), Attached(media_type="application/json")))
            case knp.FileContent():
                while found[0].attached is None or not found[0].attached.uri:
                    parts.append(found.pop(0))
                parts.append(_named(found.pop(0), part))
    return tuple(parts)


def _named(found: Part, part: knp.FileContent) -> Part:
    """As the client calls it, where it does."""
    attached = found.attached or Attached()
    known = mime_type(attached.name, text=True) if isinstance(found, TextPart) else found.media_type
    name = part.filename or attached.name.rpartition("/")[2]
    return msgspec.structs.replace(found, attached=Attached(attached.uri, part.mimeType or known, name))
