"""A URL as one exact thing: parsed once, strictly, and written back in one spelling. Whatever two programs could read
differently is refused rather than guessed. Pure.
"""

from __future__ import annotations

import re
from urllib.parse import quote, urljoin

import msgspec

from quintet.domain.errors import Invalid
from quintet.workspace.web.hosts import Host, parse_host

LENGTH = 8_192
PORTS = {"https": 443, "http": 80}
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.ASCII | re.DOTALL)
_PORT = re.compile(r"[0-9]{1,5}", re.ASCII)
_KEPT = "/?%:@!$&'()*+,;=-._~[]"


class WebUrl(msgspec.Struct, frozen=True):
    scheme: str  # https | http
    host: Host
    port: int
    target: str  # path and query, as sent

    @property
    def authority(self) -> str:
        return self.host.text if self.port == PORTS[self.scheme] else f"{self.host.text}:{self.port}"

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.authority}"

    @property
    def text(self) -> str:
        return self.origin + self.target


def parse_url(text: str) -> WebUrl:
    """The URL, without its fragment. Invalid says what is wrong with it; nothing is stripped or repaired."""
    _check_letters(text)
    found = _SCHEME.fullmatch(text)
    if found is None:
        raise Invalid("That is not a whole URL.", next_step="Begin it with https://.")
    scheme, rest = found[1].lower(), found[2]
    if scheme not in PORTS:
        raise Invalid(f"{scheme[:20]}: URLs are not fetched, only https (and http).")
    if not rest.startswith("//") or rest.startswith("///"):
        raise Invalid("The URL needs two slashes and a host.")
    authority = re.split(r"[/?#]", rest[2:], maxsplit=1)[0]
    host, port = _authority(authority, PORTS[scheme])
    return WebUrl(scheme, host, port, _target(rest[2 + len(authority) :].partition("#")[0]))


def join_url(base: WebUrl, location: str) -> WebUrl:
    """Where a redirect or a link of that page leads."""
    _check_letters(location)  # before joining, which would drop some of them without a word
    try:
        joined = urljoin(base.text, location)
    except ValueError:
        raise Invalid("That is not a URL.") from None
    return parse_url(joined)


def _check_letters(text: str) -> None:
    if not text or len(text) > LENGTH:
        raise Invalid(f"A URL needs between 1 and {LENGTH} characters.")
    if any(letter.isspace() or not letter.isprintable() for letter in text):
        raise Invalid("The URL holds a blank or a control character.", next_step="Write blanks as %20.")
    if "\\" in text:
        raise Invalid("The URL holds a backslash.")


def _authority(text: str, usual: int) -> tuple[Host, int]:
    if "@" in text:
        raise Invalid("A URL cannot carry a user name or password.")
    host, port = text, ""
    end = text.rfind("]")
    colon = text.rfind(":")
    if colon > end:
        host, port = text[:colon], text[colon + 1 :]
        if not _PORT.fullmatch(port) or not 0 < int(port) < 65_536:
            raise Invalid("The URL's port is not a number from 1 to 65535.")
    if ":" in host and not host.startswith("["):
        raise Invalid("The URL's host holds a colon; an IPv6 address stands in brackets.")
    return parse_host(host), int(port) if port else usual


def _target(text: str) -> str:
    path, mark, query = text.partition("?")
    return quote(_without_dots(path), safe=_KEPT) + mark + quote(query, safe=_KEPT)


def _without_dots(path: str) -> str:
    """`.` and `..` taken out as browsers do, so that what is shown is what is asked for."""
    kept: list[str] = []
    segments = path.split("/")[1:] or [""]
    for place, segment in enumerate(segments):
        plain = segment.lower().replace("%2e", ".")
        last = place == len(segments) - 1
        if plain == "..":
            del kept[-1:]
        elif plain != ".":
            kept.append(segment)
            continue
        if last:
            kept.append("")
    return "/" + "/".join(kept)
