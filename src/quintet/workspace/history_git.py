"""What git knows of a work tree: which files differ from what it holds, so that it could not give them back.

Everything is asked through one copy of the index, taken before the call. So commits, checkouts and resets that the call
does itself change nothing about the question: what differs from that index is what the call has touched.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from quintet.workspace.files import on_disk, together
from quintet.workspace.git import Index, Repository
from quintet.workspace.git_layout import Layout
from quintet.workspace.history_manifest import counted, some
from quintet.workspace.history_modes import LOOK_LIMIT
from quintet.workspace.history_others import (
    ARGUMENTS,
    Held,
    Others,
    OthersMemory,
    held_by,
    ignored_in,
    lines_of,
    others_of,
)
from quintet.workspace.history_rules import is_rules
from quintet.workspace.ignore import Ignored

_CHANGED = ("diff-files", "--raw", "-z", "--no-abbrev", "--no-renames", "--ignore-submodules=all")
_REFRESH_OVER = 300  # files that look changed: more of them mean that the index is stale, not that all were edited
PASSED_LIMIT = 20_000  # files that git is told to pass over, looked at nevertheless
_ROOMS_LIMIT = 1_000  # directories that hold nothing tracked, looked into for more of them
_GITLINK = 0o160000
INODES = 1 << 32  # git keeps that much of an inode's number
_INODE = re.compile(rb"\tino: (\d+)")


class Tracked(NamedTuple):
    """A file as the index has it."""

    path: str
    mode: int  # git's, not the file system's
    object: str


class Look(NamedTuple):
    changed: tuple[Tracked, ...]  # tracked, and not as in the index
    others: tuple[str, ...]  # neither tracked nor ignored
    directories: tuple[str, ...]  # that hold nothing tracked
    nested: tuple[str, ...]  # repositories of their own
    rules: tuple[str, ...]  # ignore files that are ignored themselves
    passed: tuple[str, ...]  # tracked, and git is told to pass over them (skip-worktree, assume-unchanged)
    tracked: tuple[str, ...]  # all of them, where they are few
    unnamed: tuple[str, ...]  # files whose names are no UTF-8

    def notes(self, layout: Layout) -> list[str]:
        found: list[str] = []
        if self.nested:
            found.append(f"{some(list(self.nested))}: a repository of its own, not kept")
        if os.path.lexists(os.path.join(layout.top, ".gitmodules")):
            found.append("submodules are repositories of their own and not kept")
        if self.unnamed:
            found.append(f"{some(list(self.unnamed))}: a name that is not UTF-8, not kept")
        if len(self.passed) > PASSED_LIMIT:
            found.append(f"{counted(len(self.passed))} that git is told to pass over were not looked at")
        if borrowed := layout.borrowed_from():
            found.append(f"the repository borrows objects from {borrowed[0]}: clean files come back only with that")
        return found


async def look(repository: Repository, memory: OthersMemory, *, settle: bool = False) -> tuple[Look, Index | None]:
    """What differs from the index. `settle`: where very much seems to, let git look at the contents first; the index is
    then another one."""
    lines, (held, others) = await together(
        lines_of(repository, *_CHANGED), _beside(repository, memory, fresh=not settle)
    )
    better: Index | None = None
    if settle and len(lines) > 2 * _REFRESH_OVER:
        # Copied or restored trees have other inodes and times than the index says.
        better = await repository.refresh()
        lines = await lines_of(repository, *_CHANGED)
    changed, odd = _changed(lines)
    whole = [*map(os.fsdecode, others.directories)]
    instead, within, rooms = await on_disk(_unlisted, repository.layout.top, [file.path for file in changed], whole)
    hidden = [*others.ignored, *await ignored_in(repository, [*map(os.fsencode, instead)])]
    names = [*(_name(path) for path in others.files), *within]
    found = Look(
        tuple(changed),
        tuple(name for name in names if name is not None),
        tuple(path for path in rooms if _name(os.fsencode(path))),
        tuple(os.fsdecode(path) for path in others.nested),
        tuple(name for path in hidden if (name := _name(path)) and is_rules(name)),
        tuple(name for path in held.passed if (name := _name(path))),
        tuple(name for path in held.paths if (name := _name(path))),
        (*odd, *(os.fsdecode(path) for path in others.files if _name(path) is None)),
    )
    return found, better


async def _beside(repository: Repository, memory: OthersMemory, *, fresh: bool) -> tuple[Held, Others]:
    held = await held_by(repository, memory, LOOK_LIMIT)
    return held, await others_of(repository, memory, held, fresh=fresh)


def _changed(lines: Sequence[bytes]) -> tuple[list[Tracked], list[str]]:
    """(files, those whose names are no UTF-8)"""
    found: dict[str, Tracked] = {}
    odd: list[str] = []
    for head, path in zip(lines[0::2], lines[1::2], strict=True):
        mode, _, old, _, status = head.decode("ascii").lstrip(":").split(" ")
        name = _name(path)
        if name is None:
            odd.append(os.fsdecode(path))
        elif int(mode, 8) != _GITLINK and (name not in found or status != "U"):
            found[name] = Tracked(name, int(mode, 8), old)
    return list(found.values()), odd


def _unlisted(top: str, changed: Sequence[str], whole: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """What git passes over: directories that stand where the index has a file, the files in them, and the directories
    in those that hold nothing tracked."""
    ignored = Ignored(top)
    instead = [path for path in changed if os.path.isdir(os.path.join(top, path)) and not _is_link(top, path)]
    files = [found.path for path in instead for found in ignored.walk(path)]
    rooms = list(whole)
    for place in rooms:  # grows on the way
        if len(rooms) > _ROOMS_LIMIT:
            break
        with contextlib.suppress(OSError), os.scandir(os.path.join(top, place)) as entries:
            rooms += [f"{place}/{entry.name}" for entry in entries if entry.is_dir(follow_symlinks=False)]
    return instead, [path for path in files if _name(os.fsencode(path))], rooms


def _is_link(top: str, path: str) -> bool:
    """Whether a path is a link, or lies behind one."""
    return os.path.realpath(os.path.join(top, path)) != os.path.join(top, path)


def _above(path: bytes) -> Iterable[bytes]:
    while b"/" in path:
        path = path.rpartition(b"/")[0]
        yield path


async def tracked_directories(repository: Repository, directories: Sequence[str]) -> set[str]:
    """Of these, the ones that hold something tracked (and with them all directories above)."""
    asked = directories if len(directories) <= ARGUMENTS else []
    paths = await lines_of(repository, "ls-files", "-z", "--", *asked)
    return {os.fsdecode(above) for path in paths for above in _above(path)}


async def index_inodes(repository: Repository, without: Collection[str]) -> set[int]:
    """The inodes that tracked files had when git last looked at them, modulo INODES."""
    names, rests = split_debug(await repository.ask("ls-files", "-z", "--debug"))
    found = ((name, _INODE.search(rest)) for name, rest in zip(names, rests, strict=True))
    return {int(inode[1]) for name, inode in found if inode is not None and name not in without} - {0}


def split_debug(raw: bytes) -> tuple[list[str], list[bytes]]:
    """`name NUL five lines` again and again: what `ls-files --debug` says."""
    names: list[str] = []
    rests: list[bytes] = []
    place = 0
    while (end := raw.find(b"\0", place)) >= 0:
        names.append(os.fsdecode(raw[place:end]))
        place = end + 1
        for _ in range(5):
            place = raw.find(b"\n", place) + 1 or len(raw)
        rests.append(b"\n" + raw[end + 1 : place])
    return names, rests


def _name(path: bytes) -> str | None:
    try:
        return path.decode()
    except UnicodeDecodeError:
        return None
