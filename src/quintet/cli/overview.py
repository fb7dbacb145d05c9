"""quintet alone: what it is, the state of things, and three commands that fit it. Looks only; makes nothing, asks no
network.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import msgspec

from quintet import __version__
from quintet.cli.event_json import encode_line
from quintet.cli.invoke import Invocation
from quintet.cli.terminal import safe_line
from quintet.config import Config, home_directory, load_config, refuse_foreign, refuse_strangers
from quintet.domain.errors import QuintetError
from quintet.journal.peeking import Glance, glance
from quintet.workspace.credentials import Credentials
from quintet.workspace.environment import find_program
from quintet.workspace.key_store import KeyStore
from quintet.workspace.server_lock import announced

VERSION = 1  # of the JSON
TITLE_LENGTH = 50
NEXT = 3
UNKNOWN = "not known"


class Overview(msgspec.Struct):
    """The state of things. `problem` is what keeps something of it from being known."""

    home: str
    there: bool
    threads: Glance | None = None
    model: str = UNKNOWN
    keys: tuple[str, ...] = ()
    bubblewrap: bool = False
    server: str = ""
    problem: str = ""
    newest_is_here: bool = False  # the newest thread works in this directory

    @property
    def connected(self) -> bool:
        """Whether anything but the offline model is there."""
        return bool(self.keys) or not self.model.startswith(("offline", UNKNOWN))


def add_flags(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    parser.add_argument("--version", action="store_true", help="the version, in one line")


async def run(invocation: Invocation) -> int:
    if invocation.flags.version:
        invocation.screen.line(f"quintet {__version__}")
        return 0
    state = look(home_directory(invocation.home, os.environ))
    following = next_commands(state)
    if invocation.json:
        facts = {"v": VERSION, "quintet": __version__, **msgspec.structs.asdict(state)}
        invocation.screen.raw(encode_line({**facts, "next": [command for command, _ in following]}))
        return 0
    for head, text in _lines(state, following):
        invocation.screen.row(head, text)
    return 0


def look(home: str) -> Overview:
    state = Overview(home, os.path.isdir(home))
    config = Config()
    try:
        refuse_foreign(home)
        refuse_strangers(home)
    except QuintetError as error:
        state.problem = error.message
        return state
    try:
        config = load_config(home)
    except QuintetError as error:
        state.problem = error.message
    try:
        state.threads = glance(Path(home))
        state.newest_is_here = state.threads is not None and state.threads.newest_cwd == _here()
    except QuintetError as error:
        state.problem = error.message
    try:
        _models(state, config)
    except OSError as error:
        state.problem = f"The stored keys cannot be read: {error.strerror}."
    if state.there and not state.problem and not os.access(home, os.W_OK):
        state.problem = "The home cannot be written: everything can be read, nothing can be started."
    state.bubblewrap = config.sandbox.mode != "off" and find_program("bwrap", os.environ) is not None
    said = announced(Path(home)).get("knp")
    state.server = str(said.get("url") or said.get("socket", "")) if isinstance(said, dict) else ""
    return state


def _here() -> str:
    try:
        return os.path.realpath(os.getcwd())
    except FileNotFoundError:
        return ""  # it is gone


def _models(state: Overview, config: Config) -> None:
    from quintet.providers.table import ModelTable

    table = ModelTable(
        config.providers,
        config.models,
        default_model=config.default_model,
        environment=os.environ,
        directory=state.home,
        stored=Credentials(state.home, KeyStore(os.environ)),
    )
    state.model = table.default
    state.keys = tuple(name for name in table.providers() if table.key_sources(name))


def next_commands(state: Overview) -> list[tuple[str, str]]:
    """What fits best, the most urgent first."""
    threads = state.threads or Glance()
    wanted: list[tuple[bool, str, str]] = [
        (bool(state.problem), "quintet doctor", "what is wrong, and what mends it"),
        (threads.waiting > 0, "quintet approvals list", "what waits for your answer"),
        (threads.interrupted > 0, "quintet threads list", "which threads were cut off"),
        (not threads.threads, "quintet demo", "see it work, in half a minute, without a key"),
        (not state.connected, "quintet auth set anthropic", "store a provider's key; it is tried first"),
        (not state.connected, "quintet models --local", "models of this machine, with the lines to paste"),
        (not state.bubblewrap, "quintet doctor", "why commands run without a wall, and what mends it"),
        (state.connected, 'quintet run "explain this repository"', "one turn, here"),
        (state.newest_is_here, 'quintet run -c "go on"', "go on with the newest thread here"),
        (True, "quintet threads list", "what there is"),
        (True, "quintet doctor", "whether everything works here"),
        (True, "quintet --help", "all commands"),
    ]
    chosen: dict[str, str] = {}
    for fits, command, why in wanted:
        if fits:
            chosen.setdefault(command, why)
    return list(chosen.items())[:NEXT]


def _lines(state: Overview, following: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """What stands before each line, and the line."""
    width = max(len(command) for command, _ in following)
    return [
        (f"Quintet {__version__}: one coding-agent server that every front end can use.", ""),
        ("", ""),
        ("  home     ", f"{safe_line(_short(state.home))}{'' if state.there else '  (made when it is first needed)'}"),
        ("  threads  ", _threads(state)),
        ("  model    ", _model(state)),
        ("  sandbox  ", _sandbox(state)),
        ("  server   ", state.server or "none runs (none is needed)"),
        *([("  problem  ", safe_line(_short(state.problem)))] if state.problem else []),
        ("", ""),
        ("Next:", ""),
        *((f"  {command:<{width}}  ", why) for command, why in following),
        ("", ""),
        ("All commands: quintet --help", ""),
    ]


def _threads(state: Overview) -> str:
    threads = state.threads
    if threads is None:
        return "none yet" if not state.problem else UNKNOWN
    counts = (
        (threads.running, "running"),
        (threads.interrupted, "cut off"),
        (threads.waiting, "waiting for an answer"),
    )
    said = [str(threads.threads), *(f"{count} {words}" for count, words in counts if count)]
    if not threads.newest:
        return ", ".join(said)
    title = safe_line(threads.newest)
    short = title if len(title) <= TITLE_LENGTH else f"{title[:TITLE_LENGTH]}…"
    return f"{', '.join(said)}; the newest: {short} ({_ago(threads.newest_ms)})"


def _model(state: Overview) -> str:
    keys = f"keys found: {', '.join(safe_line(name) for name in state.keys)}" if state.keys else "no keys found"
    offline = "built in, needs no key" if state.model.startswith("offline") else ""
    return f"{safe_line(state.model)} ({'; '.join(filter(None, (offline, keys)))})"


def _sandbox(state: Overview) -> str:
    if state.bubblewrap:
        return "bubblewrap is there; `quintet doctor` tries it"
    return "none: each command is asked about"


def _short(text: str) -> str:
    """The person's own directory as ~."""
    own = os.environ.get("HOME", "").rstrip("/")
    return text.replace(f"{own}/", "~/") if own else text


def _ago(at_ms: int) -> str:
    seconds = max(0, int(time.time() - at_ms / 1000))
    for length, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= length:
            return f"{seconds // length} {unit} ago"
    return "just now"
