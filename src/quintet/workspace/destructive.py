"""The destructive class: commands whose harm is hard to undo. A hint that makes them asked about every time, not a
wall: what it does not know is still held by approval and sandbox. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

TEXT_LIMIT = 20_000
WORDS = 64  # looked at behind each word, so that a hostile line costs no time
Argv = Sequence[str]


def destructive_argv(argv: Argv) -> bool:
    """Whether this one command is of the class."""
    if not argv:
        return False
    name = argv[0].rsplit("/", 1)[-1].lower()
    if name in _ALWAYS or name.startswith("mkfs"):
        return True
    rule = _RULES.get(name)
    return rule is not None and rule(argv[1:])


def destructive_text(command: str) -> bool:
    """The same for a line nobody could parse: every word might begin a command, quotes and brackets are ignored."""
    text = command[:TEXT_LIMIT].replace("\\\n", " ").replace("\\", "")
    if destructive_words(text):
        return True
    for part in re.split(r"[;&|\n]+", text):
        words = [word for word in re.split(r"[\s'\"`(){}$<>,\[\]]+", part) if word]
        if any(destructive_argv(words[start : start + WORDS]) for start in range(len(words))):
            return True
    return False


def destructive_words(text: str) -> bool:
    """Whether the text holds words that are of the class whichever program is given them."""
    return any(pattern.search(text[:TEXT_LIMIT]) for pattern in _TEXTS)


def _flag(args: Argv, short: str, *long: str) -> bool:
    """Whether an option is among the arguments, also bundled (-xrf) or with a value (--force=yes)."""
    for arg in args:
        if arg.startswith("--"):
            if arg.partition("=")[0] in long:
                return True
        elif short and arg.startswith("-") and any(letter in arg[1:] for letter in short):
            return True
    return False


def _git(args: Argv) -> bool:
    rest = list(args)
    while rest and rest[0].startswith("-"):
        rest = rest[2:] if rest[0] in ("-C", "-c") else rest[1:]
    rule = _GIT.get(rest[0]) if rest else None
    return rule is not None and rule(rest[1:])


def _push(args: Argv) -> bool:
    forced = _flag(args, "fd", "--force", "--force-with-lease", "--delete", "--mirror", "--prune")
    return forced or any(arg.startswith(("+", ":")) for arg in args)


def _has(*wanted: str) -> Callable[[Argv], bool]:
    return lambda args: any(word in args for word in wanted)


_GIT: dict[str, Callable[[Argv], bool]] = {
    "push": _push,
    "reset": _has("--hard", "--merge", "--keep"),
    "clean": lambda args: _flag(args, "f", "--force"),
    "checkout": lambda args: _flag(args, "f", "--force") or "--" in args or "." in args,
    "switch": lambda args: _flag(args, "fC", "--force", "--discard-changes", "--force-create"),
    "restore": lambda args: "--staged" not in args or "--worktree" in args,
    "branch": lambda args: "-D" in args or (_flag(args, "d", "--delete") and _flag(args, "f", "--force")),
    "stash": _has("drop", "clear"),
    "reflog": _has("expire", "delete"),
    "worktree": lambda args: "remove" in args and _flag(args, "f", "--force"),
    "filter-branch": lambda args: True,
    "filter-repo": lambda args: True,
    "update-ref": lambda args: _flag(args, "d", "--delete"),
}

_ALWAYS = frozenset(
    {"dd", "shred", "wipefs", "fdisk", "sfdisk", "parted", "mkswap", "blkdiscard", "shutdown", "reboot", "halt"}
    | {"poweroff", "killall", "pkill", "userdel", "deluser", "truncate", "dropdb", "iptables", "nft"}
)
_RULES: dict[str, Callable[[Argv], bool]] = {
    "rm": lambda args: _flag(args, "rR", "--recursive", "--no-preserve-root"),
    "git": _git,
    "chmod": lambda args: _flag(args, "R", "--recursive"),
    "chown": lambda args: _flag(args, "R", "--recursive"),
    "chgrp": lambda args: _flag(args, "R", "--recursive"),
    "find": _has("-delete", "rm", "shred"),
    "rsync": lambda args: any(arg.startswith(("--delete", "--remove-source")) for arg in args),
    "kill": _has("-1", "1"),
    "init": _has("0", "6"),
    "systemctl": _has("poweroff", "reboot", "halt", "disable", "mask"),
    "docker": _has("prune", "rmi", "rm", "kill"),
    "podman": _has("prune", "rmi", "rm", "kill"),
    "kubectl": _has("delete", "drain", "replace"),
    "helm": _has("uninstall", "delete"),
    "terraform": _has("destroy", "apply"),
    "tofu": _has("destroy", "apply"),
    "npm": _has("publish", "unpublish"),
    "cargo": _has("publish", "yank"),
    "twine": _has("upload"),
    "gh": _has("delete"),
    "crontab": _has("-r"),
    "mv": _has("/dev/null"),
}
_TEXTS = (
    re.compile(r">\s*/dev/(sd|nvme|hd|vd|mmcblk|mapper)"),
    re.compile(
        r"\bdrop\s+(table|database|schema)\b|\btruncate\s+table\b|\bdelete\s+from\s+\w+\s*(;|$|[\"'])", re.IGNORECASE
    ),
    re.compile(r":\s*\(\s*\)\s*\{.{0,40}:\s*\|\s*:"),
    re.compile(r"\b(shutil\.rmtree|fs\.rmSync|rimraf)\b"),
)
