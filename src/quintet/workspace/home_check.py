"""The home directory's part of a check-up: whose it is, who may look in, whether it can be written, where it lies, how
much room is left. Blocking; what it writes to try it out is gone when it returns.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import time

from quintet.domain.checkup import Row, fail, ok, warn
from quintet.domain.home import CONFIG, holds_words, strangers_in

_NETWORK = """
nfs nfs4 cifs smb2 smb3 smbfs 9p afs ceph glusterfs fuse.glusterfs fuse.sshfs fuse.s3fs fuse.rclone lustre beegfs
ocfs2 gfs2 davfs fuse.davfs2 vboxsf virtiofs prl_fs fuse.vmhgfs-fuse
"""
NETWORK = frozenset(_NETWORK.split())
MEMORY = frozenset(("tmpfs", "ramfs"))
NOTHING_FITS = 3 * 1024 * 1024  # not even the journal's reserve and a little more
LITTLE = 256 * 1024 * 1024
SKEW_S = 5.0
PRIVATE = (
    "quintet.db",
    "quintet.db-wal",
    "quintet.db-shm",
    "quintet.log",
    "server.json",
    "credentials",
    "run",
    "blobs",
)
_ELSEWHERE = "name another home with --home or QUINTET_HOME"
_BY_ITSELF = "quintet doctor --fix"
_MENDS = {
    errno.ENOSPC: "Free some space; `quintet gc` lets go of what it can",
    errno.EDQUOT: "Free some space, or have your quota raised",
    errno.EROFS: "Mount it for writing",
}


def look_at_home(path: str, *, mounts: str = "/proc/self/mountinfo") -> list[Row]:
    """The rows about this directory."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        if os.path.islink(path):
            return [fail("home", f"{path} is a link that leads nowhere", _ELSEWHERE)]
        return [_missing(path), *_ground(_nearest(path), mounts)]
    except OSError as error:
        return [fail("home", f"{path} cannot be looked at: {error.strerror}", _ELSEWHERE)]
    if not stat.S_ISDIR(found.st_mode):
        return [fail("home", f"{path} is not a directory", _ELSEWHERE)]
    if strangers := _not_for_us(path):
        words = f"{path} is no home of Quintet's: it holds {holds_words(strangers)}"
        return [fail("home", words, f"{_ELSEWHERE}: an empty directory, or one to be made")]
    return [_whose(path, found), *_trial(path), *_ground(path, mounts)]


def _not_for_us(path: str) -> list[str]:
    """What shows that this directory is there for something else. With a configuration in it, it is meant to be ours;
    whether that can be read has a row of its own."""
    names = _listed(path)
    return [] if CONFIG in names else strangers_in(names)


def open_to_others(path: str) -> list[str]:
    """Of the home and the private things in it, those that others may read or write; the home itself as `.`."""
    names = [os.path.join("credentials", name) for name in _listed(os.path.join(path, "credentials"))]
    wrong = []
    for name in (".", *PRIVATE, *names):
        try:
            found = os.lstat(os.path.join(path, name))
        except OSError:
            continue
        if found.st_uid == os.getuid() and not stat.S_ISLNK(found.st_mode) and found.st_mode & 0o077:
            wrong.append(name)
    return wrong


def close_to_others(path: str) -> list[str]:
    """Take away every right of others; the names it was done for."""
    wrong = open_to_others(path)
    for name in wrong:
        place = os.path.join(path, name)
        os.chmod(place, os.lstat(place).st_mode & 0o700)
    return wrong


def _missing(path: str) -> Row:
    above = _nearest(path)
    if not os.path.isdir(above):
        return fail("home", f"{path} cannot be made: {above} is not a directory", _ELSEWHERE)
    if not os.access(above, os.W_OK | os.X_OK):
        return fail("home", f"{path} cannot be made: {above} is not writable", _ELSEWHERE)
    return ok("home", f"{path} is not there yet; the first command that needs it makes it")


def _nearest(path: str) -> str:
    """The path itself, or what is there above it."""
    while not os.path.exists(path) and path != os.path.dirname(path):
        path = os.path.dirname(path)
    return path


def _whose(path: str, found: os.stat_result) -> Row:
    if found.st_uid != os.getuid():
        theirs = f"{_ELSEWHERE}; only if it is yours: sudo chown -R \"$(id -u)\" '{path}'"
        return fail("home", f"{path} belongs to another user", theirs)
    if wrong := open_to_others(path):
        names = ", ".join("the directory itself" if name == "." else name for name in wrong[:5])
        return fail("home", f"{path}: others may look into {names}", _BY_ITSELF)
    return ok("home", f"{path}, yours alone")


def _trial(path: str) -> list[Row]:
    """A real file, written to disk and taken away: rights alone do not tell."""
    trial = os.path.join(path, f".doctor-{os.urandom(6).hex()}")
    try:
        handle = os.open(trial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.write(handle, b"quintet doctor\n")
            os.fsync(handle)
            dated = os.fstat(handle).st_mtime
        finally:
            os.close(handle)
            os.unlink(trial)
    except OSError as error:
        mend = _MENDS.get(error.errno or 0, f"chmod u+rwx '{path}'")
        return [fail("writing", f"{path} cannot be written: {error.strerror}", f"{mend}; or {_ELSEWHERE}")]
    skew = abs(time.time() - dated)
    if skew > SKEW_S:
        words = f"files in the home are dated {skew:.0f} s away from this machine's clock"
        return [warn("writing", words, "Set both clocks: `sudo timedatectl set-ntp true`, here and on the file server")]
    return [ok("writing", "a trial file was written and removed")]


def _ground(path: str, mounts: str) -> list[Row]:
    kind = file_system(path, mounts)
    rows = []
    if kind in NETWORK:
        words = f"the home lies on a network file system ({kind}), whose locks may not hold"
        rows.append(warn("file system", words, f"{_ELSEWHERE}, on a disk of this machine"))
    elif kind in MEMORY:
        words = f"the home lies in memory ({kind}) and is gone after a restart"
        rows.append(warn("file system", words, f"{_ELSEWHERE}, on a disk"))
    else:
        rows.append(ok("file system", kind or "not known"))
    return [*rows, _room(path)]


def _room(path: str) -> Row:
    found = os.statvfs(path)
    free = found.f_bavail * found.f_frsize
    words = f"{_size(free)} free"
    if found.f_files and not found.f_favail:
        return fail("disk", "no more files can be made: the file system has no inodes left", "quintet gc")
    if free < NOTHING_FITS:
        return fail("disk", f"{words}: nothing can be written", "Free some space; `quintet gc` lets go of what it can")
    if free < LITTLE:
        return warn("disk", f"{words}: that is little", "quintet gc")
    return ok("disk", words)


def file_system(path: str, mounts: str = "/proc/self/mountinfo") -> str:
    """Its kind, by the innermost mount around it; nothing where the system does not tell."""
    place, kind, longest = os.path.realpath(path), "", -1
    try:
        with open(mounts, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except OSError:
        return ""
    for line in lines:
        before, _, after = line.partition(" - ")
        words = before.split(" ")
        if len(words) < 5 or not after:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda escaped: chr(int(escaped[1], 8)), words[4])  # a space is written \040
        inside = place == point or place.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= longest:  # of two at one place the later lies on top
            kind, longest = after.split(" ")[0], len(point)
    return kind


def _listed(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []


def _size(size: float) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
