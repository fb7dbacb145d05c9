"""A debugger that holds a process: killed, it stays unburied for as long as the debugger likes, as one does that waits
for a disk that never answers. The only way to such a process that needs no broken machine."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

_SEIZE = """
import ctypes, os, sys
c = ctypes.CDLL(None, use_errno=True)
c.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
print(os.strerror(ctypes.get_errno()) if c.ptrace(0x4206, int(sys.argv[1]), None, None) else "held", flush=True)
sys.stdin.read()
"""
ALLOW = "import ctypes; ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_long(-1))"  # said by who is to be held


@contextmanager
def held(pid: int) -> Iterator[None]:
    """Nobody can reap this process until the way out."""
    words = [sys.executable, "-I", "-c", _SEIZE, str(pid)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as debugger:
        assert debugger.stdout is not None
        assert debugger.stdin is not None
        said = debugger.stdout.readline().strip()
        try:
            if said != "held":
                pytest.skip(f"no process can be debugged here: {said}")
            yield
        finally:
            debugger.stdin.close()
            debugger.wait(10)
