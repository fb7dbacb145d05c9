"""An image at a public address, as a model can be shown it. Fetched with the same guards as a page: nothing of this
machine or its network is reached, and nothing is sent along.
"""

from __future__ import annotations

import base64

from quintet.domain.errors import Invalid
from quintet.domain.item import ImagePart
from quintet.workspace.kinds import image_type
from quintet.workspace.web.fetching import Fetcher
from quintet.workspace.web.resolving import Unreachable
from quintet.workspace.web.urls import parse_url

LARGEST = 5 * 1024 * 1024
WITHIN_S = 10.0
GIVE_IT = "Give the image itself, as a data URI."


async def fetch_image(address: str, fetcher: Fetcher | None = None) -> ImagePart:
    """Invalid, in words for whoever named the address, where there is none to be had."""
    fetcher = fetcher or Fetcher(total_s=WITHIN_S)
    url = parse_url(address)
    if url.scheme != "https":
        raise Invalid(f"The image at {url.text} is not fetched: the way there is not encrypted.", next_step=GIVE_IT)
    try:
        fetcher.check(url)
        fetched = await fetcher.fetch(url)
    except Unreachable as error:
        raise Invalid(f"The image could not be fetched: {error}", next_step=GIVE_IT) from None
    if fetched.url.scheme != "https":
        raise Invalid(f"The image at {url.text} is not taken: the way there is not encrypted.", next_step=GIVE_IT)
    body, status = fetched.answer.body, fetched.answer.status
    if not 200 <= status < 300:
        raise Invalid(f"{fetched.url.text} answered with status {status} and no image.", next_step=GIVE_IT)
    media_type = image_type(body[:16])
    if not media_type:
        raise Invalid(f"{fetched.url.text} is no PNG, JPEG, GIF or WebP image.", next_step=GIVE_IT)
    if len(body) > LARGEST:
        raise Invalid(f"The image at {fetched.url.text} is larger than {LARGEST // 1024 // 1024} MiB.")
    return ImagePart(media_type, base64.b64encode(body).decode())
