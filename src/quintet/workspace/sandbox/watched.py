"""Names nothing is laid over (links, what would stop git, what would be in every command's way): remembered before a
command, as they were after it. What the command had put there is moved aside, so nothing is lost.

Second best, and said so: while the command runs such a name can be changed. Looking and putting back go by handles,
from the root down: a directory that became a link leads nowhere, whoever still works there meanwhile.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator

import msgspec

from quintet.workspace.handles import open_below
from quintet.workspace.kernel import rename_new

ASIDE = ".from-command"
MOST_ASIDE = 1_000


class Watched(msgspec.Struct, frozen=True):
    root: str  # resolved; what lies above it no command can change
    place: str  # beneath it, with no link on the way


Before = dict[Watched, str | None]  # what the link says, None = nothing was there


class PutBack(msgspec.Struct, frozen=True):
    place: str
    aside: str = ""  # where it is now, what the command had put there; nothing: it had only taken away
    failure: str = ""  # why the place is not as it was
    left: bool = False  # nothing was put back: it began something there that git would go on with


def remember(places: Iterable[Watched]) -> Before:
    return {watched: _link(watched) for watched in places}


def put_back(before: Before) -> list[PutBack]:
    """What had to be put back."""
    return [done for watched, link in before.items() if (done := _put_back(watched, link)) is not None]


def _put_back(watched: Watched, link: str | None) -> PutBack | None:
    place = watched.place
    aside = ""
    try:
        with _directory(watched) as directory:
            name = os.path.basename(place)
            if _as_before(directory, name, link):
                return None
            with _writable(directory):
                if _as_before(directory, name, link):  # it only could not be seen
                    return None
                with contextlib.suppress(FileNotFoundError):
                    aside = os.path.join(os.path.dirname(place), _move_aside(directory, name))
                if link is not None:
                    os.symlink(link, name, dir_fd=directory)
    except OSError as error:
        if link is None and not os.path.lexists(place):
            return None  # its directory is gone as well, or is a link now to where nothing has that name
        return PutBack(place, aside, failure=error.strerror or str(error))
    return PutBack(place, aside)


@contextlib.contextmanager
def _directory(watched: Watched) -> Iterator[int]:
    inner = os.path.relpath(os.path.dirname(watched.place), watched.root)
    directory = open_below(watched.root, inner.split(os.sep))
    try:
        yield directory
    finally:
        os.close(directory)


def _as_before(directory: int, name: str, link: str | None) -> bool:
    try:
        return os.readlink(name, dir_fd=directory) == link
    except FileNotFoundError:
        return link is None
    except OSError:  # no link, or not to be seen
        return False


def _move_aside(directory: int, name: str) -> str:
    """Where it is now. Nothing is replaced by it, not even what appears there at this moment."""
    for number in range(1, MOST_ASIDE):
        aside = f"{name}{ASIDE}" if number == 1 else f"{name}{ASIDE}-{number}"
        with contextlib.suppress(FileExistsError):
            if rename_new(directory, name, aside):
                return aside
            if not _is_there(directory, aside):  # a file system that knows no such move
                os.rename(name, aside, src_dir_fd=directory, dst_dir_fd=directory)
                return aside
    raise FileExistsError(errno.EEXIST, f"{MOST_ASIDE} names beside it are taken")


def _is_there(directory: int, name: str) -> bool:
    try:
        os.lstat(name, dir_fd=directory)
    except FileNotFoundError:
        return False
    return True


@contextlib.contextmanager
def _writable(directory: int) -> Iterator[None]:
    """A command may have taken our right to write a directory of ours; that must not keep its file in place."""
    if os.access(os.curdir, os.W_OK | os.X_OK, dir_fd=directory):
        yield
        return
    # The handle is one to pass by; under this name the kernel changes the directory itself, whatever it is called now.
    mode, by_handle = stat.S_IMODE(os.fstat(directory).st_mode), f"/proc/self/fd/{directory}"
    os.chmod(by_handle, mode | stat.S_IRWXU)
    try:
        yield
    finally:
        os.chmod(by_handle, mode)


def _link(watched: Watched) -> str | None:
    try:
        with _directory(watched) as directory:
            return os.readlink(os.path.basename(watched.place), dir_fd=directory)
    except OSError:
        return None
