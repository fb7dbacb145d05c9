"""Names nothing is laid over (links, what would stop git, what would be in every command's way): remembered before a
command, as they were after it. What the command had put there is moved aside, so nothing is lost.

Second best, and said so: while the command runs such a name can be changed.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator

import msgspec

Before = dict[str, str | None]  # name: what the link says, None = nothing was there
ASIDE = ".from-command"


class PutBack(msgspec.Struct, frozen=True):
    place: str
    aside: str = ""  # where it is now, what the command had put there; nothing: it had only taken away
    failure: str = ""  # why the place is not as it was
    left: bool = False  # nothing was put back: it began something there that git would go on with


def remember(places: Iterable[str]) -> Before:
    return {place: _link(place) for place in places}


def put_back(before: Before) -> list[PutBack]:
    """What had to be put back."""
    return [_put_back(place, link) for place, link in before.items() if not _as_before(place, link)]


def _as_before(place: str, link: str | None) -> bool:
    return _link(place) == link and (link is not None or not os.path.lexists(place))


def _put_back(place: str, link: str | None) -> PutBack:
    aside = ""
    try:
        with _writable(os.path.dirname(place)):
            if os.path.lexists(place):
                aside = _free_name(place)
                os.rename(place, aside)
            if link is not None:
                os.symlink(link, place)
    except OSError as error:
        return PutBack(place, failure=error.strerror or str(error))
    return PutBack(place, aside)


def _free_name(place: str) -> str:
    number = 1
    name = f"{place}{ASIDE}"
    while os.path.lexists(name):
        number += 1
        name = f"{place}{ASIDE}-{number}"
    return name


@contextlib.contextmanager
def _writable(directory: str) -> Iterator[None]:
    """A command may have taken our right to write a directory of ours; that must not keep its file in place."""
    mode = stat.S_IMODE(os.stat(directory).st_mode)
    if os.access(directory, os.W_OK | os.X_OK):
        yield
        return
    os.chmod(directory, mode | stat.S_IRWXU)
    try:
        yield
    finally:
        os.chmod(directory, mode)


def _link(place: str) -> str | None:
    try:
        return os.readlink(place)
    except OSError:
        return None
