"""Ending a tree without an event loop: in bounded time, also where one of it cannot die."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable

import pytest

from quintet.workspace import process_tree
from quintet.workspace.process_tree import LooseTree, reaped
from quintet.workspace.sandbox import namespace
from quintet.workspace.sandbox.namespace import WalledTree
from tests.fakes.debugger import ALLOW, held

LIMIT_S = 20.0
Process = subprocess.Popen[bytes]


def started() -> Process:
    code = f"{ALLOW}; print('ready', flush=True); import time; time.sleep(300)"
    process = subprocess.Popen([sys.executable, "-I", "-c", code], stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.stdout.close()
    return process


@pytest.mark.req("mechanisms:M10.cancel")
@pytest.mark.parametrize(
    "tree",
    [lambda process: WalledTree(process, asyncio.Event()), lambda process: LooseTree(process, "nobody")],
    ids=["walled", "loose"],
)
async def test_nobody_waits_for_one_that_cannot_die_and_it_is_reaped_later(
    tree: Callable[[Process], WalledTree | LooseTree], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (process_tree, namespace):
        monkeypatch.setattr(module, "DEAD_WITHIN_S", 0.05)
    process = started()
    with held(process.pid):
        await asyncio.wait_for(asyncio.to_thread(tree(process).end_now), LIMIT_S)
        assert process.returncode is None
    other = started()
    other.kill()
    assert reaped(other, LIMIT_S)  # the next one that ends
    assert process.returncode == -9
