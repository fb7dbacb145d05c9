"""An image, sound or a video at a public address, as a model can be given it. Fetched with the same guards as a page:
nothing of this machine or its network is reached, and nothing is sent along.
"""

from __future__ import annotations

from quintet.domain.errors import Invalid
from quintet.domain.item import Media, MediaKind
from quintet.workspace.kinds import LARGEST, as_part, media_kind
from quintet.workspace.web.exchange import LARGEST as LARGEST_ANSWER
from quintet.workspace.web.fetching import Fetcher
from quintet.workspace.web.resolving import Unreachable
from quintet.workspace.web.urls import parse_url

WITHIN_S = 10.0
GIVE_IT = "Give {} itself, as a data URI."
_NOUNS = {
    MediaKind.IMAGE: ("the image", "PNG, JPEG, GIF or WebP image"),
    MediaKind.AUDIO: ("the sound", "sound that is known here"),
    MediaKind.VIDEO: ("the video", "video that is known here"),
}


async def fetch_media(address: str, kind: MediaKind, fetcher: Fetcher | None = None) -> Media:
    """Invalid, in words for whoever named the address, where there is none to be had."""
    fetcher = fetcher or Fetcher(total_s=WITHIN_S)
    url = parse_url(address)
    noun, known = _NOUNS[kind]
    capital, give_it = noun.capitalize(), GIVE_IT.format(noun)
    if url.scheme != "https":
        raise Invalid(f"{capital} at {url.text} is not fetched: the way there is not encrypted.", next_step=give_it)
    try:
        fetcher.check(url)
        fetched = await fetcher.fetch(url)
    except Unreachable as error:
        raise Invalid(f"{capital} could not be fetched: {error}", next_step=give_it) from None
    if fetched.url.scheme != "https":
        raise Invalid(f"{capital} at {url.text} is not taken: the way there is not encrypted.", next_step=give_it)
    body, status = fetched.answer.body, fetched.answer.status
    if not 200 <= status < 300:
        raise Invalid(f"{fetched.url.text} answered with status {status} and not with {noun}.", next_step=give_it)
    found = media_kind(body[:64])
    if found is None or found[0] is not kind:
        raise Invalid(f"{fetched.url.text} is no {known}.", next_step=give_it)
    largest = min(LARGEST[kind], LARGEST_ANSWER)
    if len(body) > largest:
        raise Invalid(f"{capital} at {fetched.url.text} is larger than {largest // 1024 // 1024} MiB.")
    return as_part(*found, body)
