"""A host as it was parsed: labels of a name, or an IP object. Two hosts are equal when these are, never by how they are
spelled. Pure.
"""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address

import msgspec

from quintet.domain.errors import Invalid
from quintet.workspace.web.addresses import Address

NAME_LENGTH = 253
LABEL_LENGTH = 63
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?", re.ASCII)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
# Two standards of international names lead these to two different sites.
_AMBIGUOUS = frozenset("\u00df\u03c2\u1e9e\u200c\u200d")
_LOCAL_ENDINGS = frozenset(
    {"internal", "local", "localhost", "localdomain", "lan", "intranet", "corp", "home", "private", "svc", "consul"}
)
_LOCAL_NAMES = frozenset(
    {("home", "arpa"), ("metadata", "tencentyun", "com"), ("metadata", "goog"), ("metadata", "aliyuncs", "com")}
)


class Host(msgspec.Struct, frozen=True):
    """Either labels or an address."""

    labels: tuple[str, ...] = ()
    address: Address | None = None

    @property
    def text(self) -> str:
        """As it stands in a URL."""
        if isinstance(self.address, IPv6Address):
            return f"[{self.address.compressed}]"
        return str(self.address) if self.address is not None else ".".join(self.labels)

    @property
    def bare(self) -> str:
        """As resolvers and certificates have it."""
        return self.text.strip("[]")

    def why_local(self) -> str:
        """Why this name can only mean a machine nearby; "" when it may be a public one. Resolving decides the rest."""
        if self.address is not None:
            return ""
        if len(self.labels) == 1:
            return "a name without a dot means a machine nearby"
        if self.labels[-1] in _LOCAL_ENDINGS:
            return f"names in .{self.labels[-1]} mean machines nearby"
        if any(self.labels[-len(name) :] == name for name in _LOCAL_NAMES):
            return "it names a metadata service or a machine nearby"
        return ""


def parse_host(text: str) -> Host:
    """A host as written in a URL, IPv6 in brackets. Invalid says what is wrong with it."""
    if not text:
        raise Invalid("The URL names no host.")
    if text.startswith("["):
        return Host(address=_ipv6(text))
    if "%" in text:
        raise Invalid("A host cannot be percent-encoded.")
    if not text.isascii():
        text = _in_ascii(text)
    text = text.lower()
    if len(text) > NAME_LENGTH:
        raise Invalid(f"The host is longer than {NAME_LENGTH} characters.")
    labels = tuple(text.split("."))
    if "" in labels:
        raise Invalid("The host has an empty label or a trailing dot.")
    if _NUMBER.fullmatch(labels[-1]):
        return Host(address=_ipv4(text))
    for label in labels:
        _check(label)
    return Host(labels)


def _check(label: str) -> None:
    if len(label) > LABEL_LENGTH or not _LABEL.fullmatch(label):
        raise Invalid("The host holds a label that no name can have.")
    if label.startswith("xn--"):
        try:
            label[4:].encode("ascii").decode("punycode")
        except UnicodeError:
            raise Invalid("The host holds a label that is not valid punycode.") from None


def _ipv4(text: str) -> IPv4Address:
    """Only four plain decimal numbers: other spellings are read differently by different programs."""
    try:
        return IPv4Address(text)
    except AddressValueError:
        raise Invalid("The host looks like an IPv4 address but is not written as four plain decimal numbers.") from None


def _ipv6(text: str) -> IPv6Address:
    inner = text[1:-1]
    if not text.endswith("]") or "%" in inner:
        raise Invalid("An IPv6 address stands in brackets, without a scope.")
    try:
        return IPv6Address(inner)
    except AddressValueError:
        raise Invalid("The host is not a valid IPv6 address.") from None


def _in_ascii(text: str) -> str:
    if len(text) > NAME_LENGTH:
        raise Invalid(f"The host is longer than {NAME_LENGTH} characters.")
    if any(letter in _AMBIGUOUS for letter in text):
        raise Invalid("The host holds a letter that programs read differently.", next_step="Write it in punycode.")
    try:
        return text.encode("idna").decode("ascii")
    except UnicodeError:
        raise Invalid("The host is not a valid international name.") from None
