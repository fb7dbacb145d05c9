"""backup: the whole home but its keys, as one private file; made while others work, and checked before it counts.

To restore it, unpack it into an empty directory of yours, and name that with --home or QUINTET_HOME:
mkdir -m 700 NEW && tar -xf FILE -C NEW
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import shlex
from pathlib import Path

from quintet.cli import exits
from quintet.cli.event_json import encode_line
from quintet.cli.invoke import Invocation
from quintet.cli.progress import Progress
from quintet.config import home_directory
from quintet.domain.errors import StorageDamaged
from quintet.journal.backup import snapshot, stamp
from quintet.journal.checking import Found
from quintet.journal.faults import as_storage_error


def add_flags(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", default="", help="file to write (else one in the home's own backups)")
    parser.add_argument("--force", action="store_true", help="replace the file if it is there")


async def run(invocation: Invocation) -> int:
    from quintet.workspace.files import on_disk

    home = Path(home_directory(invocation.home, os.environ))
    if not (home / "quintet.db").is_file():
        raise StorageDamaged(f"There is no journal in {home}.", next_step="Name its home with `--home`.")
    try:
        path, size, found = await on_disk(_back_up, invocation, home)
    except OSError as error:
        raise as_storage_error(error) from error
    if invocation.json:
        line = {"v": 1, "path": path, "bytes": size, "whole": found.whole, "rows": found.rows}
        invocation.screen.raw(encode_line(line))
    else:
        for words in _lines(path, size, found):
            invocation.screen.line(words)
    return exits.DONE if found.whole else exits.STORAGE


def _back_up(invocation: Invocation, home: Path) -> tuple[str, int, Found]:
    from quintet.workspace.archive import archived
    from quintet.workspace.exports import write_export
    from quintet.workspace.paths import PathGuard
    from quintet.workspace.unfinished import making_in

    backups = home / "backups"
    backups.mkdir(mode=0o700, exist_ok=True)
    with making_in(str(backups)) as scratch:
        copy = os.path.join(scratch, "quintet.db")
        found = snapshot(home, copy, Progress(invocation.screen))
        if invocation.flags.output:
            guard, force, pieces = PathGuard(str(home)), invocation.flags.force, archived(str(home), copy)
            path = write_export(guard, invocation.flags.output, pieces, cwd=os.getcwd(), force=force).path
        else:
            path = _written(str(home), str(backups), copy)
    return path, os.path.getsize(path), found


def _written(home: str, backups: str, copy: str) -> str:
    """Named by the second; several of one second are numbered."""
    from quintet.workspace.archive import archived
    from quintet.workspace.exports import write_own

    for number in itertools.count(1):
        name = f"quintet-{stamp()}{f'-{number}' if number > 1 else ''}.tar"
        with contextlib.suppress(FileExistsError):
            return write_own(backups, name, archived(home, copy))
    raise AssertionError("there is always one more number")


def _lines(path: str, size: int, found: Found) -> list[str]:
    rows = f"{found.rows.get('threads', 0)} threads, {found.rows.get('items', 0)} items"
    lines = [f"Wrote {path} ({size / 1_048_576:.1f} MiB): {rows}. Keys are not in it."]
    if not found.whole:
        why = found.wrong or "some rows do not match their checksums"
        lines.append(f"The journal is DAMAGED ({why}); the backup holds it as it is. Run `quintet repair --dry-run`.")
    lines.append(
        f"To use it: mkdir -m 700 NEW && tar -xf {shlex.quote(path)} -C NEW && quintet threads list --home NEW"
    )
    return lines
