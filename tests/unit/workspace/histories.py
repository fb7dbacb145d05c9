"""What the tests of the history do with what it told."""

from __future__ import annotations

from pathlib import Path

from quintet.domain.checkpoint import Compared, FileChange, FileKind


async def put_back(history, directory: Path, compared: Compared) -> None:
    """As an undo does it, and everything must go."""
    order = sorted(compared.changes, key=lambda c: (c.before.kind is not FileKind.ABSENT, -c.path.count("/")))
    failed = await history.put_all(str(directory), [FileChange(c.path, c.after, c.before) for c in order])
    assert failed == [None] * len(order)


async def put_back_what_can_be(history, directory: Path, compared: Compared) -> None:
    """As an undo does it: what no one can make again is left."""
    order = sorted(compared.changes, key=lambda c: (c.before.kind is not FileKind.ABSENT, -c.path.count("/")))
    await history.put_all(str(directory), [FileChange(c.path, c.after, c.before) for c in order])


def wait_a_tick(directory: Path) -> None:
    """Until the clock that files are stamped with has moved on: what is there now is older than what comes."""
    first = (directory / ".tick").touch() or (directory / ".tick").stat().st_mtime_ns
    while (directory / ".tick").stat().st_mtime_ns == first:
        (directory / ".tick").touch()
    (directory / ".tick").unlink()


def kinds(compared: Compared) -> dict[str, tuple[str, str]]:
    return {change.path: (change.before.kind.value, change.after.kind.value) for change in compared.changes}
