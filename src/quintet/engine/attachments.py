"""Attachments: files that somebody gives along with what they say become parts of it. One way in for every protocol and
the command line; which files may be read is for the files' own side to judge, by the one path guard.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import quote, unquote_to_bytes, urlsplit

import msgspec

from quintet.domain.attachment import Attachment
from quintet.domain.errors import Invalid
from quintet.domain.item import Attached, MediaKind, Part, TextPart
from quintet.domain.model import ModelInfo
from quintet.domain.ports import AttachableFiles

MOST = 20  # files with one message
MOST_BYTES = 20 * 1024 * 1024  # of all of them
_KINDS = {
    MediaKind.IMAGE: ("an image", "images"),
    MediaKind.AUDIO: ("a sound recording", "sound"),
    MediaKind.VIDEO: ("a video", "videos"),
}
_TAG = re.compile(r"<(?=\s*/?\s*attached-file)", re.IGNORECASE)
_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


class Attachments:
    def __init__(self, files: AttachableFiles) -> None:
        self._files = files

    async def parts(self, paths: Sequence[str], *, cwd: str, model: ModelInfo, root: str = "") -> tuple[Part, ...]:
        """What these files add to a message: all of them, or Invalid. `cwd` is the thread's own working directory; a
        server that is configured with a root gives that as well, and nothing outside of it is read."""
        if len(paths) > MOST:
            raise Invalid(f"{len(paths)} files are too many: at most {MOST} can be attached to one message.")
        parts: list[Part] = []
        taken = 0
        for path in paths:
            found = await self._files.read(path, cwd, root)
            taken += found.size
            if taken > MOST_BYTES:
                words = f"The attached files are larger than {MOST_BYTES // 1024 // 1024} MiB together."
                raise Invalid(words, next_step="Attach fewer of them to one message.")
            if found.media is not None and not model.takes(found.media.kind):
                one, many = _KINDS[found.media.kind]
                raise Invalid(
                    f"{found.shown} is {one}, and {model.reference} takes no {many}.",
                    next_step="Choose a model that does (`quintet models` tells which), or leave it out.",
                )
            parts += _parts(found)
        return tuple(parts)


def _parts(found: Attachment) -> list[Part]:
    """A text is marked and names its file; a mark inside it cannot end it. What is no text comes behind its name."""
    name = _TAG.sub("(", msgspec.json.encode(found.shown).decode())
    if found.media is not None:
        words = f"[attached {found.media.kind} {name}: {found.media.media_type}, {found.size} bytes]"
        media = msgspec.structs.replace(found.media, attached=_attached(found, found.media.media_type))
        return [TextPart(words, Attached(name=found.shown)), media]
    text = _TAG.sub("(", found.text)
    end = "" if text.endswith("\n") else "\n"
    return [TextPart(f"<attached-file path={name}>\n{text}{end}</attached-file>", _attached(found, "text/plain"))]


def _attached(found: Attachment, media_type: str) -> Attached:
    return Attached(f"file:///{quote(found.shown.lstrip('/'))}", media_type, found.shown)


def path_of(uri: str) -> str:
    """The path that a file:// address names on this machine, decoded once. Nothing else is ever opened."""
    try:
        parsed = urlsplit(uri)
    except ValueError:
        parsed = urlsplit("")
    if parsed.scheme != "file" or not uri.lower().startswith("file://") or parsed.netloc not in ("", "localhost"):
        raise Invalid("A file must be given as a file:// address on this machine: no other address is opened.")
    if parsed.query or parsed.fragment or not parsed.path.startswith("/") or _ESCAPE.search(parsed.path):
        raise Invalid("That is not a file:// address: it needs a path, with every special character escaped.")
    try:
        return unquote_to_bytes(parsed.path).decode()
    except UnicodeDecodeError:
        raise Invalid("That is not a file:// address: its path is not UTF-8.") from None
