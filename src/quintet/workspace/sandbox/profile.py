"""Profile: what a confined command may touch. Made from the thread's settings, never from what the model says."""

from __future__ import annotations

from typing import Literal

import msgspec

Network = Literal["off", "on"] | tuple[str, ...]  # or only these hosts, through the proxy


class Profile(msgspec.Struct, frozen=True):
    workspace: str  # absolute, resolved: the tree a command works in
    writable: bool = True
    network: Network = "off"
    added: tuple[str, ...] = ()  # directories beside the workspace, to be treated as it is
    scratch: str = ""  # becomes /tmp inside, so that a thread's commands find each other's temporary files

    @property
    def trees(self) -> tuple[str, ...]:
        """What is worked in."""
        return (self.workspace, *self.added)


class State(msgspec.Struct, frozen=True):
    """What stands between a command and the machine, and if nothing does, why and how to mend it."""

    works: bool
    kind: str = "none"  # bubblewrap | none
    why: str = ""
    fix: str = ""
    landlock: int = 0  # ABI version inside, 0 = not there


class Finding(msgspec.Struct, frozen=True):
    """One line of a check-up."""

    name: str
    ok: bool
    detail: str
    fix: str = ""
