"""Others: what stands in a work tree beside the files that an index holds. Which names are there is looked up here
(history_rooms); which of them the ignore rules leave out is for git to say, and it is asked about these names only.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from quintet.workspace.files import on_disk
from quintet.workspace.git import GitFailed, Repository
from quintet.workspace.git_index import plain_names
from quintet.workspace.history_rooms import RoomMemory, rooms_of
from quintet.workspace.history_rules import is_rules

ARGUMENTS = 400  # paths in one command line
_LISTING = ("ls-files", "--others", "--exclude-standard", "-z")
_IGNORED = (*_LISTING, "--ignored", "--directory")
_FLAGS = ("ls-files", "-v", "-z")
_FLAG = 2  # a letter and a space before each name
_INDEXES = 4  # remembered


class Held(NamedTuple):
    """What an index holds."""

    listing: bytes  # digest: another index with the same one holds the same
    rooms: dict[bytes, bytes]  # by directory, as history_rooms has it
    passed: tuple[bytes, ...]  # git is told to pass over them (skip-worktree, assume-unchanged)
    paths: tuple[bytes, ...]  # all, where they are few


class Others(NamedTuple):
    files: Sequence[bytes]  # neither tracked nor ignored
    directories: Sequence[bytes]  # that hold nothing tracked
    nested: Sequence[bytes]  # repositories of their own
    ignored: Sequence[bytes]  # among the names that were put before git; a whole directory as one, ended by a slash


class OthersMemory:
    """What need not be asked or looked up again."""

    def __init__(self) -> None:
        self.rooms = RoomMemory()
        self.held: dict[bytes, Held] = {}  # by the name of an index


async def held_by(repository: Repository, memory: OthersMemory, few: int) -> Held:
    """Told by the index alone, so it is looked up once while that is the same. Git writes a new one whenever it has
    looked at a touched file; mostly that one holds what the old one did."""
    held = memory.held.get(repository.index)
    if held is None:
        known = tuple(memory.held.values())
        if repository.sha1:
            held = await on_disk(_plainly_held, repository.entries, few, known)
        if held is None:
            held = await on_disk(_held, await repository.ask(*_FLAGS), few, known)
        while len(memory.held) >= _INDEXES:
            del memory.held[next(iter(memory.held))]
        memory.held[repository.index] = held
    return held


def _plainly_held(index: bytes, few: int, known: Iterable[Held]) -> Held | None:
    """Mostly there is nothing special about any file, and git need not be asked."""
    names = plain_names(index)
    return None if names is None else _known_or_new(names, (), few, known)


def _held(raw: bytes, few: int, known: Iterable[Held]) -> Held:
    lines = lines_in(raw, _FLAGS[0])
    passed = tuple(line[_FLAG:] for line in lines if _is_passed(line))
    return _known_or_new([line[_FLAG:] for line in lines], passed, few, known)


def _known_or_new(names: Sequence[bytes], passed: tuple[bytes, ...], few: int, known: Iterable[Held]) -> Held:
    listing = b"\0".join([*names, b""])
    digest = hashlib.sha256(b"\0".join([b"%d" % few, *passed, b""]))
    digest.update(listing)
    for other in known:
        if other.listing == digest.digest():
            return other
    return Held(digest.digest(), rooms_of(listing), passed, tuple(names) if len(names) <= few else ())


def _is_passed(line: bytes) -> bool:
    """`S name`: not to be in the work tree; a small letter: taken for unchanged without a look."""
    return line[:1] == b"S" or line[:1].islower()


async def others_of(repository: Repository, memory: OthersMemory, held: Held, *, fresh: bool) -> Others:
    """`fresh`: no directory is taken for untouched. A directory that holds nothing tracked comes as one line first, so
    that empty ones are seen too."""
    asked = None if repository.folds else await _names(repository.layout.top, memory.rooms, held, fresh=fresh)
    if asked == []:
        return Others((), (), (), ())
    first = await lines_of(repository, *_LISTING, "--directory", *_only(asked))
    whole = [path for path in first if path.endswith(b"/")]
    ignored = await _ignored(repository, asked, whole)
    files = [path for path in first if not path.endswith(b"/")]
    if not whole:
        return Others(files, (), (), ignored)
    inside = await lines_of(repository, *_LISTING, *_only(path.rstrip(b"/") for path in whole))
    nested = [path for path in inside if path.endswith(b"/")]
    files = sorted({*files, *(path for path in inside if not path.endswith(b"/"))})
    directories = [path.rstrip(b"/") for path in whole if path not in nested]
    return Others(files, directories, [path.rstrip(b"/") for path in nested], ignored)


async def _names(top: str, memory: RoomMemory, held: Held, *, fresh: bool) -> list[bytes]:
    try:
        return await on_disk(memory.untracked, top, held.rooms, fresh=fresh)
    except OSError as error:
        raise GitFailed(f"the work tree could not be looked at: {error.strerror}") from error


async def _ignored(repository: Repository, asked: Sequence[bytes] | None, whole: Sequence[bytes]) -> list[bytes]:
    """Only ignore files matter: those that were asked about, and those in directories that hold nothing tracked."""
    if asked is None:
        return await lines_of(repository, *_IGNORED)
    rules = [path for path in asked if is_rules(os.fsdecode(path))]
    return await ignored_in(repository, [*rules, *(path.rstrip(b"/") for path in whole)])


async def ignored_in(repository: Repository, paths: Sequence[bytes]) -> list[bytes]:
    """What is ignored at these paths and below."""
    return await lines_of(repository, *_IGNORED, *_only(paths)) if paths else []


def _only(paths: Iterable[bytes] | None) -> list[str]:
    """How a command is told to look at these paths alone. Too many to be named: it has to look at all there are."""
    words = [] if paths is None else [os.fsdecode(path) for path in paths]
    return ["--", *words] if len(words) <= ARGUMENTS else []


async def lines_of(repository: Repository, *command: str) -> list[bytes]:
    """What a command lists, each line ended by NUL."""
    return lines_in(await repository.ask(*command), command[0])


def lines_in(raw: bytes, command: str) -> list[bytes]:
    """A list that was cut short must never pass for the whole."""
    if raw and not raw.endswith(b"\0"):
        raise GitFailed(f"git {command} broke off")
    return raw.split(b"\0")[:-1]
