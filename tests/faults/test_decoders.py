"""Decoders are made at first use, by whichever thread comes first; msgspec crashes when two make one type at once."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.faults.processes import ROOT, environment

PROGRAM = """
import sys, threading
sys.setswitchinterval(1e-6)
from quintet.domain.event import KINDS, TurnQueued
from quintet.domain.item import TextPart
from quintet.domain.principal import local
from quintet.domain.turn import Mode, Turn, TurnState
from quintet.domain.decoding import decode
from quintet.journal.codec import encode
turn = Turn("trn", "thr", TurnState.QUEUED, "own", Mode.ASK, local("x"), (TextPart("x"),), 1)
data = encode(TurnQueued(turn))
barrier = threading.Barrier(4)
def work():
    barrier.wait()
    assert decode(data, TurnQueued).turn == turn
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


@pytest.mark.req("reliability:R1")
def test_threads_that_decode_for_the_first_time_at_once_do_not_crash() -> None:
    """Each round is a new process: only the first use of a type can fail. Without the lock most rounds do."""
    for _ in range(10):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], cwd=ROOT, env=environment(), capture_output=True, timeout=20, check=False
        )
        assert done.returncode == 0, done.stderr.decode()[:2000]
