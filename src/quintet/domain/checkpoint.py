"""Checkpoints: what stood in the workspace before a call changed it, so that it can be shown and brought back.

Paths are relative to the checkpoint's directory. Contents lie in the blob store or in git's objects, never in events.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


class FileKind(StrEnum):
    ABSENT = "absent"
    FILE = "file"
    LINK = "link"
    OTHER = "other"  # a device, a socket, a directory where a file was: told, never restored


class FileState(msgspec.Struct, frozen=True, omit_defaults=True):
    """What stands at a path."""

    kind: FileKind = FileKind.ABSENT
    mode: int = 0  # permission bits
    size: int = 0
    digest: str = ""  # SHA-256 of the bytes, or of a link's target
    kept: bool = False  # the bytes are in the blob store under the digest
    git: str = ""  # else: the object that holds them in the repository
    bare: int = 0  # of what is absent: how many directories above it were not there either
    above: tuple[int, ...] = ()  # else: permissions of the directories above, nearest first, where not all are usual

    def same_as(self, other: FileState) -> bool:
        """Whether both stand for the same thing at the path, wherever its bytes are kept."""
        return (self.kind, self.mode, self.digest) == (other.kind, other.mode, other.digest)


class FileChange(msgspec.Struct, frozen=True, omit_defaults=True):
    path: str
    before: FileState
    after: FileState
    shared: bool = False  # another call ran in the same tree meanwhile: it may be the other's change


class Secured(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was put aside before a call."""

    directory: str
    manifest: str = ""  # digest of the blob that lists it
    files: int = 0
    bytes: int = 0
    partial: tuple[str, ...] = ()  # why it is not everything


class Compared(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a call has changed."""

    changes: tuple[FileChange, ...] = ()
    partial: tuple[str, ...] = ()
    late: tuple[str, ...] = ()  # of a call whose end nobody saw: paths changed after it was last known to run
