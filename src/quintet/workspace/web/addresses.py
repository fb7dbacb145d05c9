"""Which IP addresses belong to the public internet. Pure tables: nothing is looked up, nothing is connected to.

What is not plainly public is refused: the machine itself, its neighbours, its cloud's metadata service, and every form
that carries another address inside it.
"""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

Address = IPv4Address | IPv6Address
Refusing = Callable[[Address], str]  # why an address is refused; "" when it is not

METADATA = "it is a cloud's metadata service"
_METADATA = frozenset(
    {
        IPv4Address("169.254.169.254"),  # nearly every cloud
        IPv4Address("169.254.170.2"),  # AWS, tasks
        IPv4Address("169.254.170.23"),  # AWS, pods
        IPv4Address("168.63.129.16"),  # Azure; looks public
        IPv4Address("100.100.100.200"),  # Alibaba
        IPv4Address("192.0.0.192"),  # Oracle
        IPv6Address("fd00:ec2::254"),  # AWS
        IPv6Address("fd00:ec2::23"),
        IPv6Address("fd20:ce::254"),  # Google
    }
)
_V4 = {
    "0.0.0.0/8": "it means this machine",
    "10.0.0.0/8": "it is private",
    "100.64.0.0/10": "it is shared behind a carrier's NAT, or a private overlay",
    "127.0.0.0/8": "it means this machine",
    "169.254.0.0/16": "it is link-local",
    "172.16.0.0/12": "it is private",
    "192.0.0.0/24": "it is reserved for protocols",
    "192.0.2.0/24": "it is for documentation",
    "192.31.196.0/24": "it is an anycast sink",
    "192.52.193.0/24": "it is for multicast relays",
    "192.88.99.0/24": "it is a relay to other addresses",
    "192.168.0.0/16": "it is private",
    "192.175.48.0/24": "it is an anycast sink",
    "198.18.0.0/15": "it is for benchmarks",
    "198.51.100.0/24": "it is for documentation",
    "203.0.113.0/24": "it is for documentation",
    "224.0.0.0/4": "it is multicast",
    "240.0.0.0/4": "it is reserved",
}
_V6 = {
    "::/128": "it means this machine",
    "::1/128": "it means this machine",
    "::ffff:0:0/96": "it hides an IPv4 address",
    "::ffff:0:0:0/96": "it hides an IPv4 address",
    "::/96": "it hides an IPv4 address",
    "64:ff9b:1::/48": "it is a private translation to IPv4",
    "100::/64": "it is discarded",
    "2001::/32": "it is a tunnel to another address",
    "2001::/23": "it is reserved for protocols",
    "2001:db8::/32": "it is for documentation",
    "2002::/16": "it is a tunnel to another address",
    "2620:4f:8000::/48": "it is an anycast sink",
    "3fff::/20": "it is for documentation",
    "fc00::/7": "it is private",
    "fe80::/10": "it is link-local",
    "fec0::/10": "it is private",
    "ff00::/8": "it is multicast",
}
_V4_NETWORKS = tuple((IPv4Network(network), why) for network, why in _V4.items())
_V6_NETWORKS = tuple((IPv6Network(network), why) for network, why in _V6.items())
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")
_ISATAP = (0x00005EFE, 0x02005EFE)


def why_not_public(address: Address) -> str:
    """Why this address is none of the public internet's; "" when it is one."""
    if address in _METADATA:
        return METADATA
    if isinstance(address, IPv4Address):
        return _first(address, _V4_NETWORKS) or _by_library(address)
    if address.scope_id is not None:
        return "it is bound to one network interface"
    if address in _NAT64:
        # Where a network has only IPv6 this is how IPv4 is reached, so what counts is the address inside.
        return why_not_public(IPv4Address(int(address) & 0xFFFFFFFF))
    found = next((why for network, why in _V6_NETWORKS if address in network), "")
    if found:
        return found
    if address not in _GLOBAL_UNICAST:
        return "it is not assigned to the public internet"
    if (int(address) >> 32) & 0xFFFFFFFF in _ISATAP:
        return "it hides an IPv4 address"
    return _by_library(address)


def _first(address: IPv4Address, networks: tuple[tuple[IPv4Network, str], ...]) -> str:
    return next((why for network, why in networks if address in network), "")


def _by_library(address: Address) -> str:
    """A second opinion: Python's tables are newer where Python is."""
    return "" if address.is_global else "it is not assigned to the public internet"
