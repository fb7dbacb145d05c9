"""Nothing gets out: every attempt of the table, from inside a real wall around a real workspace, and self-approval."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import secrets
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from quintet.domain.tool import CallScope
from quintet.tools.builtin import builtin_tools
from quintet.workspace import environment
from quintet.workspace.history import WorkspaceHistory
from quintet.workspace.sandbox.wall import Sandbox
from tests.fakes.clock import SettableClock
from tests.fakes.stage import BARE, SECRET, Stage, needs_bubblewrap, spawn, staged
from tests.fakes.tool_context import FakeToolContext
from tests.fakes.waiting import until
from tests.faults.corpus_escapes import ESCAPES, PLANTS, PROGRAMS, Escape, Plant

pytestmark = [pytest.mark.fault, needs_bubblewrap]


class Neighbour:
    """Like a server of Quintet: a process with a secret, listening wherever one could listen."""

    def __init__(self, stage: Stage) -> None:
        self.hits: list[str] = []
        self.stage = stage
        self._open: list[socket.socket] = []
        name = f"quintet-stage-{secrets.token_hex(4)}"
        elsewhere = stage.root / "elsewhere"
        elsewhere.mkdir()
        self.shared = Path("/dev/shm") / name
        self.temporary = Path("/tmp") / f"{name}.sock"
        self.paths = [
            stage.home / "run" / "server.sock",
            self.temporary,
            elsewhere / "s.sock",
            stage.workspace / "w.sock",
        ]
        self.abstract = name
        for path in self.paths:
            self._listen(socket.AF_UNIX, str(path))
        self._listen(socket.AF_UNIX, f"\0{name}")
        self.port = self._listen(socket.AF_INET, ("127.0.0.1", 0)).getsockname()[1]
        self.shared.write_text("x")
        self.process = subprocess.Popen(
            [sys.executable, "-c", "import sys; sys.stdin.read()"],
            stdin=subprocess.PIPE,
            env={**os.environ, "VICTIM_SECRET": SECRET, "QUINTET_HOME": str(stage.home)},
        )

    def _listen(self, family: int, address: str | tuple[str, int]) -> socket.socket:
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.bind(address)
        listener.listen(16)
        self._open.append(listener)
        threading.Thread(target=self._serve, args=(listener, str(address)), daemon=True).start()
        return listener

    def _serve(self, listener: socket.socket, name: str) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection = listener.accept()[0]
                self.hits.append(name)
                connection.close()

    def variables(self) -> dict[str, str]:
        return {
            "OUT": str(self.stage.outside),
            "WS": str(self.stage.workspace),
            "USERDIR": str(self.stage.user),
            "QHOME": str(self.stage.home),
            "VICTIM": str(self.process.pid),
            "PORT": str(self.port),
            "ABSTRACT": self.abstract,
            "SOCKETS": " ".join(map(str, self.paths)),
            "PY": BARE,
        }

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(10)
        for listener in self._open:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self.shared.unlink()
        self.temporary.unlink()


@pytest.fixture(scope="module")
def stages() -> Iterator[contextlib.ExitStack]:
    """Removed together at the end: whoever builds a wall at the same time may just have looked up our sockets, and
    would miss a file that is gone."""
    with contextlib.ExitStack() as stack:
        yield stack


@pytest.fixture
def stage(stages: contextlib.ExitStack) -> Stage:
    return stages.enter_context(staged())


@pytest.fixture
def neighbour(stage: Stage) -> Iterator[Neighbour]:
    made = Neighbour(stage)
    try:
        yield made
    finally:
        made.close()


def picture(stage: Stage) -> dict[str, str]:
    """Everything a command must not change: what is outside, and git's own settings."""
    seen = {}
    for top in (stage.outside, stage.user, stage.home, stage.workspace / ".git" / "hooks"):
        for place, _, files in os.walk(top):
            if "/run/" in f"{place}/":
                continue  # the sandbox's own notes
            facts = os.stat(place)
            seen[place] = f"{facts.st_mode} {facts.st_ino}"
            for name in files:
                path = os.path.join(place, name)
                facts = os.stat(path)
                seen[path] = (
                    f"{facts.st_mode} {facts.st_mtime_ns} {hashlib.sha256(Path(path).read_bytes()).hexdigest()}"
                )
    seen["config"] = (stage.workspace / ".git" / "config").read_text()
    return seen


def names(stage: Stage) -> set[str]:
    return {entry.name for entry in stage.workspace.iterdir()}


PROTECTED = {".claude", ".codex", ".mcp.json", ".envrc", ".quintet", ".vscode", ".bashrc", ".idea", "openclaw.json"}


@pytest.mark.req("reliability:R19", "security:S26")
@pytest.mark.parametrize("escape", ESCAPES, ids=[escape.name for escape in ESCAPES])
async def test_no_attempt_gets_out(escape: Escape, stage: Stage, neighbour: Neighbour) -> None:
    before = picture(stage)
    for network in ("off", "on") if escape.network else ("off",):
        done = await stage.run(escape.script, stage.profile(network=network), variables=neighbour.variables())
        assert "ESCAPED" not in done.stdout, (network, done)
        assert "sandbox could not" not in done.stderr
    assert neighbour.hits == []
    assert neighbour.process.poll() is None
    assert picture(stage) == before
    assert not names(stage) & PROTECTED


@pytest.mark.parametrize("escape", [e for e in ESCAPES if e.harmless], ids=[e.name for e in ESCAPES if e.harmless])
def test_the_attempts_are_sound_where_there_is_no_wall(escape: Escape, stage: Stage, neighbour: Neighbour) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(stage.user), **neighbour.variables()}
    done = spawn(("/bin/bash", "-c", escape.script), str(stage.workspace), environment)
    assert "ESCAPED" in done.stdout, done


@pytest.mark.req("reliability:R19")
def test_there_are_at_least_thirty_attempts_with_names_of_their_own() -> None:
    assert len({escape.name for escape in ESCAPES}) == len(ESCAPES) >= 30


@pytest.fixture
def path(stage: Stage, plant: Plant, monkeypatch: pytest.MonkeyPatch) -> str:
    """PATH as a plant wants it, also for this process; and what it wants outside, where no command could put it. The
    directories outside count as ones that only the machine's owner writes."""
    tools, further = stage.outside / "tools", stage.outside / "further"
    if plant.link == "directory":
        tools.symlink_to(stage.workspace / "bin")
    elif plant.link:
        tools.mkdir()
        further.mkdir()
        for name in PROGRAMS.split():
            (further / name).symlink_to(stage.workspace / "bin" / name)
            (tools / name).symlink_to((further if plant.link == "twice" else stage.workspace / "bin") / name)
        monkeypatch.setattr(environment, "SYSTEM", {*environment.SYSTEM, str(tools), str(further)})
    value = f"{plant.path.format(ws=stage.workspace, out=stage.outside)}:{os.environ['PATH']}"
    monkeypatch.setenv("PATH", value)
    monkeypatch.chdir(stage.workspace)
    return value


by_name = pytest.mark.parametrize("plant", PLANTS, ids=[plant.name for plant in PLANTS])


async def quintet_runs_its_own_programs(stage: Stage, path: str) -> None:
    """Each of them, as Quintet does it: bwrap, git, rg and bash, and control groups, where it tries a program too."""
    variables = {**stage.environment, "PATH": path}
    assert (await Sandbox(variables, home=str(stage.home)).state()).works
    await WorkspaceHistory(str(stage.home), variables, SettableClock()).secure(str(stage.workspace))
    tools = {tool.spec.name: tool for tool in builtin_tools(home=str(stage.home), environment=variables)}
    for name, arguments in (("grep", {"pattern": "zzz"}), ("glob", {"pattern": "*"}), ("shell", {"command": ":"})):
        prepared = await tools[name].prepare(arguments, CallScope(str(stage.workspace)))
        await tools[name].run(prepared, FakeToolContext(str(stage.workspace)))


@pytest.mark.req("reliability:R19", "security:S20", "security:S28")
@by_name
async def test_no_program_that_a_command_planted_runs_outside(plant: Plant, stage: Stage, path: str) -> None:
    done = await stage.run(plant.script, variables={"OUT": str(stage.outside), "WS": str(stage.workspace)})
    assert done.stdout == "PLANTED\n", done
    await quintet_runs_its_own_programs(stage, path)
    assert not (stage.outside / "planted").exists(), (stage.outside / "planted").read_text()


@by_name
def test_the_plants_are_sound_where_programs_are_simply_looked_up(plant: Plant, stage: Stage, path: str) -> None:
    variables = {"OUT": str(stage.outside), "WS": str(stage.workspace)}
    spawn(("/bin/bash", "-c", plant.script), str(stage.workspace), {**variables, "PATH": os.environ["PATH"]})
    for name in PROGRAMS.split():
        subprocess.run(
            [name], cwd=stage.workspace, env={"PATH": path}, timeout=10, check=False, stdin=subprocess.DEVNULL
        )
    assert (stage.outside / "planted").read_text().split() == PROGRAMS.split()


SELF_APPROVAL = [
    ("the database", 'cat "$QHOME/quintet.db" || cat "$QHOME"/*'),
    ("the file that tells where the server is", 'cat "$QHOME/server.json"'),
    ("the run directory", 'ls -A "$QHOME" | grep .'),
    ("the server's environment", 'cat "/proc/$VICTIM/environ"'),
    ("the server's open files", 'ls -l "/proc/$VICTIM/fd" && cat "/proc/$VICTIM/root/etc/hostname"'),
    ("a token in the own environment", "env | grep -i canary"),
]


@pytest.mark.req("security:S27b", "security:S45")
@pytest.mark.parametrize(("what", "script"), SELF_APPROVAL, ids=[row[0] for row in SELF_APPROVAL])
@pytest.mark.parametrize("network", ["off", "on"])
async def test_nothing_to_approve_with_is_seen_inside(
    what: str, script: str, network: str, stage: Stage, neighbour: Neighbour
) -> None:
    done = await stage.run(script, stage.profile(network=network), variables=neighbour.variables())
    assert done.returncode != 0, what
    assert SECRET not in done.stdout


@pytest.mark.req("security:S27b")
async def test_quintet_itself_run_inside_finds_no_home_to_decide_in(stage: Stage, neighbour: Neighbour) -> None:
    program = Path(sys.executable).with_name("quintet")
    script = f'{program} --home "$QHOME" approvals allow int_1; {program} --home "$QHOME" approvals list'
    done = await stage.run(script, variables=neighbour.variables())
    assert done.returncode != 0
    assert picture(stage)[str(stage.home / "quintet.db")]
    assert {entry.name for entry in stage.home.iterdir()} == {"run", "server.json", "quintet.db", "credentials"}


class Later:
    """Somebody who listens anew, or for the first time, when a command has begun."""

    def __init__(self, *paths: Path) -> None:
        self._paths = paths
        self._open: list[socket.socket] = []
        self.hits = 0

    def listen(self) -> None:
        for path in self._paths:
            path.unlink(missing_ok=True)
            made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            made.bind(str(path))
            made.listen(16)
            made.setblocking(False)
            self._open.append(made)

    def close(self) -> None:
        for made in self._open:
            with contextlib.suppress(BlockingIOError):
                made.accept()[0].close()
                self.hits += 1
            made.close()
        for path in self._paths:
            path.unlink(missing_ok=True)


@pytest.mark.req("security:S27b")
@pytest.mark.parametrize("where", ["where sockets are", "the home", "the temporary directory", "the user's"])
async def test_a_socket_made_after_the_command_began_is_not_reached(stage: Stage, where: str) -> None:
    name = f"q-{secrets.token_hex(4)}"
    directory = {
        "where sockets are": stage.root / "elsewhere",
        "the home": stage.home / "run",
        "the temporary directory": Path("/tmp"),
        "the user's": stage.user / ".colima",
    }[where]
    directory.mkdir(exist_ok=True)
    first, second = directory / f"{name}.sock", directory / f"{name}-new.sock"
    later = Later(first, second)
    later.listen()  # both before and after: the second time is the one that counts
    (directory / f"{name}-new.sock").unlink()
    attempt = (
        "import socket, sys\n"
        "for path in sys.argv[1:]:\n"
        "    try: socket.socket(1, 1).connect(path); print('ESCAPED', path)\n"
        "    except OSError as error: print(type(error).__name__)"
    )
    script = f'echo begun > begun; read -r line < go; "$PY" -c "$ATTEMPT" {first} {second}'
    os.mkfifo(stage.workspace / "go")
    running = asyncio.ensure_future(stage.run(script, stage.profile(network="on"), variables={"ATTEMPT": attempt}))
    try:
        await until((stage.workspace / "begun").exists)
        later.listen()
        await asyncio.to_thread((stage.workspace / "go").write_text, "go\n")
        done = await asyncio.wait_for(running, 30)
    finally:
        later.close()
    assert "ESCAPED" not in done.stdout, done
    assert done.stdout.count("Error") == 2
    assert later.hits == 0


@pytest.mark.req("security:S27b")
async def test_a_socket_bound_by_a_relative_name_is_covered_too(stage: Stage) -> None:
    place = stage.root / "elsewhere"
    place.mkdir()
    (place / "other").touch()  # so the directory itself is seen
    script = (
        "import socket,sys; s=socket.socket(1,1); s.bind('r.sock'); s.listen(1); print(1, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([BARE, "-c", script], cwd=place, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stdout.readline()
        connect = '"$PY" -c "import socket,sys; socket.socket(1,1).connect(sys.argv[1])" ' + str(place / "r.sock")
        done = await stage.run(connect, stage.profile(network="on"))
        assert server.stdin is not None
        server.stdin.close()
    assert done.returncode == 1
    assert "ConnectionRefused" in done.stderr or "Permission" in done.stderr
