"""config/*: the user's settings, read with secrets masked unless asked otherwise, and merged key by key."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from quintet.domain.errors import Invalid
from quintet.protocols.kward import models as wire
from quintet.protocols.kward.client import Client
from quintet.protocols.kward.errors import BadArgument, Failed
from quintet.rpc.call import Call
from quintet.rpc.rows import Family

CONFIG = Family("config", form="either")
# Values that would make a program start, or send keys somewhere: these the person writes into the file.
_BY_HAND = re.compile(r"mcp_?servers|command|executable|program|base_?url|endpoint|hooks", re.IGNORECASE)


class ReadParams(wire.Wire, frozen=True):
    redacted: bool | None = None


class UpdateParams(wire.Wire, frozen=True):
    values: Any = None


class Settings(Struct, frozen=True):
    path: str
    config: dict[str, Any]


@CONFIG.method(
    "config/read",
    params=ReadParams,
    result=Settings,
    summary="The settings; secrets masked unless `redacted` is false.",
)
async def read(call: Call[Client], params: ReadParams) -> Settings:
    settings = call.state.house.keeping.settings
    try:
        found = await settings.read()
    except Invalid as error:
        raise Failed(error.message) from None
    if params.redacted is False:
        call.state.unmasked.add(call.id)
    return Settings(settings.path, found)


@CONFIG.method(
    "config/update",
    params=UpdateParams,
    result=Settings,
    summary="Set these keys and leave the others; what is sent is stored, the answer is masked.",
)
async def update(call: Call[Client], params: UpdateParams) -> Settings:
    keeping = call.state.house.keeping
    values = params.values
    if not isinstance(values, dict):
        raise Failed("Config values must be an object")
    if named := _by_hand(values):
        raise BadArgument(
            f"`{named}` says what is started or where keys are sent: write it into {keeping.settings.path} yourself."
        )
    try:
        now = await keeping.settings.change(lambda before: before | values)
    except Invalid as error:
        raise Failed(error.message) from None
    await keeping.models.reload()
    return Settings(keeping.settings.path, now)


def _by_hand(value: Any) -> str:
    """The first such key, at any depth; nothing when there is none."""
    if isinstance(value, list):
        return next(filter(None, map(_by_hand, value)), "")
    for key, inner in value.items() if isinstance(value, dict) else ():
        if _BY_HAND.search(str(key)):
            return str(key)
        if named := _by_hand(inner):
            return f"{key}.{named}"
    return ""
