"""Places: where the file of a session lies, and what a session is called outside this process. Pure."""

from __future__ import annotations

import os
import re
import uuid

from msgspec import Struct

from quintet.domain.ids import from_number, number_of
from quintet.domain.thread import Handle, Thread
from quintet.protocols.kward.times import in_file_name

KIND = "kward"
_SIGNS = re.compile(r"[/\\:]")
_NAME = re.compile(r"(.+)_([0-9A-Za-z-]{1,64})\.jsonl")


class Place(Struct, frozen=True):
    path: str  # of the file, absolute
    id: str  # the session's own, which the file's first line holds

    def handle(self, thread: str = "") -> Handle:
        """A file belongs to one thread: so its path is what the name is unique in."""
        return Handle(KIND, self.path, self.id, thread)


def directory_of(config_dir: str, cwd: str) -> str:
    """The one for a workspace's sessions."""
    return os.path.join(config_dir, "sessions", f"--{_SIGNS.sub('-', cwd.lstrip('/'))}--")


def new_place(config_dir: str, cwd: str, created_ms: int, id: str) -> Place:
    return Place(os.path.join(directory_of(config_dir, cwd), f"{in_file_name(created_ms)}_{id}.jsonl"), id)


def place_of(config_dir: str, thread: Thread) -> Place:
    """Where a thread's file would be that has none: always the same place."""
    id = str(uuid.UUID(int=number_of(thread.id) & ((1 << 128) - 1)))
    return new_place(config_dir, thread.settings.cwd, thread.created_ms, id)


def named_in(path: str) -> str:
    """The session's id, as its file's name says it; empty where the name is another one's."""
    found = _NAME.fullmatch(os.path.basename(path))
    return found[2] if found else ""


def thread_named(id: str) -> str:
    """The thread that `place_of` gave this id; empty for an id of another kind. Whether it exists is not known here."""
    try:
        return from_number("thr", uuid.UUID(id).int)
    except ValueError:
        return ""
