"""The destructive class: commands whose harm is hard to undo. A hint that makes them asked about every time, not a
wall: what it does not know is still held by approval and sandbox. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from quintet.domain.ports import UNKNOWN_WORD

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
            name = arg.partition("=")[0]
            if len(name) > 3 and any(option.startswith(name) for option in long):
                return True  # also abbreviated
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


def _operands(args: Argv) -> list[str]:
    return [arg for arg in args if not arg.startswith("-")]


def _spreads(word: str) -> bool:
    """Whether the word may stand for any number of files."""
    return word == UNKNOWN_WORD or any(c in word for c in "*?[")


def _rm(args: Argv) -> bool:
    """One file by its name is an ordinary thing to remove; a tree, a pattern or several are not."""
    if _flag(args, "rR", "--recursive", "--no-preserve-root"):
        return True
    names = _operands(args)
    return len(names) > 1 or any(_spreads(name) for name in names)


_LOOKS_LIKE_A_FILE = re.compile(r"(^|/)\.|/$|\.[A-Za-z][A-Za-z0-9]*$")


def _checkout(args: Argv) -> bool:
    """Of a file it throws changes away; of a branch it does not."""
    if _flag(args, "fBp", "--force", "--patch", "--pathspec-from-file") or "--" in args or "." in args:
        return True
    names = _operands(args)
    if _flag(args, "bt", "--orphan", "--track"):
        return False
    return len(names) > 1 or any(_spreads(name) or _LOOKS_LIKE_A_FILE.search(name) for name in names)


def _aws(args: Argv) -> bool:
    if any(arg.startswith(("delete-", "terminate-", "purge-")) for arg in args):
        return True
    recursive = "rm" in args and _flag(args, "", "--recursive")
    return recursive or ("rb" in args and _flag(args, "", "--force")) or _flag(args, "", "--delete")


def _containers(args: Argv) -> bool:
    if any(word in args for word in ("prune", "rmi", "rm", "kill")):
        return True
    return "down" in args and _flag(args[args.index("down") :], "v", "--volumes", "--rmi")


def _begins(*beginnings: str) -> Callable[[Argv], bool]:
    return lambda args: any(arg.startswith(beginnings) for arg in args)


def _cloud(args: Argv) -> bool:
    return any(word in args for word in ("delete", "purge", "destroy")) or ("rm" in args and _flag(args, "rR"))


def _prisma(args: Argv) -> bool:
    return ("migrate" in args and "reset" in args) or _flag(args, "", "--force-reset", "--accept-data-loss")


_SQL = re.compile(r"\b(drop|truncate)\s+\w|\bdelete\s+from\s+[\w.\"`]+\s*(;|$)", re.IGNORECASE)


def _sql(args: Argv) -> bool:
    return any(_SQL.search(arg) for arg in args)


def _manage(args: Argv) -> bool:
    called = any(arg.rsplit("/", 1)[-1] in ("manage.py", "artisan") for arg in args)
    return called and any(word in args for word in ("flush", "reset_db", "migrate:fresh", "migrate:reset", "db:wipe"))


_GIT: dict[str, Callable[[Argv], bool]] = {
    "push": _push,
    "reset": _has("--hard", "--merge", "--keep"),
    "clean": lambda args: _flag(args, "f", "--force"),
    "checkout": _checkout,
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
    | {"poweroff", "killall", "pkill", "userdel", "deluser", "truncate", "dropdb", "dropuser", "iptables", "nft"}
)
_RULES: dict[str, Callable[[Argv], bool]] = {
    "rm": _rm,
    "unlink": lambda args: any(_spreads(arg) for arg in args),
    "git": _git,
    "chmod": lambda args: _flag(args, "R", "--recursive"),
    "chown": lambda args: _flag(args, "R", "--recursive"),
    "chgrp": lambda args: _flag(args, "R", "--recursive"),
    "find": _has("-delete", "rm", "shred"),
    "rsync": lambda args: any(arg.startswith(("--delete", "--remove-source")) for arg in args),
    "kill": _has("-1", "1"),
    "init": _has("0", "6"),
    "systemctl": _has("poweroff", "reboot", "halt", "disable", "mask"),
    **dict.fromkeys(("docker", "podman", "docker-compose", "podman-compose", "nerdctl"), _containers),
    "kubectl": _has("delete", "drain", "replace"),
    "helm": _has("uninstall", "delete"),
    "terraform": _has("destroy", "apply"),
    "tofu": _has("destroy", "apply"),
    "pulumi": _has("destroy", "up"),
    "aws": _aws,
    **dict.fromkeys(("gcloud", "gsutil", "bq", "az", "doctl", "heroku", "fly", "flyctl"), _cloud),
    **dict.fromkeys(
        ("rake", "rails"), _begins("db:drop", "db:reset", "db:purge", "db:migrate:reset", "db:schema:load")
    ),
    "prisma": _prisma,
    "redis-cli": lambda args: any(arg.lower() in ("flushall", "flushdb") for arg in args),
    **dict.fromkeys(("psql", "mysql", "mariadb", "sqlite3", "sqlcmd", "duckdb"), _sql),
    **dict.fromkeys(("python", "python3", "php", "manage.py", "artisan"), _manage),
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
    re.compile(r"\bdropDatabase\s*\(|\.drop\s*\(\s*\)|\bdeleteMany\s*\(\s*\{\s*\}"),
    re.compile(r"\b(shutil\.rmtree|fs\.rmSync|rimraf)\b"),
)
