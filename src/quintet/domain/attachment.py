"""Attachments: a file that somebody gave along with what they said, as it was read."""

from __future__ import annotations

import msgspec

from quintet.domain.item import Media


class Attachment(msgspec.Struct, frozen=True):
    shown: str  # its path, as people and models read it
    size: int  # in bytes
    text: str = ""
    media: Media | None = None  # a picture, sound or a video; else it is a text
