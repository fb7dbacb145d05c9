"""Where Quintet may make control groups of the kernel's: at the top of what it was given, or where a service was
delegated to it. A group that somebody else put us in, to count or to limit us, is theirs and is never built in.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import msgspec

CONTROLLERS = ("pids", "memory")
DELEGATED = "user.delegate"  # systemd marks so what it leaves to a service


class Place(msgspec.Struct, frozen=True):
    directory: str
    unified: bool  # version 2: one tree for all controllers, with other names for the same files


def places(root: str = "/") -> dict[str, Place]:
    """By controller; one that is not there, or is not for us, is left out."""
    own = dict(_own_groups(root))
    found: dict[str, Place] = {}
    for kind, top, point, options in _mounts(root):
        for name in CONTROLLERS:
            if kind == "cgroup" and name in options and own.get(name) == top:
                found[name] = Place(os.path.join(root, point), False)
        if kind == "cgroup2" and "" in own and _beneath(own[""], top):
            group = os.path.normpath(os.path.join(root, point, os.path.relpath(own[""], top)))
            for name in CONTROLLERS:
                if (at := _unified(group, name, at_top=own[""] == top)) is not None:
                    found[name] = Place(at, True)
    return {name: place for name, place in found.items() if os.access(place.directory, os.W_OK)}


def _own_groups(root: str) -> Iterator[tuple[str, str]]:
    """Our group by controller; version 2 has none named."""
    for line in _lines(os.path.join(root, "proc/self/cgroup")):
        _, names, group = line.split(":", 2)
        for name in names.split(","):
            yield name, group


def _mounts(root: str) -> Iterator[tuple[str, str, str, list[str]]]:
    """(kind, the group that is its top here, where it is mounted, options) of each tree of groups."""
    for line in _lines(os.path.join(root, "proc/self/mountinfo")):
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        if kind in ("cgroup", "cgroup2"):
            top, point = before.split(" ")[3:5]
            yield kind, top, point.lstrip("/"), options.split(",")


def _beneath(group: str, top: str) -> bool:
    return os.path.commonpath((group, top)) == top


def _unified(group: str, name: str, *, at_top: bool) -> str | None:
    """Our group or, where a service keeps its processes one below, the one above; the controller is switched on."""
    for place, ours in ((group, at_top or _delegated(group)), (os.path.dirname(group), _delegated_above(group))):
        if ours and _switched_on(place, name):
            return place
    return None


def _delegated_above(group: str) -> bool:
    return _delegated(os.path.dirname(group))


def _delegated(place: str) -> bool:
    with contextlib.suppress(OSError, AttributeError):  # not every system has such attributes
        return os.getxattr(place, DELEGATED) == b"1"
    return False


def _switched_on(place: str, name: str) -> bool:
    switch = os.path.join(place, "cgroup.subtree_control")
    if name in " ".join(_lines(switch)).split():
        return True
    if name not in " ".join(_lines(os.path.join(place, "cgroup.controllers"))).split():
        return False
    try:
        with open(switch, "w") as file:
            file.write(f"+{name}")
    except OSError:  # not while processes are in it, us above all
        return False
    return True


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()
    except OSError:
        return []
