"""What of our environment a child process gets: an allow-list, so that a new secret is left out without being known."""

from __future__ import annotations

import os
from collections.abc import Mapping

MARKER = "QUINTET_CALL"  # names the call a process belongs to, also after it left its process group

_PLAIN = """
PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TMPDIR TMP TEMP HOSTNAME
NO_COLOR FORCE_COLOR COLUMNS LINES CI DEBIAN_FRONTEND MAKEFLAGS SOURCE_DATE_EPOCH
VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV PYTHONPATH PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PYENV_ROOT
NODE_PATH NVM_DIR NVM_BIN PNPM_HOME VOLTA_HOME BUN_INSTALL DENO_DIR
CARGO_HOME RUSTUP_HOME RUSTFLAGS GOPATH GOROOT GOBIN GOFLAGS GOCACHE GOMODCACHE
JAVA_HOME MAVEN_HOME GRADLE_HOME GRADLE_USER_HOME GEM_HOME GEM_PATH RBENV_ROOT DOTNET_ROOT
CC CXX CFLAGS CXXFLAGS LDFLAGS PKG_CONFIG_PATH LD_LIBRARY_PATH CMAKE_PREFIX_PATH
SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE NODE_EXTRA_CA_CERTS
XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME XDG_STATE_HOME
"""
_NAMES = frozenset(_PLAIN.split())
_PROXIES = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"})
# Programs that would wait for a key or paint the screen learn that nobody sits there.
_SET = {"TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "true"}


def passes(name: str, value: str) -> bool:
    """Whether a child may see this variable."""
    if name in _NAMES or name.startswith("LC_"):
        return True
    # A proxy address is needed to reach anything where there is one, unless it carries a password.
    return name.upper() in _PROXIES and "@" not in value


def child_environment(environment: Mapping[str, str], marker: str) -> dict[str, str]:
    """A child's whole environment."""
    kept = {name: value for name, value in environment.items() if passes(name, value)}
    return kept | _SET | {MARKER: marker}


# Where programs are put by whoever administers the machine.
SYSTEM = frozenset(
    {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/opt/homebrew/bin", "/snap/bin"}
    | {"/run/current-system/sw/bin", "/home/linuxbrew/.linuxbrew/bin", "/usr/lib/git-core"}
)


# Where what lies there may really be, behind links: package managers put programs here and nobody works here.
_BEHIND = (
    *("/usr/lib", "/usr/lib64", "/usr/libexec", "/usr/share", "/usr/local/lib", "/usr/local/libexec", "/lib", "/snap"),
    *("/nix/store", "/gnu/store", "/usr/local/Cellar", "/opt/homebrew/Cellar", "/home/linuxbrew/.linuxbrew/Cellar"),
)


def find_program(name: str, environment: Mapping[str, str]) -> str | None:
    """The program's absolute path by the child's PATH, for programs that run outside the sandbox.

    Only from a system's directory, or from one we could not write ourselves: an activated virtual environment, or
    `node_modules/.bin`, lies in a workspace, and what a confined command puts there must never run outside. A link
    counts as what it leads to: whoever builds a program may have linked it from where its users find it.
    """
    for directory in environment.get("PATH", os.defpath).split(os.pathsep):
        candidate = os.path.join(directory, name)
        runs = os.path.isfile(candidate) and os.access(candidate, os.X_OK)
        if runs and os.path.isabs(directory) and _out_of_reach(directory) and _leads_out_of_reach(candidate):
            return candidate
    return None


def _leads_out_of_reach(candidate: str) -> bool:
    real = os.path.realpath(candidate)
    if real == os.path.join(os.path.realpath(os.path.dirname(candidate)), os.path.basename(candidate)):
        return True  # no link
    return real.startswith(tuple(f"{place}/" for place in _BEHIND)) or _out_of_reach(os.path.dirname(real))


def _out_of_reach(directory: str) -> bool:
    """Whether no command of ours can have put something there."""
    if os.path.normpath(directory) in SYSTEM:
        return True
    place = os.path.realpath(directory)
    while not os.access(place, os.W_OK):
        if place == os.path.dirname(place):
            return True
        place = os.path.dirname(place)
    return False
