"""The names in a workspace that only the person may write: what git, shells, editors and agents run by themselves.

One list for file tools and for the sandbox. Knows names and what stands on disk, and nothing of who asks or why.
"""

from __future__ import annotations

import os
import unicodedata
from functools import cache

from quintet.workspace.nested import hooks_directories, nested_gits
from quintet.workspace.project_root import admin_directory

# `commondir` makes a repository take its settings from elsewhere; what lies in `worktrees` does so for other worktrees.
_GIT = ("hooks", "config", "config.worktree", "commondir", "worktrees", "info/attributes")
# What git goes on with when somebody says so; the lists in them may name commands to run. Protected while there.
UNDER_WAY = ("rebase-merge", "rebase-apply", "sequencer")
NESTED = 20  # repositories in a workspace that commands may work with; of more, nothing in `.git` is written
_AT_THE_ROOT = (
    # Quintet's and other agents' project configuration: what they may do and what they start.
    *(".quintet", ".mcp.json", ".claude", ".codex", ".cursor", ".kimi", ".opencode", "opencode.json"),
    *(".kward", "openclaw.json"),
    # What a shell reads by itself.
    *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".envrc"),
    *(".zshrc", ".zprofile", ".zshenv", ".zlogin", ".zlogout"),
    # What git reads for every repository of a person: it names programs that git runs.
    ".gitconfig",
    # What editors run when a project is opened.
    *(".vscode", ".idea", ".zed", ".devcontainer", ".devcontainer.json", ".nvim.lua", ".nvimrc", ".exrc"),
)
# Read only in somebody's home.
_IN_A_HOME = (".gitconfig", ".bash_login", ".bash_logout", ".zlogin", ".zlogout")
# Of somebody's home, where the root is one: what programs read, or run, for a person wherever they work.
_OF_A_HOME = (
    ".config/git",
    *(".config/fish", ".config/zsh", ".config/nushell", ".config/powershell", ".oh-my-zsh", ".bash_aliases"),
    *(".cshrc", ".tcshrc", ".login", ".kshrc", ".inputrc", ".config/direnv", ".tmux.conf", ".config/tmux", ".screenrc"),
    *(".config/autostart", ".config/systemd", ".config/environment.d", ".pam_environment"),
    *(".xprofile", ".xsession", ".xsessionrc", ".xinitrc"),
    *(".vim", ".vimrc", ".gvimrc", ".config/nvim", ".emacs", ".emacs.d", ".config/emacs"),
    # Who may come in, and what runs then; programs found by name; what every Python imports.
    *(".ssh", ".local/bin", "bin", ".cargo/bin", ".cargo/config.toml", ".local/lib"),
)
# No workspace at all, nor beside one: the machine's own, whole trees of everybody's, what commands have for themselves.
_OF_THE_MACHINE = (
    *("/proc", "/sys", "/dev", "/etc", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/boot", "/run", "/var/run"),
    *("/System", "/Library", "/private/etc"),
)
_WHOLE = ("/", "/tmp", "/var/tmp", "/private/tmp", "/home", "/Users", "/var", "/opt", "/mnt", "/media", "/srv")  # noqa: S108
_MODULES_DEPTH = 6  # directories under .git/modules: a submodule may be called third_party/a/b
_MODULES_LIMIT = 500

# Some file systems leave these out of names, so that a name holding one is the same name without it.
_IGNORED = dict.fromkeys([*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF])


def protected_places(root: str, *, home: bool | None = None) -> tuple[str, ...]:
    """Absolute paths under the root that are not to be written, there or not. Where the directory above a name is
    absent, that directory: whoever could make it could make the name. Where a name is a link that stays in the
    workspace, what it leads to as well. Other repositories inside are named by `nested_places`. `home`: the root is
    somebody's; unless said it is looked up.

    A directory that holds one of these and could be moved aside would take the protection with it: a wall that guards
    places also has to keep every directory between them and the root where it is.
    """
    root = os.path.realpath(root)
    places: dict[str, None] = {}
    in_home = [_first_absent(root, name) for name in _OF_A_HOME] if (_is_home(root) if home is None else home) else []
    for place in (*_git_places(root), *(os.path.join(root, name) for name in _AT_THE_ROOT), *in_home):
        places[place] = None
        target = os.path.realpath(place)
        if target != place and target.startswith(root.rstrip(os.sep) + os.sep):
            places[target] = None
    return tuple(places)


def nested_places(root: str) -> tuple[str, ...]:
    """Of the repositories inside the workspace, as far as they are found, what `protected_places` names of its own."""
    gits = nested_gits(os.path.realpath(root))
    places: list[str] = []
    for git in gits:
        # A file says where the repository is, and must go on saying so.
        places += [git] if len(gits) > NESTED or not os.path.isdir(git) else repository_places(git)
    return tuple(places)


def repository_places(admin: str) -> list[str]:
    """What is protected of one repository, by its git directory."""
    there = [os.path.join(admin, name) for name in UNDER_WAY]
    return [_first_absent(admin, name) for name in _GIT] + [place for place in there if os.path.lexists(place)]


def free_while_absent(root: str, *, home: bool) -> frozenset[str]:
    """Of the protected places those that nothing should stand in for while they are absent: a name that `*` matches
    would get in every command's way, and some names matter only where the root is somebody's home."""
    plain = [name for name in (*_AT_THE_ROOT, *_OF_A_HOME) if not name.startswith(".")]
    return frozenset(os.path.join(root, name) for name in (*plain, *(() if home else _IN_A_HOME)))


def is_protected(root: str, path: str) -> bool:
    """Whether a path (absolute, or from the root) is a protected place, lies in one, or lies in any `.git`. Names are
    compared as the most forgiving file system would: without case, composed, without what it leaves out."""
    root = os.path.realpath(root)
    inner = _folded(os.path.relpath(os.path.join(root, path), root))
    if ".git" in inner:
        return True
    places = [os.path.relpath(place, root) for place in protected_places(root, home=False)]
    if _is_home(root):  # by its whole name: who makes a file beside it makes nothing of it
        places += [name for given in _OF_A_HOME for name in (given, _target(root, given))]
    return any(inner[: len(place)] == place for place in map(_folded, places))


def may_be_added(place: str) -> bool:
    """Whether a directory (absolute, without links) may be worked in beside a workspace. Not the machine's own; no home
    and nothing that holds one; nothing that decides what runs, nor what holds such of somebody's home."""
    if place in _WHOLE or any(_within(place, kept) for kept in _OF_THE_MACHINE):
        return False
    for home in {os.path.realpath(os.path.expanduser("~")), home_of_owner(place)} - {""}:
        decides = protected_places(home, home=True)
        if _within(home, place) or any(_within(inner, place) or _within(place, inner) for inner in decides):
            return False
    parts = place.split(os.sep)
    above = [os.sep.join(parts[:count]) or os.sep for count in range(1, len(parts))]
    return not any(is_protected(root, place) for root in above)


def _within(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip(os.sep) + os.sep)


def _target(root: str, name: str) -> str:
    return os.path.relpath(os.path.realpath(os.path.join(root, name)), root)


def _is_home(root: str) -> bool:
    """Ours, or its owner's."""
    return root in (os.path.realpath(os.path.expanduser("~")), home_of_owner(root))


def home_of_owner(directory: str) -> str:
    """The home of whom this directory belongs to; nothing where that is not known."""
    try:
        return os.path.realpath(_home_of(os.stat(directory).st_uid))
    except (OSError, KeyError):
        return ""


@cache
def _home_of(user: int) -> str:
    import pwd

    return pwd.getpwuid(user).pw_dir


def _git_places(root: str) -> list[str]:
    git = os.path.join(root, ".git")
    admin = admin_directory(git)
    if not admin:
        return [git, *_bare_places(root)]
    places = [] if admin == git else [git]  # a link or a file that only names the directory elsewhere
    if not admin.startswith(root.rstrip(os.sep) + os.sep):
        return places
    modules = _modules(admin)
    if modules is None:
        modules = []
        places.append(os.path.join(admin, "modules"))
    for repository in (admin, *modules):
        places += repository_places(repository)
    return [*places, *hooks_directories(root, admin)]


def _bare_places(root: str) -> list[str]:
    """A directory that is a repository itself, without a working tree: git obeys the files in it."""
    if not all(os.path.lexists(os.path.join(root, name)) for name in ("HEAD", "objects", "refs")):
        return []
    return [_first_absent(root, name) for name in _GIT]


def _modules(admin: str) -> list[str] | None:
    """The repositories of submodules: every directory under `modules` that has a HEAD. None: too many to name."""
    found: list[str] = []
    level = [os.path.join(admin, "modules")]
    for _ in range(_MODULES_DEPTH):
        below = [entry for directory in level for entry in _directories(directory)]
        repositories = [path for path in below if os.path.lexists(os.path.join(path, "HEAD"))]
        found += repositories
        # A submodule's own submodules are in its `modules`; a directory without HEAD is a part of a name.
        level = [os.path.join(path, "modules") if path in repositories else path for path in below]
        if len(found) > _MODULES_LIMIT or len(below) > _MODULES_LIMIT:
            return None
        if not level:
            return found
    return None if any(_directories(directory) for directory in level) else found


def _directories(path: str) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return sorted(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []


def _first_absent(directory: str, name: str) -> str:
    """The place itself, or the first directory on the way to it that is not one."""
    path = directory
    parts = name.split("/")
    for part in parts[:-1]:
        path = os.path.join(path, part)
        if not os.path.isdir(path):
            return path
    return os.path.join(path, parts[-1])


def fold(path: str) -> str:
    """The path as the most forgiving file system would compare it. Only for refusing: two names may fold to one."""
    return os.sep.join(_fold(name) for name in path.split(os.sep))


def _folded(relative: str) -> tuple[str, ...]:
    return tuple(fold(relative).split(os.sep))


def _fold(name: str) -> str:
    composed = unicodedata.normalize("NFC", name.translate(_IGNORED))
    folded = unicodedata.normalize("NFC", composed.casefold())
    # Dots and spaces at the end, and a stream behind a colon, do not count on file systems that came from Windows.
    return folded.split(":", 1)[0].rstrip(" .") or folded
