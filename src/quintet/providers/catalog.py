"""The catalog: what is publicly known of models, as data with a date. Read when first asked; knows no settings of ours.

What a model can do holds wherever it is served; what it costs holds only at the address whose price was looked up.
"""

from __future__ import annotations

import os
import re
from functools import cache
from typing import Literal
from urllib.parse import urlsplit

import msgspec

FILE = "catalog.json"
_DATED = r"(-\d{4}-?\d{2}-?\d{2}|-latest)?"  # vendors name the same model with the day it was made, too


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    names: tuple[str, ...]
    context_window: int | None = None
    max_output: int | None = None
    vision: bool = False
    audio: bool = False
    video: bool = False
    reasoning: bool = False
    input_price: float | None = None  # US dollars per million tokens
    output_price: float | None = None
    cached_price: float | None = None
    cache_write_price: float | None = None
    seen: Literal["", "vendor", "reported"] = ""  # the prices: on the vendor's own page, or told by others who read it
    as_of: str = ""  # the day of that, where it is another than the vendor's
    note: str = ""


class Vendor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    hosts: tuple[str, ...]
    as_of: str  # the day on which the prices were looked up
    source: str
    models: tuple[Entry, ...]
    thoughts_in_limit: bool = False  # a limit of output counts thoughts too, and has a name of its own
    note: str = ""


class Routed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    vendor: str
    priced: bool = False  # the router asks what the vendor asks


class Router(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    as_of: str
    prefixes: dict[str, Routed]
    note: str = ""


class Catalog(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    vendors: dict[str, Vendor]
    routers: dict[str, Router] = {}


class Known(msgspec.Struct, frozen=True):
    """An entry, and since when that is known."""

    entry: Entry
    as_of: str


@cache
def catalog() -> Catalog:
    with open(os.path.join(os.path.dirname(__file__), FILE), "rb") as file:
        return msgspec.json.decode(file.read(), type=Catalog)


def known(url: str, model: str) -> Known | None:
    """What is known of a model served at this address; None when nothing is.

    Without TLS a server is on one's own machine or network, where whoever started it chose its window: nothing is
    assumed of those.
    """
    address = urlsplit(url)
    if address.scheme != "https":
        return None
    host = address.hostname or ""
    for vendor in catalog().vendors.values():
        if host in vendor.hosts:
            return _found(vendor, model, priced=True)
    router = catalog().routers.get(host)
    if router is not None:
        return _routed(router, model)
    for vendor in catalog().vendors.values():  # a gateway: the model is the same, its price is not
        if (found := _found(vendor, model, priced=False)) is not None:
            return found
    return None


def thoughts_in_limit(url: str, model: str) -> bool:
    """Whether a limit of output has to be told by the name that counts thoughts: to the vendor for any of its models,
    to a gateway for those that think. A router has one name for all models, and so have servers of one's own."""
    address = urlsplit(url)
    host = address.hostname or ""
    for vendor in catalog().vendors.values():
        if host in vendor.hosts:
            return vendor.thoughts_in_limit
    if address.scheme != "https" or host in catalog().routers:
        return False
    return any(
        vendor.thoughts_in_limit
        and (found := _found(vendor, model, priced=False)) is not None
        and found.entry.reasoning
        for vendor in catalog().vendors.values()
    )


def of_host(url: str) -> tuple[str, ...]:
    """The names of the models that the vendor at this address is known to serve."""
    host = urlsplit(url).hostname or ""
    return tuple(e.names[0] for v in catalog().vendors.values() if host in v.hosts for e in v.models)


def _routed(router: Router, model: str) -> Known | None:
    prefix, _, name = model.partition("/")
    routed = router.prefixes.get(prefix)
    if routed is None:
        return None
    base, variant, _ = name.partition(":")
    # A variant is the same model from somebody else, faster or for nothing: its price is another.
    return _found(catalog().vendors[routed.vendor], base, priced=routed.priced and not variant)


def _found(vendor: Vendor, model: str, *, priced: bool) -> Known | None:
    for entry in vendor.models:
        if any(_is(name, model) for name in entry.names):
            as_of = entry.as_of or vendor.as_of
            return Known(entry if priced else _without_prices(entry), as_of)
    return None


def _is(name: str, model: str) -> bool:
    return re.fullmatch(re.escape(name) + _DATED, _vendor_spelling(model)) is not None


def _vendor_spelling(model: str) -> str:
    """Routers write Claude's versions with a dot, the vendor with a dash."""
    return model.replace(".", "-") if model.startswith("claude-") else model


def _without_prices(entry: Entry) -> Entry:
    return msgspec.structs.replace(
        entry, input_price=None, output_price=None, cached_price=None, cache_write_price=None, seen=""
    )
