"""gc: prune what may go, vacuum, and say what it freed."""

from __future__ import annotations

import argparse

import msgspec

from quintet.cli.event_json import encode_line
from quintet.cli.invoke import Invocation, seconds
from quintet.engine.capping import sweep_results
from quintet.workspace.files import on_disk
from quintet.workspace.unfinished import clear_unfinished


def add_flags(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    parser.add_argument("--grace", type=seconds, metavar="SECONDS", help="keep deltas this long after their turn's end")


async def run(invocation: Invocation) -> int:
    async with invocation.open(starts_turns=invocation.flags.grace is None) as app:
        grace_s = app.config.retention.delta_grace_s if invocation.flags.grace is None else invocation.flags.grace
        await app.tidy_workspaces()
        report = await app.journal.prune(now_ms=app.clock.now_ms(), grace_s=grace_s)
        blobs, size = await app.checkpoints.sweep(app.config.retention.checkpoints_days)
        results, result_size = await sweep_results(app.journal, app.results)
        unfinished = await on_disk(clear_unfinished, str(app.home / "backups"))
    if invocation.json:
        swept = {"blobs": blobs, "blob_bytes": size, "results": results, "result_bytes": result_size}
        swept["unfinished_backups"] = len(unfinished)
        invocation.screen.raw(encode_line({**msgspec.structs.asdict(report), **swept}))
    else:
        freed = report.bytes_freed / 1024
        invocation.screen.row(f"Pruned {report.deltas} deltas and {report.signals} signals, freed {freed:.0f} KiB.")
        invocation.screen.row(f"Let go of {blobs} contents no checkpoint needs, freed {size / 1024:.0f} KiB.")
        invocation.screen.row(f"Let go of {results} results of deleted threads, freed {result_size / 1024:.0f} KiB.")
        if unfinished:
            invocation.screen.row(f"Removed what a backup that was killed had left: {', '.join(unfinished)}.")
    return 0
