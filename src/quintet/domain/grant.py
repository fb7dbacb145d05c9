"""Grant: a remembered decision, bound to what was shown, with scope, lifetime and uses."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from quintet.domain.principal import Principal


class Scope(StrEnum):
    CALL = "call"
    THREAD = "thread"
    PROJECT = "project"
    ALWAYS = "always"


class Subject(StrEnum):
    """What a grant or rule is about."""

    COMMAND = "command"  # pattern = words of an argv prefix
    PATH = "path"  # pattern = one glob
    TOOL = "tool"  # the tool as such


class GrantOffer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an approval could remember, shown before it is saved."""

    tool: str
    subject: Subject
    pattern: tuple[str, ...]
    scope: Scope

    def words(self) -> str:
        """The offer as a person reads it."""
        what = {Subject.COMMAND: " ".join((*self.pattern, "…")), Subject.PATH: "".join(self.pattern)}
        return f"{self.tool}: {what.get(self.subject, 'every call')} ({self.scope})"


class Grant(msgspec.Struct, frozen=True, omit_defaults=True):
    id: str
    tool: str
    subject: Subject
    pattern: tuple[str, ...]
    scope: Scope
    by: Principal
    made_ms: int
    thread: str = ""  # the root thread, for scope thread
    project: str = ""
    protocol: str = ""  # serves only turns started through this protocol, when set
    expires_ms: int = 0
    uses_left: int = -1  # -1 = unlimited
    revoked_ms: int = 0

    def live(self, now_ms: int) -> bool:
        return not self.revoked_ms and self.uses_left != 0 and (not self.expires_ms or now_ms < self.expires_ms)
