"""What a command may touch, by the turn's mode, the starter's wish and the person's settings; and it in words. Pure."""

from __future__ import annotations

import msgspec

from quintet.domain.tool import Confine
from quintet.domain.turn import Mode
from quintet.workspace.sandbox.limits import Caps, usual_caps
from quintet.workspace.sandbox.profile import Network, State

WITH_NETWORK = "with network"
UNCONFINED = "NOT SANDBOXED: it can do whatever you can."


class ShellSettings(msgspec.Struct, frozen=True):
    """What the person set for all commands."""

    network: Network | None = None  # None: not said; otherwise the most a command gets
    open_server: bool = False  # a server of ours answers without credentials, so no command may reach it
    caps: Caps = msgspec.field(default_factory=usual_caps)


def writable(mode: Mode, confine: Confine) -> bool:
    return mode is not Mode.READ_ONLY and confine is not Confine.READ_ONLY


def network(mode: Mode, settings: ShellSettings, *, asked: bool) -> Network:
    """Never in mode read-only, in mode ask only for a call that asked, in mode allow always; within the settings."""
    if mode is Mode.READ_ONLY or (mode is Mode.ASK and not asked):
        return "off"
    if settings.network is not None:
        return settings.network
    return "off" if settings.open_server else "on"


def confined_note(mode: Mode, confine: Confine, given: Network, *, asked: bool) -> str:
    writes = "writes the working directory" if writable(mode, confine) else "writes no files"
    if given == "on":
        reaches = WITH_NETWORK
    elif given == "off":
        reaches = "no network" if not asked else "no network, though it asks for it: the mode or config.toml has none"
    else:
        reaches = f"{WITH_NETWORK}, only {', '.join(given)}"
    return f"sandboxed: {writes}, {reaches}"


def missing_note(place: str) -> str:
    return f"[sandbox] writable: {place} is not there"


def why_unconfined(state: State, confine: Confine) -> str:
    """And what would change that."""
    why, fix = state.why, state.fix
    if confine is Confine.OFF:
        why, fix = "The sandbox was switched off for this turn.", "Start it without `--sandbox off`."
    return " ".join(word for word in (why, fix) if word)
