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
    CONTENT = "content"  # pattern = (kind, name, digest): this content and no other
    EFFECT = "effect"  # pattern = one effect: every call that has it, whatever its tool


class GrantOffer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an approval could remember, shown before it is saved."""

    tool: str
    subject: Subject
    pattern: tuple[str, ...]
    scope: Scope
    exact: bool = False  # of a command: these words and no further ones
    network: bool = False  # also with network, which was asked for and shown
    scripts: str = ""  # digest of the files the command runs: changed ones are others

    def words(self) -> str:
        """The offer as a person reads it."""
        match self.subject:
            case Subject.COMMAND:
                import shlex  # rarely needed, and this module is among the first to be loaded

                what = shlex.join(self.pattern) + ("" if self.exact else " …")
                what += f" as its script is now ({self.scripts[:12]})" if self.scripts else ""
            case Subject.PATH:
                what = "".join(self.pattern)
            case Subject.CONTENT:
                kind, name, sha256 = self.pattern
                what = f"{kind} {name} as it is now ({sha256[:12]})"
            case Subject.TOOL:
                what = "every call"
            case Subject.EFFECT:
                what = f"every call that would {''.join(self.pattern)}"
        return f"{self.tool or 'any tool'}: {what}{' with network' if self.network else ''} ({self.scope})"


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
    exact: bool = False
    network: bool = False
    scripts: str = ""
    denies: bool = False  # a no that is remembered: wins over every yes

    def live(self, now_ms: int) -> bool:
        return not self.revoked_ms and self.uses_left != 0 and (not self.expires_ms or now_ms < self.expires_ms)
