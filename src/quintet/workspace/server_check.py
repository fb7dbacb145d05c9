"""The home's own server in a check-up: whether one runs, where, and whether it answers. Asks it as a stranger would."""

from __future__ import annotations

import contextlib
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from quintet.domain.checkup import Row, fail, ok, warn
from quintet.workspace.server_lock import announced, server_runs

ANSWERS_WITHIN_S = 3.0
_QUESTION = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - where such a server is reached from here


def look_at_server(home: Path) -> list[Row]:
    if not server_runs(home):
        return [ok("server", "none runs; editors and `quintet run` need none")]
    facts = announced(home)
    knp = _knp(facts)
    where, pid = knp.get("url") or knp.get("socket", ""), facts.get("pid")
    if not where:
        return [warn("server", "one runs on this home, but does not say where; it may be starting", "quintet doctor")]
    status = _asked(knp)
    if status == "200":
        return [ok("server", f"answers at {where} (pid {pid})")]
    if status == "503":
        words = f"at {where} (pid {pid}) it answers, but falls behind"
        return [warn("server", words, "quintet threads list   (what runs; `quintet threads cancel` ends it)")]
    said = f"says {status}" if status else "does not answer"
    return [fail("server", f"pid {pid} has this home, but at {where} it {said}", f"kill {pid} && quintet serve")]


def own_ports(home: Path) -> list[int]:
    """Those that the home's own server listens on."""
    with contextlib.suppress(ValueError):
        port = urlsplit(_knp(announced(home)).get("url", "")).port
        return [port] if port else []
    return []


def _knp(facts: dict[str, Any]) -> dict[str, str]:
    said = facts.get("knp")
    return {name: text for name, text in said.items() if isinstance(text, str)} if isinstance(said, dict) else {}


def _asked(knp: dict[str, str]) -> str:
    """The status of its answer; nothing where none comes."""
    try:
        with _connected(knp) as connection:
            connection.settimeout(ANSWERS_WITHIN_S)
            connection.sendall(_QUESTION)
            words = connection.recv(64).split()
    except (OSError, ValueError):
        return ""
    return (
        words[1].decode("ascii", "replace") if len(words) > 1 and words[0].startswith(b"HTTP/") else "nothing like HTTP"
    )


def _connected(knp: dict[str, str]) -> socket.socket:
    if "url" in knp:
        parts = urlsplit(knp["url"])
        host = parts.hostname or ""
        return socket.create_connection((_ANYWHERE.get(host, host), parts.port or 80), ANSWERS_WITHIN_S)
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(ANSWERS_WITHIN_S)
    try:
        connection.connect(knp["socket"])
    except BaseException:
        connection.close()
        raise
    return connection
