"""The bytes that clean files had in a work tree, from git's objects.

Git may convert bytes on their way in and out (line ends, filters, encodings). What the index says of a file's size, and
the attributes it had, tell whether an object's bytes are those that stood in the work tree; in doubt they are not.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple

from quintet.workspace.files import together
from quintet.workspace.git import Repository
from quintet.workspace.history_git import Tracked, split_debug
from quintet.workspace.history_others import ARGUMENTS

_BATCH_BYTES = 16 * 1024 * 1024
_OBJECT_LIMIT = 64 * 1024 * 1024
LINK = 0o120000
_CONVERTING = ("text", "eol", "ident", "working-tree-encoding")
_SIZE = re.compile(rb"\n  size: (\d+)\t")


class Blob(NamedTuple):
    """The bytes a tracked file had in the work tree; None where git does not hold them as they were."""

    tracked: Tracked
    data: bytes | None
    plain: bool  # the object holds just these bytes


async def contents(repository: Repository, files: Sequence[Tracked]) -> AsyncIterator[list[Blob]]:
    """In batches that fit in memory."""
    sizes = await _object_sizes(repository, files)
    stats, attributes = await together(_index_sizes(repository, files), _attributes(repository, files))
    batch: list[Tracked] = []
    held = 0
    for file in files:
        size = sizes.get(file.object, -1)
        if size < 0 or size > _OBJECT_LIMIT:
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
    repository: Repository, files: Sequence[Tracked], sizes: dict[str, int], attributes: dict[str, dict[str, str]]
) -> list[Blob]:
    objects = await read_objects(repository, [file.object for file in files])
    found: list[Blob] = []
    for file in files:
        said = attributes.get(file.path, {})
        converts = repository.converts or any(said.get(name) for name in _CONVERTING)
        data = None if said.get("filter") and file.mode != LINK else objects.get(file.object)
        size = sizes.get(file.path, -1)
        if data is None:
            found.append(Blob(file, None, plain=False))
        elif file.mode == LINK or size == len(data) or (size == 0 and not converts):  # 0: git was not sure either
            found.append(Blob(file, data, plain=True))
        else:
            # Other line ends in the work tree are the one conversion that can be done again and checked.
            ended = data.replace(b"\n", b"\r\n") if converts and b"\r" not in data else b""
            found.append(Blob(file, ended if ended and len(ended) == size else None, plain=False))
    return found


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
    for first in range(0, len(files), ARGUMENTS):
        names = [file.path for file in files[first : first + ARGUMENTS]]
        raw = await repository.ask("ls-files", "-z", "--debug", "--", *names)
        for name, rest in zip(*split_debug(raw), strict=False):
            size = _SIZE.search(rest)
            if size is not None:
                found[name] = int(size[1])
    return found


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
