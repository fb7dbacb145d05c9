"""Quintet as a person has it: built from the source without a network, installed into a bare virtual environment.

What a wheel needs comes out of the environment the tests run in: exactly the packages of run.lock, nothing of the
workshop. That stands in for an index, which there is none of without a network.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from importlib.metadata import Distribution
from pathlib import Path

from tests.dependencies import ROOT, installed, read_lock

# A new network namespace has not even loopback; people without a network have that.
_LOOPBACK_UP = """
import fcntl, os, socket, struct, sys
with socket.socket() as any_socket:
    request = struct.pack("16sH14x", b"lo", 0)
    flags, = struct.unpack_from("H", fcntl.ioctl(any_socket, 0x8913, request), 16)
    fcntl.ioctl(any_socket, 0x8914, struct.pack("16sH14x", b"lo", flags | 1))
os.execvp(sys.argv[1], sys.argv[1:])
"""


@functools.cache
def cut_off() -> tuple[str, ...]:
    """What a command line begins with so that it has no network but loopback; empty where that cannot be had."""
    for unshare in (("unshare", "-n"), ("unshare", "-rn")):
        prefix = (*unshare, sys.executable, "-c", _LOOPBACK_UP)
        try:
            if subprocess.run([*prefix, "true"], capture_output=True, timeout=20).returncode == 0:
                return prefix
        except OSError:
            return ()
    return ()


def clean_environment(**more: str) -> dict[str, str]:
    """Nothing of the environment the tests run in: no home of Quintet, no virtual environment, no way to our code."""
    kept = {
        k: os.environ[k] for k in ("LANG", "LC_ALL", "TERM", "TMPDIR", "PYTHONDONTWRITEBYTECODE") if k in os.environ
    }
    return kept | {"PATH": "/usr/local/bin:/usr/bin:/bin", "NO_COLOR": "1"} | more


def ran(argv: Sequence[str], *, cwd: Path, timeout_s: float = 60.0, **more: str) -> str:
    done = subprocess.run(
        [*cut_off(), *argv], cwd=cwd, env=clean_environment(**more), stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=timeout_s,
    )  # fmt: skip
    assert done.returncode == 0, f"{argv}: exit {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout


def build_sdist(source: Path, out: Path) -> Path:
    code = "import sys; from flit_core import buildapi; print(buildapi.build_sdist(sys.argv[1]))"
    return out / ran([sys.executable, "-c", code, str(out)], cwd=source).strip()


def build_wheel(source: Path, out: Path) -> Path:
    """As `pip install .` would."""
    out.mkdir(parents=True, exist_ok=True)
    words = ["wheel", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", "-w", str(out), str(source)]
    ran([sys.executable, "-m", "pip", *words], cwd=out)
    (made,) = out.glob("*.whl")
    return made


def bare_environment(place: Path) -> Path:
    """A virtual environment with the packages of run.lock and no pip; its python."""
    ran([sys.executable, "-m", "venv", "--without-pip", str(place)], cwd=place.parent)
    python = place / "bin" / "python"
    target = Path(ran([str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], cwd=place).strip())
    for locked in read_lock(ROOT / "requirements" / "run.lock"):
        if (found := installed(locked.name)) is not None:
            _copy(found, target)
    return python


def _copy(found: Distribution, target: Path) -> None:
    home = Path(sysconfig.get_path("purelib"))
    for file in found.files or ():
        at = Path(str(found.locate_file(file)))
        if ".." in file.parts or file.suffix == ".pyc" or not at.is_relative_to(home):
            continue
        (target / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(at, target / file)


def install(wheel: Path, python: Path) -> Path:
    """The wheel, into that environment; its `quintet`."""
    words = ["install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps", str(wheel)]
    ran([sys.executable, "-m", "pip", "--python", str(python), *words], cwd=wheel.parent)
    return python.with_name("quintet")
