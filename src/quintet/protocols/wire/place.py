"""Where the files of a session lie, and which thread is meant by that. Pure."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping

import msgspec

from quintet.domain.thread import Handle, Thread

KIND = "wire"
NAME = re.compile(r"[A-Za-z0-9][\w.@+-]{0,199}", re.ASCII)  # of a directory, and of nothing above it
_LEADS_TO = "\n-> "  # in a handle's scope


class Place(msgspec.Struct, frozen=True):
    share_dir: str
    work_dir: str  # as the client writes it: it looks for the files under that name, links and all
    session: str
    real_dir: str = ""  # where that leads, if elsewhere: a link that is turned round means other work

    @property
    def directory(self) -> str:
        digest = hashlib.md5(self.work_dir.encode(), usedforsecurity=False).hexdigest()
        return os.path.join(self.share_dir, "sessions", digest, self.session)

    def path(self, name: str) -> str:
        return os.path.join(self.directory, name)

    def handle(self) -> Handle:
        behind = f"{_LEADS_TO}{self.real_dir}" if self.real_dir else ""
        return Handle(KIND, f"{self.share_dir}\n{self.work_dir}{behind}", self.session)


def place_of(handle: Handle) -> Place | None:
    """None for a name that cannot be a directory's: its thread has no files."""
    share_dir, _, rest = handle.scope.partition("\n")
    work_dir, _, real_dir = rest.partition(_LEADS_TO)
    return Place(share_dir, work_dir, handle.external_id, real_dir) if NAME.fullmatch(handle.external_id) else None


def share_directory(environment: Mapping[str, str]) -> str:
    """Where Kimi keeps everything."""
    return environment.get("KIMI_SHARE_DIR") or os.path.expanduser("~/.kimi")


def name_of(thread: Thread, share_dir: str) -> Handle:
    """What a thread is called there that no client has named: always the same, in the form its clients look for."""
    from quintet.protocols.wire.asked import public_id

    return Place(share_dir, thread.settings.cwd, public_id(thread.id)).handle()
