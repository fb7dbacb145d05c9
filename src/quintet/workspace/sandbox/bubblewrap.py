"""Mounts as bubblewrap's arguments. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from quintet.workspace.sandbox.limits import memory_here
from quintet.workspace.sandbox.mounts import Kind, Mount, in_order

# Of memory, at most, in a directory of the command's own; of little memory less, so that all together stay bounded.
PRIVATE_BYTES = {"/run": 64 << 20, "/dev/shm": 512 << 20}  # noqa: S108
PRIVATE_OTHERS = 256 << 20
PRIVATE_SHARE = 16  # none takes more than one part in so many of the machine's memory


class Tool(msgspec.Struct, frozen=True):
    """The program, and what its version can do."""

    path: str
    version: tuple[int, ...] = (0,)

    @property
    def limits_size(self) -> bool:
        return self.version >= (0, 7)

    @property
    def ends_namespaces(self) -> bool:
        """Whether it can forbid further user namespaces inside."""
        return self.version >= (0, 8)


def version_in(text: str) -> tuple[int, ...]:
    """`bubblewrap 0.8.0` as numbers."""
    found = re.search(r"(\d+(?:\.\d+)+)", text)
    return tuple(int(number) for number in found[1].split(".")) if found else (0,)


def arguments(tool: Tool, mounts: Iterable[Mount], cwd: str, *, network: bool, blank: str) -> tuple[str, ...]:
    """Everything between the program's name and the command. `blank` is an empty file to lay over hidden ones."""
    words = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    if not network:
        words.append("--unshare-net")
    if tool.ends_namespaces:
        words.append("--disable-userns")
    # Root outside would keep its capabilities inside; nobody needs any.
    words += ["--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    words += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    hidden = []
    for mount in in_order(mounts):
        words += _one(tool, mount, blank)
        if mount.kind is Kind.HIDE:
            hidden.append(mount.place)
    # Last, because places shown inside a hidden directory need a name in it. /dev has no size that could be set; its
    # devices, and what is mounted in it, are written as before.
    for place in (*hidden, "/dev"):
        words += ["--remount-ro", place]
    return (*words, "--chdir", cwd)


def private_bytes(place: str) -> int:
    return min(PRIVATE_BYTES.get(place, PRIVATE_OTHERS), memory_here() // PRIVATE_SHARE)


def _one(tool: Tool, mount: Mount, blank: str) -> list[str]:
    source = mount.source or mount.place
    match mount.kind:
        case Kind.HIDE:
            return ["--tmpfs", mount.place]
        case Kind.PRIVATE:
            size = ["--size", str(private_bytes(mount.place))] if tool.limits_size else []
            return [*size, "--tmpfs", mount.place]
        case Kind.BLANK:
            return ["--ro-bind", blank, mount.place]
        case Kind.WRITE:
            return ["--bind", source, mount.place]
        case Kind.READ | Kind.SHOW:
            return ["--ro-bind", source, mount.place]
