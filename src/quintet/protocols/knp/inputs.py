"""What a client says to begin a run, as the core's parts. Files are read through the path guard, here and now; what
they are called is kept beside what is in them, so that the history tells the same part again.
"""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from quintet.domain.errors import Invalid, NotFound
from quintet.domain.item import Attached, ImagePart, Part, TextPart
from quintet.protocols.knp import models as knp
from quintet.protocols.knp.house import House
from quintet.protocols.knp.mime import mime_type
from quintet.protocols.knp.namespaces import Namespace

MOST_PARTS = 100
FILE_BYTES = 1024 * 1024
IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")


async def parts_of(house: House, given: list[Any], namespace: Namespace, cwd: str) -> tuple[Part, ...]:
    """All of it, or Invalid and nothing is stored."""
    if not given or len(given) > MOST_PARTS:
        raise Invalid(f"`input` is a list of 1 to {MOST_PARTS} parts.")
    return tuple([await _part(house, _read(part, n), namespace, cwd) for n, part in enumerate(given)])


def _read(given: Any, place: int) -> knp.ContentPart:
    try:
        made: knp.ContentPart = msgspec.convert(given, knp.ContentPart)
        return made
    except msgspec.ValidationError as why:
        words = str(why).partition(" - at")[0]
        raise Invalid(
            f"`input[{place}]` does not fit: {words}.", next_step="Parts are text{text}, file{uri} and data{data}."
        ) from None


async def _part(house: House, part: knp.ContentPart, namespace: Namespace, cwd: str) -> Part:
    match part:
        case knp.TextContent(text=text):
            return TextPart(text)
        case knp.DataContent(data=data):
            return TextPart(msgspec.json.encode(data).decode(), Attached(media_type="application/json"))
        case knp.FileContent():
            return await _file(house, part, namespace.rooted())


async def _file(house: House, part: knp.FileContent, root: str) -> Part:
    address = urlsplit(part.uri)
    if address.scheme != "file" or address.netloc not in ("", "localhost"):
        raise Invalid(
            "Only file:// addresses of the server's own project can be attached.",
            next_step="Put the file into the project, or its text into a text part.",
        )
    path = unquote(address.path)
    inner = path.removeprefix(root) if path == root or path.startswith(f"{root}/") else path
    try:
        found = await house.files.content(root, inner, FILE_BYTES)
    except NotFound:
        raise Invalid("A file that is attached is not there.", next_step="Its path begins at the project.") from None
    if found.truncated:
        raise Invalid(f"A file that is attached has {FILE_BYTES} bytes at most.")
    name = part.filename or found.path.rpartition("/")[2]
    media = part.mimeType or mime_type(found.path, text=found.text)
    attached = Attached(f"file:///{found.path}", media, name)
    if not found.text:
        if media not in IMAGES:
            raise Invalid("Only text and images can be attached.")
        return ImagePart(media, base64.b64encode(found.data).decode(), attached)
    return TextPart(f"File {found.path}:\n\n{found.data.decode()}", attached)
