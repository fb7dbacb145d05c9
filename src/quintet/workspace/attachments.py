"""Files given along with what is said, read through the path guard: opened without following, whole or not at all.

What a file is its first bytes say, neither its name nor whoever gave it. Knows nothing of models or messages.
"""

from __future__ import annotations

import os

from quintet.domain.attachment import Attachment
from quintet.domain.errors import Invalid
from quintet.domain.item import MediaKind
from quintet.workspace.files import on_disk, open_regular
from quintet.workspace.kinds import LARGEST, as_part, binary_kind, media_kind
from quintet.workspace.paths import PathGuard, Place

TEXT_LIMIT = 256 * 1024  # some 70,000 tokens
_SNIFF = 8_192
_NOUNS = {MediaKind.IMAGE: "an image", MediaKind.AUDIO: "a recording", MediaKind.VIDEO: "a video"}


class WorkspaceAttachments:
    """Plays domain.ports.AttachableFiles."""

    def __init__(self, guard: PathGuard) -> None:
        self._guard = guard

    async def read(self, path: str, cwd: str, root: str = "") -> Attachment:
        return await on_disk(self._read, path, cwd, root)

    def _read(self, path: str, cwd: str, root: str) -> Attachment:
        place = self._guard.reading(path, cwd, root)
        try:
            handle = open_regular(place)
        except Invalid as error:  # no regular file
            raise Invalid(error.message, next_step="Name a file that is one.") from error
        except FileNotFoundError:
            raise Invalid(f"There is no file {place.shown}.", next_step="Name one that is there.") from None
        except OSError as error:
            words = f"{place.shown} cannot be opened: {error.strerror}."
            raise Invalid(words, next_step="Name a file that can be read; links are not followed here.") from error
        with os.fdopen(handle, "rb") as file:
            start = file.read(_SNIFF)
            media = media_kind(start)
            most = LARGEST[media[0]] if media else TEXT_LIMIT
            data = start + file.read(most + 1 - len(start))
            size = os.fstat(handle).st_size
        if b"\0" in start and not media:
            raise _no_text(place, start)
        if len(data) > most:
            raise _too_large(place, size, most, media)
        if media:
            return Attachment(place.shown, len(data), media=as_part(*media, data))
        return Attachment(place.shown, len(data), _text(place, data))


def _text(place: Place, data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise _no_text(place, data) from error
    if "\0" in text:
        raise _no_text(place, data)
    return text


def _no_text(place: Place, start: bytes) -> Invalid:
    kind = binary_kind(start)
    return Invalid(
        f"{place.shown} is neither UTF-8 text nor a PNG, JPEG, GIF or WebP image, sound or a video"
        f"{f' but {kind}' if kind else ''}.",
        next_step="Attach it as text or as an image, or name its path in what you say.",
    )


def _too_large(place: Place, size: int, most: int, media: tuple[MediaKind, str] | None) -> Invalid:
    allowed = f"{most // 1024 // 1024} MiB" if most >= 1024 * 1024 else f"{most // 1024} KiB"
    what = f"{_NOUNS[media[0]]} ({media[1]})" if media else "a text"
    step = "Make it smaller." if media else "Name its path in what you say: the model reads the parts it needs."
    return Invalid(f"{place.shown} is {what} of {size} bytes; at most {allowed} can be attached.", next_step=step)
