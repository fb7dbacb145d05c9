"""From a Profile to mounts: which tree is writable, what is hidden, what is private, what must be seen all the same.

Looks at the disk, makes nothing. The order of the list matters: of two mounts for one place the first counts.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from quintet.domain.errors import Invalid
from quintet.workspace.protected import home_of_owner
from quintet.workspace.sandbox.aliases import aliases
from quintet.workspace.sandbox.guards import Guarded, git_trees, guarded, guarded_extra, guarded_git
from quintet.workspace.sandbox.hidden import credential_places, listening_sockets, socket_directories
from quintet.workspace.sandbox.mounts import Kind, Mount, lies_in
from quintet.workspace.sandbox.profile import Profile
from quintet.workspace.sandbox.watched import Watched

TEMPORARY = "/tmp"  # noqa: S108 - the name inside; what lies there is the command's own
_PRIVATE = ("/run", "/var/run", "/var/tmp", "/dev/shm")  # noqa: S108
_MACHINE = ("/proc", "/sys", "/dev")
_SYSTEM = "/run/current-system"  # where some systems keep every program


class Own(msgspec.Struct, frozen=True):
    """What belongs to Quintet and to the machine's owner rather than to a command."""

    environment: Mapping[str, str]  # ours, not the command's: it says where the user keeps things
    home: str = ""
    hidden: Sequence[str] = ()  # further directories of ours, those that hold a socket above all
    writable: Sequence[str] = ()  # opted in by the person, e.g. package caches
    needed: Sequence[str] = ()  # what the launcher is made of


class Plan(msgspec.Struct, frozen=True):
    mounts: tuple[Mount, ...]
    absent: tuple[str, ...]
    watched: tuple[Watched, ...]
    covered: tuple[str, ...]  # directories in writable trees that something is laid over

    @property
    def writable(self) -> list[str]:
        return [mount.place for mount in self.mounts if mount.kind in (Kind.WRITE, Kind.PRIVATE)]

    def with_more(self, mounts: Iterable[Mount]) -> Plan:
        return msgspec.structs.replace(self, mounts=(*self.mounts, *mounts))

    def without(self, places: set[str]) -> Plan:
        kept = tuple(mount for mount in self.mounts if mount.place not in places)
        return msgspec.structs.replace(self, mounts=kept)


def plan(profile: Profile, own: Own) -> Plan:
    workspace = os.path.realpath(profile.workspace)
    refuse(workspace, own)
    ours = [os.path.realpath(place) for place in (own.home, *own.hidden) if place]
    mounts = [Mount(place, Kind.HIDE) for place in ours if os.path.isdir(place)]
    added = [place for place in profile.added if os.path.realpath(place) == place and os.path.isdir(place)]
    trees = [*_writable_trees(workspace, own), *added] if profile.writable else []
    mounts += [Mount(tree, Kind.WRITE) for tree in trees] or [Mount(tree, Kind.SHOW) for tree in (workspace, *added)]
    # Most are not there, and resolving is most of the work.
    named = credential_places(own.environment)
    credentials = {os.path.realpath(place) if os.path.lexists(place) else place for place in named}
    mounts += _hiding(credentials - set(trees) - {workspace})
    mounts += _hiding(aliases(mount.place for mount in list(mounts) if mount.kind in (Kind.HIDE, Kind.BLANK)))
    guards = list(_guards(workspace, added, trees, credentials | set(ours), own))
    for guard in guards:
        mounts += guard.mounts
    mounts += _sockets((*trees, workspace, *added))
    mounts += _system(profile)
    mounts += _shown(mounts, own.needed, network=profile.network == "on")
    return Plan(
        tuple(mounts),
        tuple(place for guard in guards for place in guard.absent),
        tuple(place for guard in guards for place in guard.watched),
        tuple(mount.place for guard in guards for mount in guard.mounts if os.path.isdir(mount.place)),
    )


def refuse(workspace: str, own: Own) -> None:
    """Raises where commands cannot be confined to this directory."""
    if workspace == "/" or any(lies_in(workspace, place) for place in _MACHINE):
        raise Invalid(
            f"Commands cannot be confined to {workspace}: that is the machine itself.",
            next_step="Work in a directory of its own.",
        )
    if not own.home:
        return
    home = os.path.realpath(own.home)
    # What an assistant's profile keeps may be worked in; nothing else of the home is anybody's workspace.
    if lies_in(workspace, home) and not (lies_in(workspace, f"{home}/profiles") and workspace != f"{home}/profiles"):
        raise Invalid(
            f"Commands cannot work in {workspace}: Quintet keeps its own things there.",
            next_step="Work in another directory, or name another home with --home.",
        )


def _writable_trees(workspace: str, own: Own) -> list[str]:
    trees = [workspace, *git_trees(workspace)]
    for given in own.writable:
        place = os.path.realpath(os.path.expanduser(given))
        if place == "/" or any(lies_in(place, kept) for kept in (*_MACHINE, os.path.realpath(own.home or "/dev"))):
            raise Invalid(
                f"[sandbox] writable: {given} cannot be given to commands.", next_step="Take it out of config.toml."
            )
        if os.path.isdir(place):
            trees.append(place)
    return trees


def missing_trees(own: Own) -> list[str]:
    """Of the directories the person gave those that are not there. Making them is the person's business."""
    return [given for given in own.writable if not os.path.isdir(os.path.expanduser(given))]


def _hiding(places: Iterable[str]) -> Iterator[Mount]:
    for place in sorted(places):
        if os.path.isdir(place):
            yield Mount(place, Kind.HIDE)
        elif os.path.lexists(place):
            yield Mount(place, Kind.BLANK)


def _sockets(shown: Sequence[str]) -> Iterator[Mount]:
    """In what is `shown` one by one: a command may have to make its own beside them."""
    sockets = listening_sockets()
    for place in socket_directories(sockets):
        if not any(lies_in(place, tree) or lies_in(tree, place) for tree in shown):
            yield Mount(place, Kind.HIDE)
    for path in sockets:
        yield Mount(path, Kind.BLANK)


def _guards(
    workspace: str, added: Sequence[str], trees: Sequence[str], hidden: set[str], own: Own
) -> Iterator[Guarded]:
    for tree in dict.fromkeys(trees):
        inner = [place for place in hidden if lies_in(place, tree) and place != tree]
        if tree in git_trees(workspace):
            yield guarded_git(workspace, tree)
        elif tree == workspace or tree in added:
            yield guarded(tree, inner, home=_is_home(tree, own))
        else:
            yield guarded_extra(tree, inner, home=_is_home(tree, own))


def _is_home(tree: str, own: Own) -> bool:
    """Ours, or its owner's."""
    ours = own.environment.get("HOME", "")
    return tree == home_of_owner(tree) or (bool(ours) and tree == os.path.realpath(ours))


def _system(profile: Profile) -> Iterator[Mount]:
    if profile.scratch:
        yield Mount(TEMPORARY, Kind.WRITE, profile.scratch)
    else:
        yield Mount(TEMPORARY, Kind.PRIVATE)
    for place in _PRIVATE:
        if os.path.isdir(place) or place == "/dev/shm":  # noqa: S108
            yield Mount(place if place == "/dev/shm" else os.path.realpath(place), Kind.PRIVATE)  # noqa: S108


def _shown(mounts: Sequence[Mount], needed: Sequence[str], *, network: bool) -> Iterator[Mount]:
    """What a command cannot do without, where one of the mounts would take it away."""
    names = os.path.realpath("/etc/resolv.conf")
    wanted = [*needed, names] if network and os.path.isfile(names) else list(needed)
    for place in wanted:
        if any(mount.covers and lies_in(place, mount.place) for mount in mounts):
            yield Mount(place, Kind.SHOW)
    if os.path.exists(_SYSTEM):
        yield Mount(_SYSTEM, Kind.SHOW, os.path.realpath(_SYSTEM))
