"""Why there is no sandbox here, and the exact line that mends it. Pure, apart from reading the facts it is given."""

from __future__ import annotations

import os

import msgspec

_INSTALL = {
    "debian": "sudo apt-get install bubblewrap",
    "ubuntu": "sudo apt-get install bubblewrap",
    "fedora": "sudo dnf install bubblewrap",
    "rhel": "sudo dnf install bubblewrap",
    "arch": "sudo pacman -S bubblewrap",
    "alpine": "sudo apk add bubblewrap",
    "suse": "sudo zypper install bubblewrap",
    "opensuse": "sudo zypper install bubblewrap",
    "nixos": "nix-env -iA nixos.bubblewrap",
    "gentoo": "sudo emerge sys-apps/bubblewrap",
    "void": "sudo xbps-install bubblewrap",
}
_CONTAINER = (
    "This is a container that forbids them. Start it with `--security-opt seccomp=unconfined --security-opt "
    "apparmor=unconfined` (Docker, Podman), or let the container be the wall: `[sandbox] required = false`."
)
_APPARMOR = (
    "Put `abi <abi/4.0>, profile bwrap {path} flags=(unconfined) {{ userns, }}` into /etc/apparmor.d/bwrap and run "
    "`sudo apparmor_parser -r /etc/apparmor.d/bwrap`; or, for every program, "
    "`sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`."
)


class Facts(msgspec.Struct, frozen=True):
    """What this machine says of itself."""

    system: tuple[str, ...] = ()  # ID and ID_LIKE of /etc/os-release
    clone_allowed: str = ""  # kernel.unprivileged_userns_clone
    most_namespaces: str = ""  # user.max_user_namespaces
    apparmor_restricts: str = ""  # kernel.apparmor_restrict_unprivileged_userns
    container: bool = False


def facts(root: str = "/") -> Facts:
    sysctl = os.path.join(root, "proc/sys")
    release = dict(line.partition("=")[::2] for line in _read(os.path.join(root, "etc/os-release")).splitlines())
    words = f"{release.get('ID', '')} {release.get('ID_LIKE', '')}".replace('"', "").split()
    marks = ("run/.containerenv", ".dockerenv", "run/systemd/container")
    return Facts(
        tuple(words),
        _read(f"{sysctl}/kernel/unprivileged_userns_clone"),
        _read(f"{sysctl}/user/max_user_namespaces"),
        _read(f"{sysctl}/kernel/apparmor_restrict_unprivileged_userns"),
        any(os.path.exists(os.path.join(root, mark)) for mark in marks),
    )


def install_line(known: Facts, package: str = "bubblewrap") -> str:
    for name in known.system:
        if name in _INSTALL:
            return _named(_INSTALL[name], package)
    return f"Install the package `{package}` of your distribution."


def _named(line: str, package: str) -> str:
    """The same line for another package; Gentoo sorts by kind."""
    kinds = {"git": "dev-vcs/git", "ripgrep": "sys-apps/ripgrep"}
    if "/bubblewrap" in line and package in kinds:
        return line.replace("sys-apps/bubblewrap", kinds[package])
    return line.replace("bubblewrap", package)


def diagnosed(said: str, program: str, known: Facts) -> tuple[str, str]:
    """What bubblewrap said when it failed, as (why, fix)."""
    words = " ".join(said.split())
    tail = f" ({words})" if words else ""
    if known.clone_allowed == "0":
        return f"User namespaces are switched off{tail}.", "sudo sysctl -w kernel.unprivileged_userns_clone=1"
    if known.most_namespaces == "0":
        return f"No user namespaces are allowed{tail}.", "sudo sysctl -w user.max_user_namespaces=15000"
    if "proc" in words and ("mount" in words or "Mount" in words) and "namespace" not in words:
        return f"A fresh /proc cannot be mounted here, so commands would see every process{tail}.", _CONTAINER
    if known.apparmor_restricts == "1" and any(
        sign in words for sign in ("uid map", "RTM_NEWADDR", "ermission", "perm")
    ):
        return f"AppArmor forbids user namespaces to {program}{tail}.", _APPARMOR.format(path=program)
    if any(sign in words for sign in ("namespace", "uid map", "Failed to make / slave", "pivot_root", "RTM_NEWADDR")):
        if known.container:
            return f"Namespaces cannot be made{tail}.", _CONTAINER
        return (
            f"Namespaces cannot be made{tail}.",
            "Let your kernel allow user namespaces to unprivileged users; a seccomp filter or security module of the "
            "service that starts Quintet may forbid them as well.",
        )
    return (
        f"bubblewrap failed{tail or ' without a word'}.",
        f"Run `{program} --ro-bind / / --proc /proc true` yourself.",
    )


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""
