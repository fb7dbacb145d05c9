"""What git knows of a work tree: which files it could not give back, and the bytes of those it can.

Everything is asked through one copy of the index, taken before the call. So commits, checkouts and resets that the call
does itself change nothing about the question: what differs from that index is what the call has touched.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Coroutine, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from quintet.workspace.git import Index, Repository
from quintet.workspace.git_layout import Layout
from quintet.workspace.history_manifest import counted, some

A = TypeVar("A")
B = TypeVar("B")

_LISTING = ("ls-files", "--others", "--exclude-standard", "-z")
_CHANGED = ("diff-files", "--raw", "-z", "--no-abbrev", "--no-renames", "--ignore-submodules=all")
_ARGUMENTS = 400  # paths in one command line
_REFRESH_OVER = 300  # files that look changed: more of them mean that the index is stale, not that all were edited
_BATCH_BYTES = 16 * 1024 * 1024
_OBJECT_LIMIT = 64 * 1024 * 1024
_GITLINK, _LINK = 0o160000, 0o120000
_CONVERTING = ("text", "eol", "ident", "working-tree-encoding")
_SIZE = re.compile(rb"\n  size: (\d+)\t")


class Tracked(NamedTuple):
    """A file as the index has it."""

    path: str
    mode: int  # git's, not the file system's
    object: str


class Look(NamedTuple):
    changed: tuple[Tracked, ...]  # tracked, and not as in the index
    others: tuple[str, ...]  # neither tracked nor ignored
    directories: tuple[str, ...]  # that hold nothing tracked, and nothing listed
    nested: tuple[str, ...]  # repositories of their own
    unnamed: int  # files whose names are no UTF-8

    def notes(self, layout: Layout) -> list[str]:
        found: list[str] = []
        if self.nested:
            found.append(f"{some(list(self.nested))}: a repository of its own, not kept")
        if os.path.lexists(os.path.join(layout.top, ".gitmodules")):
            found.append("submodules are repositories of their own and not kept")
        if self.unnamed:
            found.append(f"{counted(self.unnamed)} with a name that is not UTF-8 and not kept")
        if borrowed := layout.borrowed_from():
            found.append(f"the repository borrows objects from {borrowed[0]}: clean files come back only with that")
        return found


class Blob(NamedTuple):
    """The bytes a tracked file had in the work tree; None where git does not hold them as they were."""

    tracked: Tracked
    data: bytes | None
    plain: bool  # the object holds just these bytes


async def look(repository: Repository, *, settle: bool = False) -> tuple[Look, Index | None]:
    """What differs from the index. `settle`: where very much seems to, let git look at the contents first; the index is
    then another one."""
    raw, (files, directories, nested) = await together(repository.ask(*_CHANGED), _others(repository))
    better: Index | None = None
    if settle and raw.count(b"\0") > 2 * _REFRESH_OVER:
        # Copied or restored trees have other inodes and times than the index says.
        better = await repository.refresh()
        raw = await repository.ask(*_CHANGED)
    changed, odd = _changed(raw)
    names = [_name(path) for path in files]
    found = Look(
        tuple(changed),
        tuple(name for name in names if name is not None),
        tuple(name for path in directories if (name := _name(path))),
        tuple(os.fsdecode(path) for path in nested),
        odd + names.count(None),
    )
    return found, better


def _changed(raw: bytes) -> tuple[list[Tracked], int]:
    """(files, how many more have names that are no UTF-8)"""
    fields = raw.split(b"\0")
    found: dict[str, Tracked] = {}
    odd = 0
    for head, path in zip(fields[0::2], fields[1::2], strict=False):
        mode, _, old, _, status = head.decode("ascii").lstrip(":").split(" ")
        name = _name(path)
        if name is None:
            odd += 1
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


async def _others(repository: Repository) -> tuple[list[bytes], list[bytes], list[bytes]]:
    """(files, directories without files, nested repositories). Directories that hold nothing tracked come as one line
    first, so that empty ones are seen too."""
    first = [path for path in (await repository.ask(*_LISTING, "--directory")).split(b"\0") if path]
    whole = [path for path in first if path.endswith(b"/")]
    files = [path for path in first if not path.endswith(b"/")]
    if not whole:
        return files, [], []
    ways = [os.fsdecode(path.rstrip(b"/")) for path in whole] if len(whole) <= _ARGUMENTS else []
    inside = [path for path in (await repository.ask(*_LISTING, "--", *ways)).split(b"\0") if path]
    nested = [path for path in inside if path.endswith(b"/")]
    files = sorted({*files, *(path for path in inside if not path.endswith(b"/"))})
    full = {above for path in [*files, *nested] for above in _above(path)}
    empty = [path.rstrip(b"/") for path in whole if path.rstrip(b"/") not in full and path not in nested]
    return files, empty, [path.rstrip(b"/") for path in nested]


def _above(path: bytes) -> Iterable[bytes]:
    while b"/" in path:
        path = path.rpartition(b"/")[0]
        yield path


async def tracked_directories(repository: Repository, directories: Sequence[str]) -> set[str]:
    """Of these, the ones that hold something tracked (and with them all directories above)."""
    asked = directories if len(directories) <= _ARGUMENTS else []
    raw = await repository.ask("ls-files", "-z", "--", *asked)
    return {os.fsdecode(above) for path in raw.split(b"\0") for above in _above(path)}


async def contents(repository: Repository, files: Sequence[Tracked]) -> AsyncIterator[list[Blob]]:
    """The bytes that clean files had, in batches that fit in memory. What the index says of a file's size, and the
    attributes it had, tell whether the object's bytes are those that stood in the work tree."""
    sizes = await _object_sizes(repository, files)
    stats, attributes = await together(_index_sizes(repository, files), _attributes(repository, files))
    batch: list[Tracked] = []
    held = 0
    for file in files:
        size = sizes.get(file.object, -1)
        if size < 0 or size > _OBJECT_LIMIT or "\n" in file.path:
            yield [Blob(file, None, plain=False)]
            continue
        if batch and held + size > _BATCH_BYTES:
            yield await _blobs(repository, batch, stats, attributes)
            batch, held = [], 0
        batch.append(file)
        held += size
    if batch:
        yield await _blobs(repository, batch, stats, attributes)


async def _blobs(
    repository: Repository, files: Sequence[Tracked], stats: dict[str, int], attributes: dict[str, dict[str, str]]
) -> list[Blob]:
    plain = await read_objects(repository, [file.object for file in files])
    found: dict[str, Blob] = {}
    converted: list[Tracked] = []
    for file in files:
        data, size, said = plain.get(file.object), stats.get(file.path, -1), attributes.get(file.path, {})
        converts = repository.converts or any(said.get(name) for name in _CONVERTING)
        if data is None or (said.get("filter") and file.mode != _LINK):
            found[file.path] = Blob(file, None, plain=False)
        elif file.mode == _LINK or size == len(data) or (size == 0 and not converts):
            found[file.path] = Blob(file, data, plain=True)
        elif size > 0 and converts:
            converted.append(file)
        else:
            found[file.path] = Blob(file, None, plain=False)
    if converted:
        given = "".join(f"{file.object} {file.path}\n" for file in converted).encode()
        answers = _objects(await repository.ask("cat-file", "--batch", "--filters", given=given))
        for file, data in zip(converted, answers, strict=False):
            right = data is not None and len(data) == stats[file.path]
            found[file.path] = Blob(file, data if right else None, plain=False)
    return [found.get(file.path, Blob(file, None, plain=False)) for file in files]


async def read_objects(repository: Repository, objects: Sequence[str]) -> dict[str, bytes]:
    given = "".join(f"{name}\n" for name in objects).encode()
    answers = _objects(await repository.ask("cat-file", "--batch", given=given, output_limit=2 * _OBJECT_LIMIT))
    return {name: data for name, data in zip(objects, answers, strict=False) if data is not None}


def _objects(raw: bytes) -> list[bytes | None]:
    """What `cat-file --batch` answers, in the order it was asked; None for what the repository does not have."""
    found: list[bytes | None] = []
    place = 0
    while place < len(raw):
        end = raw.index(b"\n", place)
        words = raw[place:end].split(b" ")
        if words[-1] in (b"missing", b"ambiguous") or len(words) != 3:
            found.append(None)
            place = end + 1
            continue
        size = int(words[2])
        found.append(raw[end + 1 : end + 1 + size] if words[1] == b"blob" else None)
        place = end + 1 + size + 1
    return found


async def _object_sizes(repository: Repository, files: Sequence[Tracked]) -> dict[str, int]:
    given = "".join(f"{file.object}\n" for file in files).encode()
    raw = await repository.ask("cat-file", "--batch-check=%(objectname) %(objectsize)", given=given)
    lines = (line.split(" ") for line in raw.decode("ascii", "replace").split("\n"))
    return {words[0]: int(words[1]) for words in lines if len(words) == 2 and words[1].isdigit()}


async def _index_sizes(repository: Repository, files: Sequence[Tracked]) -> dict[str, int]:
    """How large the files were in the work tree when git last looked at them."""
    found: dict[str, int] = {}
    for first in range(0, len(files), _ARGUMENTS):
        names = [file.path for file in files[first : first + _ARGUMENTS]]
        raw = await repository.ask("ls-files", "-z", "--debug", "--", *names)
        for name, rest in zip(*_split_debug(raw), strict=False):
            size = _SIZE.search(rest)
            if size is not None:
                found[name] = int(size[1])
    return found


def _split_debug(raw: bytes) -> tuple[list[str], list[bytes]]:
    """`name NUL five lines` again and again."""
    names: list[str] = []
    rests: list[bytes] = []
    while b"\0" in raw:
        name, _, raw = raw.partition(b"\0")
        lines = raw.split(b"\n", 5)
        names.append(os.fsdecode(name))
        rests.append(b"\n" + b"\n".join(lines[:5]))
        raw = lines[5] if len(lines) == 6 else b""
    return names, rests


async def _attributes(repository: Repository, files: Sequence[Tracked]) -> dict[str, dict[str, str]]:
    """What the attributes of the old index, or those standing in the work tree now, say of how bytes are converted."""
    given = "".join(f"{file.path}\0" for file in files).encode()
    command = ("check-attr", "-z", "--stdin")
    names = ("filter", *_CONVERTING)
    answers = await together(
        repository.ask(*command, "--cached", *names, given=given), repository.ask(*command, *names, given=given)
    )
    found: dict[str, dict[str, str]] = {}
    for raw in answers:
        fields = raw.decode("utf-8", "surrogateescape").split("\0")
        for path, name, value in zip(fields[0::3], fields[1::3], fields[2::3], strict=False):
            if value not in ("unspecified", "unset"):
                found.setdefault(path, {})[name] = value
    return found


def _name(path: bytes) -> str | None:
    try:
        return path.decode()
    except UnicodeDecodeError:
        return None
