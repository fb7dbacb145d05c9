"""The check-up: asks every room that has something to look at, and puts their rows in order. Opens no engine, takes no
lock and brings nothing up to date; knows nothing of how rows are shown.
"""

from __future__ import annotations

import asyncio
import os
import platform
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from quintet.config import Config, load_config, refuse_strangers
from quintet.domain.checkup import Health, Row, fail, ok, warn
from quintet.domain.errors import Busy, QuintetError
from quintet.domain.ports import Clock
from quintet.engine.redaction import Redactor
from quintet.engine.rules import parse_rules
from quintet.workspace.credentials import Credentials
from quintet.workspace.key_store import KeyStore
from quintet.workspace.pasteable import Pasteable
from quintet.workspace.secrets import KnownSecrets

OLDEST_PYTHON = (3, 11)
PORTS = {"knp": 4096}  # of the protocols that `quintet serve` listens for in this version
TELL_EVERY_S = 0.5
DAY_MS = 24 * 3600 * 1000
Progress = Callable[[str, int, int], None]
Look = Callable[[], Awaitable[list[Row]]]


class Checkup:
    """One look at one home. `ports` and `local` are the usual ones unless a test brings its own."""

    def __init__(
        self,
        home: str,
        environment: Mapping[str, str],
        clock: Clock,
        progress: Progress,
        *,
        on_defect: Callable[[BaseException], object] = lambda _: None,
        ports: Mapping[str, int] = PORTS,
        local: Mapping[str, int] | None = None,
    ) -> None:
        self._home = home
        self._environment = environment
        self._clock = clock
        self._progress = progress
        self._on_defect = on_defect
        self._ports = ports
        self._local = local
        self._config, self._config_rows = _read_config(home)
        self._ours = _may_be_ours(home)
        self._credentials = Credentials(home, KeyStore(environment))

    async def rows(self, *, deep: bool = False) -> list[Row]:
        from quintet.workspace.clock_check import ClockCheck
        from quintet.workspace.home_check import look_at_home
        from quintet.workspace.leftovers import look_at_leftovers
        from quintet.workspace.program_check import look_at_programs

        clock = ClockCheck(self._clock)
        local = asyncio.create_task(self._local_rows())
        sandbox = asyncio.create_task(self._sandbox_rows())
        looks: list[tuple[str, Look]] = [
            ("python", lambda: _in_thread(python_rows)),
            ("home", lambda: _in_thread(lambda: look_at_home(self._home))),
            ("config", lambda: _in_thread(lambda: self._config_rows)),
            ("journal", lambda: self._journal_rows(deep=deep)),
            ("leftovers", lambda: _in_thread(lambda: look_at_leftovers(self._home))),
            ("sandbox", lambda: self._watched("trying the sandbox", sandbox)),
            ("server", lambda: _in_thread(self._server_rows)),
            ("keys", lambda: _in_thread(self._key_rows)),
            ("local models", lambda: self._watched("asking local model servers", local)),
            ("programs", lambda: _in_thread(lambda: look_at_programs(self._environment))),
            ("clock", lambda: _in_thread(lambda: [clock.row()])),
            ("mirrors", lambda: _in_thread(self._mirror_rows)),
        ]
        try:
            return [row for name, look in looks for row in await self._safely(name, look)]
        finally:
            for task in (local, sandbox):
                task.cancel()
            await asyncio.gather(local, sandbox, return_exceptions=True)

    async def _safely(self, name: str, look: Look) -> list[Row]:
        """One look that fails unexpectedly must not hide what the others find."""
        try:
            return await look()
        except Exception as error:
            self._on_defect(error)
            words = f"could not be looked at ({type(error).__name__}); the log in the home has more, if there is one"
            return [fail(name, words, "Report it, with what this command prints")]

    async def _watched(self, doing: str, looking: asyncio.Task[list[Row]]) -> list[Row]:
        """Its rows; whoever watches is told what is waited for."""
        while not looking.done():
            self._progress(doing, 0, 1)
            await asyncio.wait({looking}, timeout=TELL_EVERY_S)
        return looking.result()

    def mend(self) -> list[str]:
        """Do what is safe to do; what was done, in words. Never touches a journal that may be damaged."""
        from quintet.workspace.home_check import close_to_others
        from quintet.workspace.leftovers import clear_leftovers

        done: list[str] = []
        if not self._ours:
            return done  # a project, or somebody's own directory: its rights are no business of ours
        if not os.path.lexists(self._home):
            os.makedirs(os.path.dirname(self._home), exist_ok=True)
            os.mkdir(self._home, 0o700)
            done.append(f"made {self._home}")
        if os.path.isdir(self._home):
            done += [f"{_inside(n)} is yours alone now" for n in close_to_others(self._home)]
            done += [f"removed {name}, left by a process that died" for name in clear_leftovers(self._home)]
        return done

    def pasteable(self) -> Callable[[str], str]:
        """What makes any words fit to be shown to others. Opens stored keys, to be able to recognise them."""
        providers = self._config.providers.values()
        secrets = KnownSecrets(
            self._environment,
            keys=[p.api_key for p in providers if p.api_key],
            key_names=[p.api_key_env for p in providers if p.api_key_env],
            credentials=self._credentials,
        )
        return Pasteable(self._environment, Redactor(secrets.known_values()).text).text

    async def _journal_rows(self, *, deep: bool) -> list[Row]:
        from quintet.journal.examining import examine

        rows = await asyncio.to_thread(examine, Path(self._home), deep=deep, progress=self._progress)
        if deep and rows[0].health is Health.OK:
            rows += await self._blob_rows()
        return rows

    async def _blob_rows(self) -> list[Row]:
        """Contents that may be gone by now, because they are older than they are kept, are not asked for."""
        from quintet.journal.examining import changes_since
        from quintet.workspace.blob_check import look_at_blobs

        since_ms = self._clock.now_ms() - int(self._config.retention.checkpoints_days * DAY_MS)
        try:
            changes = await asyncio.to_thread(changes_since, Path(self._home), since_ms)
        except Busy as error:
            return [warn("kept contents", error.message, "quintet doctor --deep")]
        digests = {state.digest for change in changes for state in (change.before, change.after) if state.kept}
        return [await asyncio.to_thread(look_at_blobs, self._home, self._clock, digests, self._progress)]

    async def _sandbox_rows(self) -> list[Row]:
        from quintet.workspace.sandbox.wall import Sandbox

        chosen = self._config.sandbox
        home = self._home if self._ours else ""  # trying it out makes directories there
        sandbox = Sandbox(self._environment, home=home, enabled=chosen.mode != "off", writable=chosen.writable)
        try:
            state, findings = await sandbox.state(), await sandbox.rows()
        finally:
            await sandbox.close()
        worse = fail if chosen.required else warn
        if not state.works:
            without = "commands are refused" if chosen.required else "each command is asked about and runs unconfined"
            return [worse("sandbox", f"{state.why.rstrip('.')}; {without}", state.fix)]
        # What a wall that stands has less of than it could is no fault: its row says what would make it better.
        rows = [ok("sandbox", f"{state.kind} works")]
        for found in findings:
            name = f"sandbox: {found.name}"
            missing = found.name == "writable" and not found.ok
            rows.append(warn(name, found.detail, found.fix) if missing else ok(name, found.detail, found.fix))
        return rows

    def _server_rows(self) -> list[Row]:
        from quintet.rpc.http.binding import bind
        from quintet.workspace.port_check import look_at_ports
        from quintet.workspace.server_check import look_at_server, own_ports

        home = Path(self._home)
        return [*look_at_server(home), *look_at_ports(self._ports, bind, own_ports(home))]

    def _key_rows(self) -> list[Row]:
        from quintet.providers.key_check import look_at_keys
        from quintet.providers.table import ModelTable

        store, place = KeyStore(self._environment), self._credentials.directory
        try:
            table = ModelTable(
                self._config.providers,
                self._config.models,
                default_model=self._config.default_model,
                environment=self._environment,
                directory=self._home,
                stored=self._credentials,
            )
            return look_at_keys(table, lambda name: self._credentials.is_sealed(name) and not store.usable)
        except OSError as error:
            return [fail("keys", f"{place} cannot be read: {error.strerror}", f"chmod u+rwx '{place}'")]

    async def _local_rows(self) -> list[Row]:
        from quintet.providers.local_check import look_at_local

        return await (look_at_local() if self._local is None else look_at_local(self._local))

    def _mirror_rows(self) -> list[Row]:
        from quintet.journal.peeking import mirror_sizes
        from quintet.workspace.mirror_check import look_at_mirrors

        try:
            return look_at_mirrors(mirror_sizes(Path(self._home)))
        except QuintetError:
            return []  # the journal's own row says what is wrong with it


async def _in_thread(look: Callable[[], list[Row]]) -> list[Row]:
    return await asyncio.to_thread(look)


def python_rows() -> list[Row]:
    import apsw

    from quintet.journal.opening import OLDEST_SQLITE

    said = f"{platform.python_version()}, SQLite {apsw.sqlite_lib_version()}"
    if sys.version_info[:2] < OLDEST_PYTHON:
        return [fail("python", f"{said}: too old", "Install Python 3.11 or newer, then `pip install .` with it")]
    if tuple(int(n) for n in apsw.sqlite_lib_version().split(".")) < OLDEST_SQLITE:
        return [fail("python", f"{said}: this SQLite is too old for several processes", "pip install --upgrade apsw")]
    return [ok("python", said)]


def _may_be_ours(home: str) -> bool:
    try:
        refuse_strangers(home)
    except QuintetError:
        return False
    return True


def _read_config(home: str) -> tuple[Config, list[Row]]:
    path = os.path.join(home, "config.toml")
    try:
        config = load_config(home)
        parse_rules(config.policy.rules)
    except QuintetError as error:
        return Config(), [fail("config", error.message, f"Edit {path}: {error.step}")]
    if config.warnings:
        return config, [warn("config", words, f"Edit {path}") for words in config.warnings]
    return config, [ok("config", "config.toml is right" if os.path.exists(path) else "none; the defaults hold")]


def _inside(name: str) -> str:
    return "the home" if name == "." else name
