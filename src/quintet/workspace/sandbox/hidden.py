"""What no command sees, in any mode: Quintet's own places, the person's credentials, and sockets somebody listens on.

Gives paths as they are on disk, resolved; knows nothing of how they are hidden.
"""

from __future__ import annotations

import contextlib
import glob
import itertools
import os
import pwd
import stat
from collections.abc import Iterable, Iterator, Mapping

SOCKETS = "/proc/net/unix"
_ENTRIES = 64  # a directory with more is not there for sockets
# Where services of the machine listen, outside of /run, for whoever may do everything.
SERVICES = (
    *("/var/lib/docker", "/var/lib/containerd", "/var/lib/lxd", "/var/lib/incus", "/var/snap/lxd", "/var/lib/libvirt"),
    *("/var/lib/mysql", "/var/spool/postfix", "/mnt/wslg"),
)

# In the user's directory. A name may be a directory or a file, and may be a pattern.
_CREDENTIALS = (
    *(
        ".ssh",
        ".gnupg",
        ".pki",
        ".password-store",
        ".netrc",
        "_netrc",
        ".authinfo",
        ".authinfo.gpg",
        ".git-credentials",
    ),
    *(
        ".aws",
        ".azure",
        ".kube",
        ".docker",
        ".oci",
        ".boto",
        ".s3cfg",
        ".databrickscfg",
        ".terraform.d",
        ".terraformrc",
    ),
    *(".pypirc", ".npmrc", ".yarnrc.yml", ".gem/credentials", ".cargo/credentials*", ".m2/settings*.xml"),
    *(".gradle/gradle.properties", ".nuget/NuGet", ".composer/auth.json", ".pgpass", ".my.cnf", ".vault-token"),
    *(".bash_history", ".zsh_history", ".python_history", ".psql_history", ".mysql_history", ".lesshst"),
    # Machines and containers of the person's, whose sockets come and go.
    *(".colima", ".lima", ".orbstack", ".rd", ".minikube", ".vagrant.d"),
    *(".mozilla", ".thunderbird", ".electrum", ".bitcoin", ".ethereum", ".Xauthority", ".ICEauthority"),
    # Other agents, whose keys and bypass flags are as good as ours.
    *(
        ".codex",
        ".claude",
        ".claude.json",
        ".claude.json.backup",
        ".kimi",
        ".kward",
        ".openclaw",
        ".clawdbot",
        ".gemini",
    ),
    *(".cursor", ".continue", ".aider*", ".goose", ".copilot", ".qwen", ".kaiak", ".cursorclaw", ".amp", ".factory"),
)
_CONFIGURATION = (  # in ~/.config
    *(
        "gcloud",
        "gh",
        "hub",
        "glab-cli",
        "git/credentials",
        "op",
        "sops",
        "rclone",
        "doctl",
        "fly",
        "netlify",
        "heroku",
    ),
    *("opencode", "codex", "claude", "kward", "openclaw", "goose", "github-copilot", "amp", "quintet", "containers"),
    *("google-chrome*", "chromium", "BraveSoftware", "microsoft-edge*", "vivaldi*", "opera*", "Signal"),
)
_DATA = ("keyrings", "kwalletd", "opencode", "goose", "kward", "openclaw", "amp", "quintet", "python_keyring", "claude")
# Variables that move one of these somewhere else.
_NAMED_BY = (
    *("GNUPGHOME", "DOCKER_CONFIG", "KUBECONFIG", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE", "CLOUDSDK_CONFIG"),
    *("AZURE_CONFIG_DIR", "GH_CONFIG_DIR", "NETRC", "NPM_CONFIG_USERCONFIG", "PASSWORD_STORE_DIR"),
    *("CODEX_HOME", "CLAUDE_CONFIG_DIR", "XAUTHORITY", "GOOGLE_APPLICATION_CREDENTIALS", "XDG_RUNTIME_DIR"),
    *(
        "QUINTET_HOME",
        "OPENCLAW_HOME",
        "KIMI_SHARE_DIR",
        "KWARD_CONFIG_PATH",
        "KWARD_AUTH_PATH",
        "KWARD_GITHUB_AUTH_PATH",
    ),
)


def credential_places(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Where the user's secrets may lie, there or not; not resolved, for they may be links. Patterns only give what is
    there."""
    places: dict[str, None] = {}
    homes = list(_user_homes(environment))
    for home in homes:
        for base, names in (("", _CREDENTIALS), (".config", _CONFIGURATION), (".local/share", _DATA)):
            places |= dict.fromkeys(_in(os.path.join(home, base), names))
    for name, names in (("XDG_CONFIG_HOME", _CONFIGURATION), ("XDG_DATA_HOME", _DATA)):
        if os.path.isabs(environment.get(name, "")):
            places |= dict.fromkeys(_in(environment[name], names))
    cargo = environment.get("CARGO_HOME", "")
    if os.path.isabs(cargo):
        places |= dict.fromkeys(_in(cargo, ("credentials*",)))
    if os.path.isabs(kward := environment.get("KWARD_CONFIG_PATH", "")):
        # Beside the settings lies what is told to the model in every conversation: nobody but the person changes it.
        places[os.path.join(os.path.dirname(kward), "memory")] = None
    for name in _NAMED_BY:
        for value in environment.get(name, "").split(os.pathsep):
            if os.path.isabs(value) and os.path.realpath(value) not in ("/", *homes):
                places[value.rstrip("/")] = None
    return tuple(places)


def _user_homes(environment: Mapping[str, str]) -> Iterator[str]:
    """By the variable and by the password file: a different HOME does not uncover the real one."""
    seen = {environment.get("HOME", "")}
    with contextlib.suppress(KeyError):  # a uid without an entry, as in many containers
        seen.add(pwd.getpwuid(os.getuid()).pw_dir)
    for home in sorted(seen):
        if os.path.isabs(home) and os.path.realpath(home) != "/":
            yield os.path.realpath(home)


def _in(directory: str, names: Iterable[str]) -> Iterator[str]:
    for name in names:
        place = os.path.join(directory, name)
        if "*" in name:
            yield from sorted(glob.glob(os.path.join(glob.escape(directory), name)))
        else:
            yield place


def listening_sockets(table: str = SOCKETS) -> tuple[str, ...]:
    """Every Unix socket with a name in the file system, as the kernel lists them, that is there now."""
    try:
        with open(table, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().split("\n")[1:]
    except OSError:
        return ()
    found: dict[str, None] = {}
    for line in lines:
        fields = line.split(None, 7)
        if len(fields) == 8 and not fields[7].startswith("@"):
            for path in (fields[7],) if fields[7].startswith("/") else _relative(fields[6], fields[7]):
                real = os.path.realpath(path)
                if _is_socket(real):
                    found[real] = None
    return tuple(found)


def socket_directories(sockets: Iterable[str]) -> tuple[str, ...]:
    """Of the directories these lie in, those that are there for sockets alone: hidden as a whole, they also hide what
    is made there later. A cover on a socket itself falls when whoever listens there begins anew."""
    directories = dict.fromkeys(os.path.dirname(path) for path in sockets)
    there = (*SERVICES, *filter(_for_sockets, directories))
    return tuple(dict.fromkeys(os.path.realpath(place) for place in there if os.path.isdir(place)))


def _for_sockets(directory: str) -> bool:
    try:
        with os.scandir(directory) as entries:
            some = list(itertools.islice(entries, _ENTRIES + 1))
            return len(some) <= _ENTRIES and all(map(_beside_sockets, some))
    except OSError:
        return False


def _beside_sockets(entry: os.DirEntry[str]) -> bool:
    if entry.is_symlink() or entry.is_dir():
        return False
    return entry.name.endswith((".pid", ".lock")) or _is_socket(entry.path)


def _relative(inode: str, name: str) -> Iterator[str]:
    """A name that was bound relative to a directory: looked for where whoever holds the socket works."""
    link = f"socket:[{inode}]"
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            handles = os.scandir(f"/proc/{process}/fd")
        except OSError:
            continue
        with handles:
            if any(_reads(handle.path) == link for handle in handles):
                yield os.path.join(_reads(f"/proc/{process}/cwd") or "/", name)


def _reads(link: str) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False
