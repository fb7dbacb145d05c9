"""Git as a reader that nothing in a repository can steer.

A repository's own config is never read by the git we run: it names programs (fsmonitor, hooks, pagers, filters, ssh,
helpers) and places (includes, other work trees, remotes to fetch objects from). Git is given an empty repository of
ours instead, with the real one's objects, a copy of its index and its work tree; a few harmless settings are copied.
What could run something is switched off by name as well, should some git find another way to it.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager

import msgspec

from quintet.workspace.child import Cause, Child
from quintet.workspace.environment import MARKER, find_program
from quintet.workspace.files import on_disk, together
from quintet.workspace.git_layout import Layout
from quintet.workspace.processes import run_child
from quintet.workspace.tree import Seen

WITHIN_S = 20.0
OUTPUT_LIMIT = 64 * 1024 * 1024
_CONFIG_LIMIT = 1024 * 1024
_SURE_NS = 1_000_000_000  # a file touched just now may be touched again without showing it
_REMEMBERED = 64
_INDEX_LIMIT = 256 * 1024 * 1024

# Settings that say how bytes and names in the work tree are to be understood; nothing else is taken over.
_TAKEN = frozenset(
    {
        *("core.filemode", "core.symlinks", "core.ignorecase", "core.precomposeunicode", "core.trustctime"),
        *("core.checkstat", "core.autocrlf", "core.eol", "extensions.objectformat"),
    }
)
_Settings = tuple[tuple[str, str], ...]
_FOLDING = ("core.ignorecase", "core.precomposeunicode")
_NO = ("false", "no", "off", "0")
_PLAIN = re.compile(r"[A-Za-z0-9]{1,20}")

_OFF = (
    *("core.fsmonitor=false", "core.hooksPath=/dev/null", "core.pager=cat", "core.sshCommand=false"),
    *(
        "core.askPass=false",
        "core.editor=false",
        "core.untrackedCache=false",
    ),
    *("credential.helper=", "gpg.program=false", "gpg.ssh.program=false", "protocol.allow=never"),
    *("diff.ignoreSubmodules=all", "submodule.recurse=false", "fetch.recurseSubmodules=false", "gc.auto=0"),
    *("maintenance.auto=false", "core.preloadIndex=true", "index.threads=true", "core.quotePath=false"),
)
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_ASKPASS": "false",
    "SSH_ASKPASS": "false",
    "GIT_SSH_COMMAND": "false",
    "GIT_EDITOR": "false",
    "GIT_PAGER": "cat",
    "LC_ALL": "C",
}


class GitFailed(Exception):
    """Git could not answer; the text says why, for people."""


class Index(msgspec.Struct, frozen=True):
    """A copy of an index. Its time matters: git looks closer at files that are not older than it."""

    data: bytes
    mtime_ns: int
    mode: int = 0o644  # of its file: made under the same umask as the files git checks out


class Git:
    """`scratch` is a private directory of ours for what lives as long as one look at a repository."""

    def __init__(self, environment: Mapping[str, str], scratch: str) -> None:
        self._path = environment.get("PATH", os.defpath)
        self._program = find_program("git", environment)
        self._scratch = scratch
        self._settings: dict[str, tuple[Seen, _Settings]] = {}  # by config file, as long as it is not touched

    @asynccontextmanager
    async def opened(self, layout: Layout, index: Index | None) -> AsyncIterator[Repository]:
        """The repository, seen through this index (None: one without any files)."""
        if self._program is None:
            raise GitFailed("git is not installed")
        # Named before it is made: a cancel, or a full disk, while it is being made leaves nothing behind.
        place = os.path.join(self._scratch, f"git-{os.urandom(8).hex()}")
        try:
            repository = Repository(self._program, self._path, layout, place)
            # Neither needs the other, and a program takes its time to start.
            settings, _ = await together(self._settings_of(repository), on_disk(_shell_around, place, layout, index))
            await on_disk(repository.take, settings)
            repository.index = _name_of(index)
            repository.entries = index.data if index else b""
            yield repository
        finally:
            await on_disk(shutil.rmtree, place, ignore_errors=True)

    async def _settings_of(self, repository: Repository) -> _Settings:
        path = repository.layout.config
        now, old = await on_disk(_seen, path), self._settings.get(path)
        settings = old[1] if old is not None and old[0] == now else await repository.read_settings()
        self._settings.pop(path, None)
        if now is not None and now.ctime_ns < time.time_ns() - _SURE_NS:
            self._settings[path] = (now, settings)
        while len(self._settings) > _REMEMBERED:
            del self._settings[next(iter(self._settings))]
        return settings


def _name_of(index: Index | None) -> bytes:
    """An index ends with a sum of all it holds; where git was told to leave that out, its time and size have to do."""
    return b"" if index is None else b"%d %d " % (index.mtime_ns, len(index.data)) + index.data[-32:]


class Repository:
    """One repository behind our own empty one. Made by Git.opened."""

    def __init__(self, program: str, path: str, layout: Layout, place: str) -> None:
        self.layout = layout
        self.index = b""  # names what the index holds
        self.entries = b""  # the index itself
        self.sha1 = True  # by which objects are named, in the index as well
        self.converts = False  # whether line ends in the work tree may differ from those in the objects
        self.folds = False  # whether other bytes may be the same name
        self._place = place
        self._program = program
        self._environment = {
            **_ENVIRONMENT,
            "PATH": path,
            "HOME": place,
            "XDG_CONFIG_HOME": place,
            "GIT_DIR": place,
            "GIT_WORK_TREE": layout.top,
            "GIT_INDEX_FILE": os.path.join(place, "index"),
            "GIT_OBJECT_DIRECTORY": layout.objects,
        }
        off = (*_OFF, f"core.excludesFile={layout.exclude}", f"core.attributesFile={layout.attributes}")
        self._options = [word for setting in off for word in ("-c", setting)]

    async def read_settings(self) -> _Settings:
        """How the work tree is to be read, by the config. `--file` without includes runs and follows nothing."""
        if not await on_disk(os.path.isfile, self.layout.config):
            return ()
        command = ("config", "--file", self.layout.config, "--no-includes", "--list", "-z")
        listed = await self.ask(*command, output_limit=_CONFIG_LIMIT)
        lines = listed.decode("utf-8", "surrogateescape").split("\0")
        said = [(name.lower(), value) for name, _, value in (line.partition("\n") for line in lines)]
        return tuple((name, value) for name, value in said if name in _TAKEN and _PLAIN.fullmatch(value))

    def take(self, settings: _Settings) -> None:
        self.converts = any(name in ("core.autocrlf", "core.eol") for name, _ in settings)
        self.sha1 = all(value.lower() == "sha1" for name, value in settings if name == "extensions.objectformat")
        self.folds = any(name in _FOLDING and value.lower() not in _NO for name, value in settings)
        _write_config(os.path.join(self._place, "config"), settings)

    async def refresh(self) -> Index:
        """Let git look at every file whose times or inode are not those in the index; the better index."""
        await self.ask("update-index", "-q", "--refresh", "--ignore-submodules", codes=(0, 1))  # 1: some did change
        return await on_disk(_read_index, self._environment["GIT_INDEX_FILE"])

    async def ask(
        self, *command: str, given: bytes = b"", output_limit: int = OUTPUT_LIMIT, codes: tuple[int, ...] = (0,)
    ) -> bytes:
        """What git answers to one of its reading commands. GitFailed when it fails, takes too long or says too much."""
        out: list[bytes] = []
        complaint: list[bytes] = []

        def receive(stream: str, data: bytes) -> None:
            (out if stream == "stdout" else complaint).append(data)

        argv = (self._program, "--no-pager", *self._options, *command)
        with self._questions(given) as stdin:
            # Each child is marked for itself: two run at the same time, and the end of one must not end the other.
            environment = {**self._environment, MARKER: f"git-{os.urandom(8).hex()}"}
            top = self.layout.top
            child = Child(argv, top, environment, WITHIN_S, output_limit, alone=True, stdin=stdin)
            ended = await run_child(child, receive)
        if ended.cause is Cause.TIMEOUT:
            raise GitFailed(f"git {command[0]} did not answer within {WITHIN_S:.0f} s")
        if ended.cause is Cause.FLOOD or sum(map(len, out)) > output_limit:
            raise GitFailed(f"git {command[0]} answered more than {output_limit // 1024 // 1024} MiB")
        if ended.code not in codes:
            words = b"".join(complaint).decode("utf-8", "replace").strip().split("\n")[0][:200]
            raise GitFailed(f"git {command[0]} failed: {words or f'exit {ended.code}'}")
        return b"".join(out)

    @contextlib.contextmanager
    def _questions(self, given: bytes) -> Iterator[int]:
        """What git reads the questions from."""
        if not given:
            yield subprocess.DEVNULL
            return
        with tempfile.TemporaryFile(dir=self._place) as questions:
            questions.write(given)
            questions.seek(0)
            yield questions.fileno()


def _shell_around(place: str, layout: Layout, index: Index | None) -> None:
    """An empty repository in a private directory, and the index beside it."""
    scratch = os.path.dirname(place)
    for directory in (os.path.dirname(scratch), scratch):  # makedirs would make the outer one as loose as the umask is
        with contextlib.suppress(FileExistsError):
            os.mkdir(directory, 0o700)
    for directory in (place, os.path.join(place, "refs")):  # git takes no less for a repository
        os.mkdir(directory, 0o700)
    with open(os.path.join(place, "HEAD"), "w", encoding="ascii") as file:
        file.write("ref: refs/heads/none\n")
    if index is not None:
        path = os.path.join(place, "index")
        with open(path, "wb") as copy:
            copy.write(index.data)
        os.utime(path, ns=(index.mtime_ns, index.mtime_ns))
    with os.scandir(layout.admin) as entries:
        for entry in entries:
            if entry.name.startswith("sharedindex."):  # an index may be split in two
                os.symlink(entry.path, os.path.join(place, entry.name))


def _write_config(path: str, settings: _Settings) -> None:
    with open(path, "w", encoding="ascii") as file:
        for name, value in (("core.repositoryformatversion", "1"), *settings):
            section, _, key = name.partition(".")
            file.write(f"[{section}]\n\t{key} = {value}\n")


def _seen(path: str) -> Seen | None:
    try:
        return Seen.of(os.stat(path))
    except OSError:
        return None


def read_index(layout: Layout) -> Index | None:
    """The index as it is now; None when there is none yet. Git replaces it in one move, so no lock is needed."""
    try:
        return _read_index(layout.index)
    except FileNotFoundError:
        return None


def _read_index(path: str) -> Index:
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size > _INDEX_LIMIT:
            raise GitFailed("the repository's index is no file that could be read")
        return Index(file.read(), found.st_mtime_ns, stat.S_IMODE(found.st_mode))
