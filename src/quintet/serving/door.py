"""The door: the token, who failed to show it, the log of who came, and the addresses one may come by."""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from quintet.config import Server
from quintet.rpc.http.access import AccessLog
from quintet.rpc.http.attempts import Attempts, Remembered
from quintet.rpc.http.credential import Credential
from quintet.rpc.http.face import Limits
from quintet.rpc.http.guards import Guards

TOKEN_BYTES = 32


class Door:
    """One for all faces: a token, a count of failures and a log are the server's, not a protocol's."""

    def __init__(self, home: Path, settings: Server, environment: Mapping[str, str], *, auth: bool) -> None:
        self._settings = settings
        self._failures = home / "run" / "failed-attempts.json"
        self.token = secrets.token_urlsafe(TOKEN_BYTES) if auth else ""
        self.credential: Credential | None = None
        if auth:
            self.credential = Credential(
                self.token,
                user=environment.get("OPENCODE_SERVER_USERNAME", ""),
                password=environment.get("OPENCODE_SERVER_PASSWORD", ""),
            )
        self.attempts = Attempts(time.time, load=self._load, save=self._save)
        self.access = AccessLog(home / "access.log")

    def rotate(self) -> None:
        """A new token; the old one is worth nothing from here on."""
        if self.credential is not None:
            self.token = secrets.token_urlsafe(TOKEN_BYTES)
            self.credential.rotate(self.token)

    def for_face(self, sockets: Sequence[socket.socket]) -> dict[str, Any]:
        """What a face is made with, beside its routes."""
        bound = [s.getsockname()[:2] for s in sockets if s.family != socket.AF_UNIX]
        settings = self._settings
        return {
            "guards": Guards(bound=bound, hosts=settings.hosts, origins=settings.origins, proxies=settings.proxies),
            "credential": self.credential,
            "attempts": self.attempts,
            "access": self.access,
            "limits": Limits(heartbeat_s=settings.heartbeat_s),
        }

    def _load(self) -> Remembered:
        try:
            return msgspec.json.decode(self._failures.read_bytes(), type=Remembered)
        except (OSError, msgspec.DecodeError):
            return {}

    def _save(self, remembered: Remembered) -> None:
        beside = self._failures.with_suffix(f".{os.getpid()}")
        try:
            descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(msgspec.json.encode(remembered))
            beside.replace(self._failures)
        except OSError:
            pass  # it is still remembered here, by this server
