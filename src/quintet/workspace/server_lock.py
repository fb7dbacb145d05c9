"""The server's place: one server per home, and the file by which local clients find it."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path
from typing import Any

import msgspec

from quintet.domain.errors import Busy, StorageReadOnly


class ServerLock:
    """Held for the server's life by an OS lock, so a crash frees it; server.json says where the server is."""

    def __init__(self, home: Path) -> None:
        self._lock_path = home / "run" / "server.lock"
        self.discovery = home / "server.json"
        self._descriptor = -1

    def __enter__(self) -> ServerLock:
        try:
            self._lock_path.parent.mkdir(mode=0o700, exist_ok=True)
            self._descriptor = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StorageReadOnly(
                f"The home cannot be written, so no server can run on it: {error.strerror}."
            ) from None
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._descriptor)
            raise Busy(
                f"A server already runs on this home{self._where()}.",
                next_step="Use that one, stop it first, or name another home with --home.",
            ) from None
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(FileNotFoundError):
            self.discovery.unlink()
        os.close(self._descriptor)

    def announce(self, facts: dict[str, Any], ready_file: Path | None) -> None:
        """Private from its first byte, and never seen half written."""
        for target in filter(None, (self.discovery, ready_file)):
            beside = target.with_name(f".{target.name}.{os.getpid()}")
            descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(msgspec.json.encode(facts))
            beside.replace(target)

    def _where(self) -> str:
        try:
            facts = msgspec.json.decode(self.discovery.read_bytes())
            return f" at {facts['knp']['url']} (pid {facts['pid']})"
        except (OSError, msgspec.DecodeError, KeyError, TypeError):
            return ""


def server_runs(home: Path) -> bool:
    """Whether a server holds this home; nothing is made for the look."""
    try:
        handle = os.open(home / "run" / "server.lock", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError:
        return True  # cannot tell: what may be somebody's is left alone
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def announced(home: Path) -> dict[str, Any]:
    """What server.json says of the server that runs; nothing where none does, or where it cannot be read."""
    if not server_runs(home):
        return {}
    try:
        facts = msgspec.json.decode((home / "server.json").read_bytes())
    except (OSError, msgspec.DecodeError):
        return {}
    return facts if isinstance(facts, dict) else {}
