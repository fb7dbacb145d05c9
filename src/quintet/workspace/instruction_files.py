"""Files that people write for agents: AGENTS.md of the person and of a project, bounded and cleaned. Blocking.

What cannot be read or has no room is named in its own place, so that nobody takes a part for the whole.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence

from quintet.domain.errors import Invalid
from quintet.domain.shown import shown_line
from quintet.domain.surroundings import Instructions
from quintet.workspace.files import open_regular
from quintet.workspace.paths import PathGuard, contains

NAMES = ("AGENTS.md", "CLAUDE.md")  # the second only where the first is not there
FILE_LIMIT = 32 * 1024  # bytes of one file
TOGETHER = 64 * 1024


class InstructionFiles:
    def __init__(self, guard: PathGuard, home: str, also: Sequence[str] = ()) -> None:
        """`also` are further directories of the person's own."""
        self._guard = guard
        self._own = [directory for directory in (home, *also) if directory]

    def of(self, root: str, cwd: str) -> tuple[Instructions, ...]:
        """The person's own first, then the project's from its root down to the working directory: the nearer a file is
        to the work, the later it is read."""
        room = TOGETHER
        found: list[Instructions] = []
        for source, path, of_person in self._files(root, os.path.realpath(cwd)):
            try:
                handle = self._opened(path, of_person=of_person)
            except (OSError, Invalid) as error:
                found.append(Instructions(source, f"[not read: {_why(error)}]", of_person))
                continue
            data, size = _read(handle)
            text = _clean(data[: min(room, FILE_LIMIT)], size)
            room -= min(room, FILE_LIMIT, len(data))
            if text:
                found.append(Instructions(source, text, of_person))
        return tuple(found)

    def _files(self, root: str, cwd: str) -> Iterator[tuple[str, str, bool]]:
        """(name for people, path, whether it is the person's)."""
        for directory in self._own:
            if os.path.lexists(own := os.path.join(directory, NAMES[0])):
                yield NAMES[0], own, True
        seen: set[str] = set()
        for directory in _way(root, cwd):
            for name in NAMES:
                path = os.path.join(directory, name)
                if os.path.lexists(path):
                    if os.path.realpath(path) not in seen:  # a link to one that was read says nothing new
                        yield shown_line(os.path.relpath(path, root)), path, False
                    seen.add(os.path.realpath(path))
                    break

    def _opened(self, path: str, *, of_person: bool) -> int:
        if not of_person:
            return open_regular(self._guard.reading(path, os.path.dirname(path)))
        # The home is closed to every tool, so a link there was made by the person, to wherever they keep such files.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise Invalid("it is not a regular file.")
        return handle


def _way(root: str, cwd: str) -> list[str]:
    """The directories from the root down to the working directory."""
    if not contains(root, cwd):
        return [cwd]
    way = [cwd]
    while way[-1] != root:
        way.append(os.path.dirname(way[-1]))
    return way[::-1]


def _read(handle: int) -> tuple[bytes, int]:
    with os.fdopen(handle, "rb") as file:
        return file.read(FILE_LIMIT + 1), os.fstat(handle).st_size


def _clean(data: bytes, size: int) -> str:
    """As text: whole lines where it was cut, nothing in it that a terminal or a model's wire would stumble over."""
    cut = size > len(data)
    if cut:
        data = data[: data.rfind(b"\n") + 1] or data
    text = data.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n")
    text = "".join(c if c in "\n\t" or not _control(c) else "\ufffd" for c in text).strip()
    told = f"[cut: {len(data)} of {size} bytes; read the file for the rest]" if cut else ""
    return "\n".join(part for part in (text, told) if part)


def _control(character: str) -> bool:
    return character < " " or "\x7f" <= character <= "\x9f"


def _why(error: Exception) -> str:
    if isinstance(error, Invalid):
        return error.message.removesuffix(".")
    return error.strerror or "it cannot be opened" if isinstance(error, OSError) else ""
