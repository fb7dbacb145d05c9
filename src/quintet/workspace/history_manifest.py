"""Manifest: what stood in a directory before a call, as it is kept in a blob until the call is compared.

Also the limits of what is put aside, and the words for what went beyond them. Pure.
"""

from __future__ import annotations

import os
from typing import Literal

import msgspec

from quintet.domain.checkpoint import FileState
from quintet.domain.shown import shown_line
from quintet.workspace.tree import Seen

FILE_LIMIT = 1024 * 1024  # before a shell call: of one file
NAMED_LIMIT = 8 * 1024 * 1024  # of a file that a file tool names: more than such a tool can write
BYTES_LIMIT = 64 * 1024 * 1024
FILES_LIMIT = 5_000


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    path: str
    state: FileState
    seen: Seen | None = None
    directory: bool = False  # no file, but a directory stands there
    sure: bool = False  # an unchanged `seen` means an unchanged file: it had not been touched just before


class Manifest(msgspec.Struct, frozen=True, omit_defaults=True):
    way: Literal["git", "walk", "paths"]
    at_ns: int  # when everything was put aside: what is older was there before the call
    entries: tuple[Entry, ...] = ()
    index: str = ""  # blob with the index; empty in a repository without one
    index_ns: int = 0
    plain_mode: int = 0o644  # what git gave the files it checked out
    modes: dict[str, int] | None = None  # of clean files, where not that; None: too many files to look at
    rooms: dict[str, int] = {}  # permissions of directories, where they are not the usual ones
    exclude: str = ""  # digest of the ignore rules that lie among git's own files
    cut: bool = False  # there were more files than could be looked at
    directories: tuple[str, ...] = ()  # that were there though no file here tells it

    def blobs(self) -> set[str]:
        kept = {entry.state.digest for entry in self.entries if entry.state.kept}
        return kept | {self.index} if self.index else kept

    def pack(self) -> bytes:
        return _ENCODER.encode(self)


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Manifest)


def unpack(data: bytes) -> Manifest:
    return _DECODER.decode(data)


class Budget:
    """What may still be put aside, and what could not be."""

    def __init__(self, file_limit: int = FILE_LIMIT) -> None:
        self.file_limit = file_limit
        self.files = 0
        self.bytes = 0
        self.large: list[str] = []
        self.beyond = 0
        self.unread: list[str] = []
        self.moving: list[str] = []
        self.special: list[str] = []

    def takes(self, path: str, size: int) -> bool:
        """Count a file in, or say why not."""
        if size > self.file_limit:
            self.large.append(path)
            return False
        if self.files >= FILES_LIMIT or self.bytes + size > BYTES_LIMIT:
            self.beyond += 1
            return False
        self.files += 1
        self.bytes += size
        return True

    def words(self) -> list[str]:
        found: list[str] = []
        if self.large:
            found.append(f"{some(self.large)}: larger than {self.file_limit // 1024 // 1024} MiB and not kept")
        if self.beyond:
            limits = f"{FILES_LIMIT:,} files and {BYTES_LIMIT // 1024 // 1024} MiB"
            found.append(f"{counted(self.beyond)} not kept: beyond the limit of {limits}")
        if self.unread:
            found.append(f"{some(self.unread)}: could not be read")
        if self.moving:
            found.append(f"{some(self.moving)}: changed while being read and not kept")
        if self.special:
            found.append(f"{some(self.special)}: no file that could be kept (a device, a socket, a pipe)")
        return found


def counted(number: int) -> str:
    return "1 file" if number == 1 else f"{number:,} files"


def some(paths: list[str]) -> str:
    """One by name, many by number and the first name."""
    first = shown_line(os.fsencode(paths[0]).decode("utf-8", "backslashreplace"))
    return first if len(paths) == 1 else f"{counted(len(paths))} ({first} …)"
