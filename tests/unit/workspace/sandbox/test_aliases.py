"""One directory at two places: hidden at one, it must be hidden at the other."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from quintet.workspace.sandbox.aliases import aliases
from tests.fakes.stage import SECRET, needs_bubblewrap, staged

ROW = "{n} 1 {device} {root} {place} rw - ext4 /dev/x rw"


def table(tmp_path: Path, *rows: tuple[str, str, str]) -> str:
    lines = [ROW.format(n=n, device=d, root=r, place=p.replace(" ", "\\040")) for n, (d, r, p) in enumerate(rows)]
    (tmp_path / "table").write_text("\n".join(lines) + "\n")
    return str(tmp_path / "table")


def test_the_second_place_is_found(tmp_path: Path) -> None:
    (tmp_path / "fs" / "home" / ".ssh").mkdir(parents=True)
    (tmp_path / "the pool").symlink_to("fs")  # stands for a second mount of the same file system
    rows = [("8:1", "/", f"{tmp_path}/fs"), ("8:1", "/", f"{tmp_path}/the pool"), ("8:2", "/", "/elsewhere")]
    found = list(aliases([f"{tmp_path}/fs/home/.ssh"], table(tmp_path, *rows)))
    assert found == [f"{tmp_path}/the pool/home/.ssh"]


def test_a_part_of_a_file_system_shown_elsewhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "fs" / "@home" / "me" / ".ssh").mkdir(parents=True)
    (tmp_path / "home").symlink_to("fs/@home")
    rows = [("8:1", "/", f"{tmp_path}/fs"), ("8:1", "/@home", f"{tmp_path}/home")]
    found = list(aliases([f"{tmp_path}/home/me/.ssh"], table(tmp_path, *rows)))
    assert found == [f"{tmp_path}/fs/@home/me/.ssh"]


def test_what_only_looks_the_same_is_not_hidden(tmp_path: Path) -> None:
    (tmp_path / "a" / ".ssh").mkdir(parents=True)
    (tmp_path / "b" / ".ssh").mkdir(parents=True)
    rows = [("8:1", "/", f"{tmp_path}/a"), ("8:1", "/", f"{tmp_path}/b")]
    assert list(aliases([f"{tmp_path}/a/.ssh"], table(tmp_path, *rows))) == []
    assert list(aliases(["/x"], str(tmp_path / "absent"))) == []


@needs_bubblewrap
@pytest.mark.skipif(os.getuid() != 0 or shutil.which("unshare") is None, reason="mounting needs root")
def test_a_secret_mounted_twice_is_hidden_twice() -> None:
    """In a mount namespace of its own, which ends with the process that looks."""
    script = """
import asyncio, sys
from pathlib import Path
from tests.fakes.stage import Stage
stage = Stage(Path(sys.argv[1]) / "s")
import subprocess
(stage.outside / "again").mkdir()
subprocess.run(["mount", "--bind", str(stage.user), str(stage.outside / "again")], check=True)
print((stage.outside / "again" / ".netrc").read_text())
print("inside:", asyncio.run(stage.run(f"cat {stage.outside}/again/.netrc {stage.outside}/again/.ssh/*")).stdout)
"""
    import sys

    with staged() as stage:
        done = subprocess.run(
            ["unshare", "-m", sys.executable, "-c", script, str(stage.root)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.stdout.split() == [SECRET, "inside:"], done
