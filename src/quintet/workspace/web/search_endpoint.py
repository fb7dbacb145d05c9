"""From what a person configured to the one address that is searched through. Pure."""

from __future__ import annotations

import msgspec

from quintet.domain.errors import Invalid
from quintet.workspace.web.addresses import why_not_public
from quintet.workspace.web.search_settings import SearchSettings
from quintet.workspace.web.urls import WebUrl, parse_url

PUBLIC = {
    "brave": "https://api.search.brave.com/res/v1/web/search",
    "tavily": "https://api.tavily.com/search",
    "exa": "https://api.exa.ai/search",
}


def endpoint(settings: SearchSettings) -> WebUrl:
    """Where questions go. Invalid, in one line with the key's name, when the settings do not fit together."""
    if settings.provider == "searxng" and not settings.url:
        raise Invalid("web_search.url is missing.", next_step='Name your SearXNG: `url = "https://…"`.')
    if settings.api_key_env and settings.credential:
        raise Invalid("web_search has both `api_key_env` and `credential`.", next_step="Keep one of them.")
    if settings.provider != "searxng" and not settings.keyed:
        raise Invalid(
            f"web_search.provider {settings.provider} needs a key.",
            next_step="Name the variable that holds it in `api_key_env`, or a stored `credential`.",
        )
    try:
        url = parse_url(settings.url or PUBLIC[settings.provider])
    except Invalid as error:
        raise Invalid(f"web_search.url: {error.message}", next_step=error.step) from None
    if url.scheme == "http" and settings.keyed and not _nearby(url):
        raise Invalid("web_search.url would send the key unencrypted.", next_step="Use https.")
    path, mark, query = url.target.partition("?")
    if settings.provider == "searxng" and not path.endswith("/search"):
        url = msgspec.structs.replace(url, target=f"{path.rstrip('/')}/search{mark}{query}")
    return url


def _nearby(url: WebUrl) -> bool:
    """On this machine or beside it, where the person who named it decides about encryption."""
    if url.host.address is not None:
        return bool(why_not_public(url.host.address))
    return bool(url.host.why_local())
