"""Exports: a file made for somebody outside, put where they say. Blocking; callers go through `on_disk`.

One function for the person's own shell and for paths that clients send. Knows no thread and no format.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable

from quintet.domain.errors import Invalid
from quintet.workspace.handles import open_below, replace, write_new
from quintet.workspace.paths import PathGuard, Place


def write_export(
    guard: PathGuard, path: str, lines: Iterable[bytes], *, cwd: str, root: str = "", force: bool = False
) -> Place:
    """Whole or not at all, for its owner's eyes only. With a `root` nothing outside of it is written. What stands
    there is replaced only by force, and only where it is a regular file: other names of it keep what they had."""
    place = guard.exporting(path, cwd, root)
    *way, name = place.names or (os.curdir,)
    try:
        directory = open_below(place.root, way)
    except (FileNotFoundError, NotADirectoryError):
        above = os.path.dirname(place.path)
        raise Invalid(f"There is no directory {above}.", next_step="Make it first, or name another file.") from None
    except OSError as error:
        raise _unwritable(place, error) from error
    try:
        _replaceable(place, directory, name)
        replace(directory, name, lambda passing: write_new(directory, passing, lines, 0o600), only_new=not force)
    except FileExistsError:
        words = f"{place.shown} exists already; nothing was overwritten."
        next_step = "Name another file." if root else "Name another file, or let this one be replaced with --force."
        raise Invalid(words, next_step=next_step) from None
    except OSError as error:
        raise _unwritable(place, error) from error
    finally:
        os.close(directory)
    return place


def write_own(directory: str, name: str, pieces: Iterable[bytes]) -> str:
    """A new file in a directory of Quintet's own, whole or not at all."""
    handle = open_below(directory, ())
    try:
        replace(handle, name, lambda passing: write_new(handle, passing, pieces, 0o600), only_new=True)
    finally:
        os.close(handle)
    return os.path.join(directory, name)


def _replaceable(place: Place, directory: int, name: str) -> None:
    """Refuse what is no regular file, by force or not; whether one is there is seen when the export takes its place."""
    try:
        mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return
    if stat.S_ISLNK(mode):
        raise Invalid(f"{place.shown} is a link, and links are not followed here.", next_step="Name another file.")
    if stat.S_ISDIR(mode):
        raise Invalid(f"{place.shown} is a directory.", next_step="Name a file in it.")
    if not stat.S_ISREG(mode):
        words = f"{place.shown} is not a regular file but a pipe, a socket or a device."
        raise Invalid(words, next_step="Name another file.")


def _unwritable(place: Place, error: OSError) -> Invalid:
    return Invalid(f"{place.shown} cannot be written: {error.strerror}.", next_step="Name another file.")
