"""Where a project begins: found by reading `.git`, never by running git, so a hostile repository can run nothing.

Two answers: the *worktree root* is where files may be touched, the *project root* (the main worktree) is what a project
is known by. Without git both are the directory itself.
"""

from __future__ import annotations

import os

_POINTER_LIMIT = 4_096


def worktree_root(directory: str) -> str:
    """The git top level the directory lies in, symlinks resolved; else the directory."""
    start = os.path.realpath(directory)
    place = start
    while True:
        if _is_git(os.path.join(place, ".git")):
            return place
        parent = os.path.dirname(place)
        if parent == place:
            return start
        place = parent


def project_root(directory: str) -> str:
    """The top level of the repository's main worktree; else the directory."""
    top = worktree_root(directory)
    admin = _pointer(os.path.join(top, ".git"))
    if not admin:
        return top
    # A linked worktree's admin directory is <main>/.git/worktrees/<name>, and points back at it. A submodule's is
    # <main>/.git/modules/<name>: that is a project of its own.
    common = os.path.dirname(os.path.dirname(admin))
    if os.path.basename(os.path.dirname(admin)) != "worktrees" or os.path.basename(common) != ".git":
        return top
    back = _first_line(os.path.join(admin, "gitdir"))
    if not back or os.path.realpath(os.path.join(admin, back)) != os.path.join(top, ".git"):
        return top  # the main repository does not know this worktree: do not let a file claim its project
    return os.path.realpath(os.path.dirname(common))


def admin_directory(git: str) -> str:
    """The directory a `.git` stands for: itself, what it links to, or what it names. Nothing when there is none."""
    return os.path.realpath(git) if os.path.isdir(git) else _pointer(git)


def _is_git(path: str) -> bool:
    return os.path.isfile(os.path.join(path, "HEAD")) or bool(_pointer(path))


def _pointer(path: str) -> str:
    """The admin directory a `.git` file names, or nothing."""
    line = _first_line(path)
    if not line.startswith("gitdir:"):
        return ""
    admin = os.path.realpath(os.path.join(os.path.dirname(path), line[len("gitdir:") :].strip()))
    return admin if os.path.isdir(admin) else ""


def _first_line(path: str) -> str:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            text = os.read(handle, _POINTER_LIMIT).decode("utf-8", "surrogateescape")
        finally:
            os.close(handle)
    except (OSError, ValueError):
        return ""
    return text.split("\n", 1)[0].strip() if "\0" not in text else ""
