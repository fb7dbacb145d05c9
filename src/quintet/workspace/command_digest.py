"""What a yes to a command is bound to: its words, its directory, the names in its environment, and the content of the
scripts it runs. Another digest means that something else would run. Reads files; never on the event loop.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from quintet.domain.ports import UNKNOWN_WORD, ParsedCommand
from quintet.workspace.child import Scripts
from quintet.workspace.commands import ShellCommandParser
from quintet.workspace.paths import contains
from quintet.workspace.shell_parsing.wrappers import program_name

FILES_AT_MOST = 100
BYTES_AT_MOST = 16 * 1024 * 1024  # of one script; of a longer one size and time count
_PARSER = ShellCommandParser()
_RUN_FILES_TEXT = "sh bash dash zsh ksh python pypy perl ruby node nodejs lua php source . bun deno tsx"
_RUN_FILES = frozenset(_RUN_FILES_TEXT.split())
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_BROKEN_UP = re.compile(r"[\s'\"`(){}$<>;&|,=\\]+")


class Bound(NamedTuple):
    digest: str  # SHA-256 over everything a person's yes to this command is about
    scripts: Scripts  # of these, the files it runs that can be looked at again: each with the SHA-256 of its content


def bound_to(command: str, cwd: str, environment_names: Iterable[str], *roots: str) -> Bound:
    """Both from one reading: what is looked at again is what the digest is about. `roots` are where commands work: what
    lies elsewhere they cannot change."""
    whole = hashlib.sha256()
    for part in (command, cwd, *sorted(environment_names)):
        _add(whole, part)
    contents = _add_files(whole, _scripts(command, cwd, roots))
    return Bound(whole.hexdigest(), tuple((path, said) for path, said in contents if " " not in said))


def script_digests(command: str, cwd: str, *roots: str) -> tuple[str, ...]:
    """For each simple command, in the parser's order: SHA-256 over the files it runs, or "" where it runs none."""
    digests = []
    for files in _scripts_of_each(_PARSER.parse(command), cwd, roots):
        whole, paths = hashlib.sha256(), list(files)
        _add_files(whole, paths)
        digests.append(whole.hexdigest() if paths else "")
    return tuple(digests)


def _add_files(whole: hashlib._Hash, paths: Iterable[str]) -> Scripts:
    contents = tuple((path, _content(path)) for path in sorted(set(paths))[:FILES_AT_MOST])
    for path, said in contents:
        _add(whole, path)
        _add(whole, said)
    return contents


def _add(whole: hashlib._Hash, part: str) -> None:
    data = part.encode(errors="surrogatepass")
    whole.update(len(data).to_bytes(8, "big") + data)  # with its length, so that parts cannot flow into each other


def _scripts(command: str, cwd: str, roots: Sequence[str]) -> Iterator[str]:
    """Files inside the roots that the command would run, as far as its words tell."""
    parsed = _PARSER.parse(command)
    for files in _scripts_of_each(parsed, cwd, roots):
        yield from files
    if not parsed.understood:
        for word in _BROKEN_UP.split(command)[:1000]:
            for path in _inside(os.path.join(cwd, word), roots) if word else ():
                if os.access(path, os.X_OK) or os.path.splitext(path)[1] in (
                    ".sh",
                    ".bash",
                    ".py",
                    ".js",
                    ".pl",
                    ".rb",
                ):
                    yield path


def _scripts_of_each(parsed: ParsedCommand, cwd: str, roots: Sequence[str]) -> Iterator[list[str]]:
    places = [cwd]
    for argv in parsed.commands:
        if argv[0] == "cd" and len(argv) == 2 and argv[1] != UNKNOWN_WORD:
            places.append(os.path.join(places[-1], argv[1]))
        yield [f for word in _named(argv) for p in places for f in _inside(os.path.join(p, word), roots)]


def _named(argv: Sequence[str]) -> Iterator[str]:
    program, words = argv[0], [w for w in argv[1:] if w != UNKNOWN_WORD and "\0" not in w]
    if "/" in program and program != UNKNOWN_WORD:
        yield program
    if program_name(program) in _RUN_FILES or program == ".":
        yield from (w for w in words if not w.startswith("-"))
    if program_name(program) in ("make", "gmake"):
        yield from _MAKEFILES
        yield from (w for w in words if not w.startswith("-"))
    if program_name(program) in ("npm", "pnpm", "yarn", "bun"):
        yield "package.json"


def _inside(path: str, roots: Sequence[str]) -> Iterator[str]:
    try:
        real = os.path.realpath(path)
        if any(contains(os.path.realpath(root), real) for root in roots) and stat.S_ISREG(os.stat(real).st_mode):
            yield real
    except (OSError, ValueError):
        return


def _content(path: str) -> str:
    """Its digest; of what has none, words."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return f"unreadable {error.errno}"
    with os.fdopen(handle, "rb") as file:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode):
            return "no file"
        if facts.st_size > BYTES_AT_MOST:
            return f"long {facts.st_size} {facts.st_mtime_ns} {facts.st_ino}"
        return hashlib.file_digest(file, "sha256").hexdigest()
