"""Who asks: how they proved it, what they may do, and through which protocol they came."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Role(StrEnum):
    OWNER = "owner"  # the user's own process on this machine
    ADMIN = "admin"
    REMOTE = "remote"
    TOOL = "tool"  # something the model set in motion; may never decide anything


class Principal(msgspec.Struct, frozen=True):
    name: str
    role: Role
    protocol: str
    proof: str = "local"

    @property
    def may_decide(self) -> bool:
        """Whether this principal may answer interactions. The agent's own tools never may."""
        return self.role is not Role.TOOL


def local(protocol: str, name: str = "local") -> Principal:
    """The person at this machine, speaking through that protocol."""
    return Principal(name, Role.OWNER, protocol)


ENGINE = Principal("engine", Role.OWNER, "engine", "internal")
