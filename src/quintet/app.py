"""Composition root: the only file that knows everyone. Opens a home and wires journal, engine, tools and models."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from quintet.config import Config, home_directory, load_config
from quintet.domain.ports import Journal
from quintet.domain.principal import Principal
from quintet.domain.turn import Mode, strictest
from quintet.engine.feed import Feed
from quintet.engine.interactions import DEFAULT_TIMEOUT_S, Interactions, OnAsk
from quintet.engine.policy import Policy, parse_rules
from quintet.engine.projects import Handles, Projects
from quintet.engine.starter import DEFAULT_MAX_STEPS, Starter
from quintet.engine.threads import Threads
from quintet.engine.turns import Turns
from quintet.journal.open import open_journal
from quintet.providers.table import ModelTable
from quintet.tools.builtin import builtin_tools
from quintet.workspace.commands import ShellWords
from quintet.workspace.log import Log
from quintet.workspace.project_root import project_root
from quintet.workspace.secrets import KnownSecrets

PROTOCOLS = {
    "wire": "Kimi Wire",
    "kward": "Kward RPC",
    "knp": "Popcorn KNP",
    "opencode": "OpenCode adapter",
    "kaiak": "Kaiak",
    "cursorclaw": "CursorClaw",
}


def method_rows(protocol: str) -> list[tuple[str, str]]:
    """(method, summary) of each row a protocol serves; none of them is served yet."""
    return []


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        return time.monotonic()
