"""What git knows of a work tree: which files differ from what it holds, so that it could not give them back.

Everything is asked through one copy of the index, taken before the call. So commits, checkouts and resets that the call
does itself change nothing about the question: what differs from that index is what the call has touched.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from quintet.workspace.files import on_disk
from quintet.workspace.git import GitFailed, Index, Repository
from quintet.workspace.git_layout import Layout
from quintet.workspace.history_manifest import some
from quintet.workspace.ignore import Ignored

A = TypeVar("A")
B = TypeVar("B")

_LISTING = ("ls-files", "--others", "--exclude-standard", "-z")
_CHANGED = ("diff-files", "--raw", "-z", "--no-abbrev", "--no-renames", "--ignore-submodules=all")
ARGUMENTS = 400  # paths in one command line
_REFRESH_OVER = 300  # files that look changed: more of them mean that the index is stale, not that all were edited
_ROOMS_LIMIT = 1_000  # directories that hold nothing tracked, looked into for more of them
_GITLINK = 0o160000


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
    unnamed: tuple[str, ...]  # files whose names are no UTF-8

    def notes(self, layout: Layout) -> list[str]:
        found: list[str] = []
        if self.nested:
            found.append(f"{some(list(self.nested))}: a repository of its own, not kept")
        if os.path.lexists(os.path.join(layout.top, ".gitmodules")):
            found.append("submodules are repositories of their own and not kept")
        if self.unnamed:
            found.append(f"{some(list(self.unnamed))}: a name that is not UTF-8, not kept")
        if borrowed := layout.borrowed_from():
            found.append(f"the repository borrows objects from {borrowed[0]}: clean files come back only with that")
        return found


async def look(repository: Repository, *, settle: bool = False) -> tuple[Look, Index | None]:
    """What differs from the index. `settle`: where very much seems to, let git look at the contents first; the index is
    then another one."""
    lines, (files, directories, nested) = await together(_lines(repository, *_CHANGED), _others(repository))
    better: Index | None = None
    if settle and len(lines) > 2 * _REFRESH_OVER:
        # Copied or restored trees have other inodes and times than the index says.
        better = await repository.refresh()
        lines = await _lines(repository, *_CHANGED)
    changed, odd = _changed(lines)
    top = repository.layout.top
    within, rooms = await on_disk(_unlisted, top, [file.path for file in changed], [*map(os.fsdecode, directories)])
    names = [*(_name(path) for path in files), *within]
    found = Look(
        tuple(changed),
        tuple(name for name in names if name is not None),
        tuple(path for path in rooms if _name(os.fsencode(path))),
        tuple(os.fsdecode(path) for path in nested),
        (*odd, *(os.fsdecode(path) for path in files if _name(path) is None)),
    )
    return found, better


async def _lines(repository: Repository, *command: str) -> list[bytes]:
    """What a command lists, each line ended by NUL. A list that was cut short must never pass for the whole."""
    raw = await repository.ask(*command)
    if raw and not raw.endswith(b"\0"):
        raise GitFailed(f"git {command[0]} broke off")
    return raw.split(b"\0")[:-1]


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


async def together(first: Coroutine[Any, Any, A], second: Coroutine[Any, Any, B]) -> tuple[A, B]:
    """Both at once. When one fails the other is ended before the failure goes on."""
    try:
        async with asyncio.TaskGroup() as both:
            one, other = both.create_task(first), both.create_task(second)
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None
    return one.result(), other.result()


def _unlisted(top: str, changed: Sequence[str], whole: Sequence[str]) -> tuple[list[str], list[str]]:
    """What git passes over: the files in a directory that stands where the index has a file, and the directories in
    those that hold nothing tracked."""
    ignored = Ignored(top)
    instead = [path for path in changed if os.path.isdir(os.path.join(top, path)) and not _is_link(top, path)]
    files = [found.path for path in instead for found in ignored.walk(path)]
    rooms = list(whole)
    for place in rooms:  # grows on the way
        if len(rooms) > _ROOMS_LIMIT:
            break
        with contextlib.suppress(OSError), os.scandir(os.path.join(top, place)) as entries:
            rooms += [f"{place}/{entry.name}" for entry in entries if entry.is_dir(follow_symlinks=False)]
    return [path for path in files if _name(os.fsencode(path))], rooms


def _is_link(top: str, path: str) -> bool:
    """Whether a path is a link, or lies behind one."""
    return os.path.realpath(os.path.join(top, path)) != os.path.join(top, path)


async def _others(repository: Repository) -> tuple[list[bytes], list[bytes], list[bytes]]:
    """(files, directories that hold nothing tracked, repositories inside). Such a directory comes as one line first,
    so that empty ones are seen too."""
    first = await _lines(repository, *_LISTING, "--directory")
    whole = [path for path in first if path.endswith(b"/")]
    files = [path for path in first if not path.endswith(b"/")]
    if not whole:
        return files, [], []
    ways = [os.fsdecode(path.rstrip(b"/")) for path in whole] if len(whole) <= ARGUMENTS else []
    inside = await _lines(repository, *_LISTING, "--", *ways)
    nested = [path for path in inside if path.endswith(b"/")]
    files = sorted({*files, *(path for path in inside if not path.endswith(b"/"))})
    directories = [path.rstrip(b"/") for path in whole if path not in nested]
    return files, directories, [path.rstrip(b"/") for path in nested]


def _above(path: bytes) -> Iterable[bytes]:
    while b"/" in path:
        path = path.rpartition(b"/")[0]
        yield path


async def tracked_directories(repository: Repository, directories: Sequence[str]) -> set[str]:
    """Of these, the ones that hold something tracked (and with them all directories above)."""
    asked = directories if len(directories) <= ARGUMENTS else []
    paths = await _lines(repository, "ls-files", "-z", "--", *asked)
    return {os.fsdecode(above) for path in paths for above in _above(path)}


def _name(path: bytes) -> str | None:
    try:
        return path.decode()
    except UnicodeDecodeError:
        return None
