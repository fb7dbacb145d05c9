"""Real repositories for tests, made by plain git with nothing of the machine's own configuration."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

PLAIN = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@b",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


def sh(script: str, cwd: Path, *, check: bool = True) -> str:
    """A command as the shell tool would run it: it may do anything to the tree."""
    done = subprocess.run(
        ["sh", "-c", script],
        cwd=cwd,
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, **PLAIN},
        timeout=60,
    )
    assert not check or done.returncode == 0, done.stderr
    return done.stdout


def repository(path: Path, files: dict[str, str] | None = None) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    sh("git init -q -b main .", path)
    write(path, files or {"a.txt": "a\n", "src/b.txt": "b\n"})
    sh("git add -A && git commit -q -m first", path)
    return path


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def snapshot(root: Path) -> dict[str, tuple[str, int, bytes]]:
    """Every file and link below the root, git's own left out: kind, mode, bytes."""
    found: dict[str, tuple[str, int, bytes]] = {}
    for directory, names, files in os.walk(root):
        if ".git" in names:
            names.remove(".git")
        for name in [*files, *(n for n in names if (Path(directory) / n).is_symlink())]:
            path = Path(directory) / name
            inner = path.relative_to(root).as_posix()
            if path.is_symlink():
                found[inner] = ("link", 0, os.fsencode(os.readlink(path)))
            elif path.is_file() and name != ".git":
                found[inner] = ("file", path.stat().st_mode & 0o7777, path.read_bytes())
    return found
