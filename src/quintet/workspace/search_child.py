"""The searcher for machines without ripgrep: a program of its own, started in the directory it searches,
so that an expression which never ends can be killed. Reads one Order on stdin, writes one Report.

Must give what ripgrep gives: the same files, the same lines, the same idea of what is text.
"""

from __future__ import annotations

import os
import re
import sys
from collections import deque
from collections.abc import Iterator

import msgspec

from quintet.workspace.expressions import Unsupported, rewritten
from quintet.workspace.globs import Glob
from quintet.workspace.ignore import Ignored
from quintet.workspace.paths import contains

TEXT_LIMIT = 4_000  # bytes of a line that are told; whoever shows it cuts further


class Order(msgspec.Struct, frozen=True):
    """Paths are bytes: they need not be UTF-8."""

    root: bytes
    start: bytes  # from the root, a directory; the one we are started in
    name: bytes = b""  # the one file of it that is meant, if one is
    hidden: tuple[bytes, ...] = ()  # directories that are not there
    pattern: str = ""
    ignore_case: bool = False
    before: int = 0  # lines of context
    after: int = 0
    ignored: bool = False  # also what the ignore rules leave out
    occurrences: bool = False  # count matches instead of lines that have one
    glob: str = ""
    prefix: bytes = b""
    rows: int = 0  # how many matching lines to tell; all are counted
    cpu_s: int = 60


class FoundRow(msgspec.Struct, frozen=True, array_like=True):
    number: int
    matches: bool  # else it is context
    text: bytes
    column: int = 0


class FoundFile(msgspec.Struct, frozen=True, array_like=True):
    path: bytes  # from the start
    lines: int
    rows: list[FoundRow]


class Report(msgspec.Struct, frozen=True):
    files: list[FoundFile] = []
    unread: list[str] = []
    unsupported: str = ""


def main() -> None:
    order = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Order)
    _bound(order.cpu_s)
    sys.stdout.buffer.write(msgspec.msgpack.encode(report(order)))


def report(order: Order) -> Report:
    try:
        expression = re.compile(rewritten(order.pattern), re.IGNORECASE if order.ignore_case else 0)
    except Unsupported as error:
        return Report(unsupported=str(error))
    except (re.error, OverflowError, RecursionError) as error:
        return Report(unsupported=str(error))
    hidden = [os.fsdecode(place) for place in order.hidden]
    ignored = Ignored(
        os.fsdecode(order.root), lambda path: any(contains(place, path) for place in hidden), rules=not order.ignored
    )
    found: list[FoundFile] = []
    unread: list[str] = []
    for path, opened in _opened(order, ignored, unread):
        try:
            with os.fdopen(opened, "rb") as file:
                if hits := searched(file.read(), path, expression, order):
                    found.append(hits)
        except (OSError, MemoryError) as error:
            unread.append(f"{path}: {getattr(error, 'strerror', None) or 'too large'}")
    return Report(
        _trimmed(found, order.rows),
        [told.encode("utf-8", "backslashreplace").decode() for told in unread + ignored.unread],
    )


def _opened(order: Order, ignored: Ignored, unread: list[str]) -> Iterator[tuple[str, int]]:
    """The regular files in question, from the start, as handles that whoever takes them closes."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    for path, name, handle in _files(order, ignored):
        try:
            yield path, os.open(name, flags, dir_fd=handle)
        except OSError as error:
            unread.append(f"{path}: {error.strerror}")


def _files(order: Order, ignored: Ignored) -> Iterator[tuple[str, str, int | None]]:
    glob, prefix = (Glob(order.glob) if order.glob else None), os.fsdecode(order.prefix)
    if order.name:
        walked: Iterator[tuple[str, str, int | None]] = iter([(os.fsdecode(order.name), os.fsdecode(order.name), None)])
    else:
        start = os.fsdecode(order.start)
        cut = len(start) + 1 if start else 0
        regular = (found for found in ignored.walk(start) if found.entry.is_file(follow_symlinks=False))
        walked = ((found.path[cut:], found.entry.name, found.handle) for found in regular)
    for path, name, handle in walked:
        if glob is None or glob.covers(path) or glob.covers(prefix + path):
            yield path, name, handle


def searched(data: bytes, path: str, expression: re.Pattern[str], order: Order) -> FoundFile | None:
    """A file's matching lines; None if it has none or is no text."""
    data = _as_utf_8(data)
    if b"\0" in data:
        return None
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    count = 0
    rows: list[FoundRow] = []
    waiting: deque[tuple[int, bytes]] = deque(maxlen=order.before)
    after = 0
    for number, line in enumerate(lines, 1):
        text = line.decode("utf-8", "surrogateescape")
        found = expression.search(text)
        matches = found is not None
        count += sum(1 for _ in expression.finditer(text)) if matches and order.occurrences else matches
        if count > order.rows:
            continue
        if matches:
            rows += [_row(*earlier) for earlier in waiting]
            waiting.clear()
            rows.append(_row(number, line, column=found.start() + 1 if found else 0))
            after = order.after
        elif after:
            rows.append(_row(number, line))
            after -= 1
        else:
            waiting.append((number, line))
    return FoundFile(os.fsencode(path), count, rows) if count else None


def _row(number: int, line: bytes, *, column: int = 0) -> FoundRow:
    return FoundRow(number, column > 0, line[:TEXT_LIMIT], column)


def _as_utf_8(data: bytes) -> bytes:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace").encode()
    return data.removeprefix(b"\xef\xbb\xbf")


def _trimmed(found: list[FoundFile], rows: int) -> list[FoundFile]:
    """By path, with only as many lines as were asked for."""
    left = rows
    made = []
    for file in sorted(found, key=lambda file: file.path):
        made.append(file if left > 0 else FoundFile(file.path, file.lines, []))
        left -= file.lines
    return made


def _bound(cpu_s: int) -> None:
    """If whoever started us is gone, we end all the same."""
    import resource

    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    memory = 2 * 1024**3
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
