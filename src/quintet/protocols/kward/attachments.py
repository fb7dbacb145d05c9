"""Attachments: the images that come with an input, checked before anything else happens. Pure."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from quintet.domain.item import ImagePart, named_image
from quintet.protocols.kward.errors import BadArgument

MEDIA_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
LARGEST = 10 * 1024 * 1024  # bytes of one image


def images(given: Any) -> tuple[ImagePart, ...]:
    if given is None:
        return ()
    if not isinstance(given, list):
        raise BadArgument("attachments must be an array")
    return tuple(_image(one) for one in given)


def _image(given: Any) -> ImagePart:
    if not isinstance(given, dict):
        raise BadArgument("attachment must be an object")
    if given.get("type") != "image":
        raise BadArgument(f"Unsupported attachment type: {given.get('type')}")
    media_type = str(given.get("mimeType") or "").lower()
    if media_type not in MEDIA_TYPES:
        raise BadArgument(f"Unsupported image MIME type: {given.get('mimeType')}")
    size = given.get("sizeBytes")
    if isinstance(size, int | float) and not isinstance(size, bool) and size > LARGEST:
        raise BadArgument("Image attachment is too large")
    data = _data(given.get("data"))
    name = given.get("name")
    return named_image(media_type, data, name)


def _data(given: Any) -> str:
    text = given if isinstance(given, str) else ""
    if text.lstrip().lower().startswith("data:"):
        raise BadArgument("Image attachment data must be raw base64")
    data = "".join(text.split())
    # Measured before it is decoded: four characters hold three bytes.
    if len(data) // 4 * 3 - data[-2:].count("=") > LARGEST:
        raise BadArgument("Image attachment is too large")
    try:
        decoded = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        decoded = b""
    if not decoded:
        raise BadArgument("Image attachment data must be valid base64")
    return data
