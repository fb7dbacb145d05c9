"""The wheel and the sdist: built without a network, enough by themselves, and quiet towards the network at start."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.dependencies import ROOT
from tests.e2e.installation import (
    bare_environment,
    build_sdist,
    build_wheel,
    clean_environment,
    cut_off,
    install,
    ran,
)
from tests.faults.processes import wait_until

pytestmark = pytest.mark.skipif(not cut_off(), reason="a network cannot be cut off here (unshare -n)")
NOT_SHIPPED = {".gitignore"}


class Built(NamedTuple):
    sdist: Path
    wheel: Path
    quintet: Path
    place: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    place = tmp_path_factory.mktemp("built")
    sdist = build_sdist(ROOT, place)
    with tarfile.open(sdist) as archive:
        archive.extractall(place / "unpacked", filter="data")
    (source,) = (place / "unpacked").iterdir()
    wheel = build_wheel(source, place / "wheels")
    return Built(sdist, wheel, install(wheel, bare_environment(place / "bare")), place)


def tracked() -> set[str]:
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("this is no clone, so nobody knows what belongs to it")
    return {name for name in done.stdout.splitlines() if (ROOT / name).exists()}


@pytest.mark.req("security:S55")
def test_the_sdist_holds_every_file_of_the_clone_and_no_leftovers(built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    missing = tracked() - names - NOT_SHIPPED
    assert not missing
    assert not {n for n in names - tracked() if "__pycache__" in n or "/results/" in n or n.endswith(".pyc")}


@pytest.mark.req("security:S55")
def test_the_wheel_from_the_sdist_is_the_wheel_from_the_clone(built: Built) -> None:
    direct = build_wheel(ROOT, built.place / "direct")
    with zipfile.ZipFile(direct) as one, zipfile.ZipFile(built.wheel) as other:
        assert {i.filename: i.CRC for i in one.infolist()} == {i.filename: i.CRC for i in other.infolist()}
        names = one.namelist()
    assert {"quintet/journal/sql/schema.sql", "quintet/cli/__init__.py"} <= set(names)
    assert not [n for n in names if n.startswith(("tests/", "bench/"))]


@pytest.mark.req("security:S55")
def test_installed_into_a_bare_environment_it_works_with_the_network_cut(built: Built, tmp_path: Path) -> None:
    program, home = str(built.quintet), str(tmp_path / "home")
    (tmp_path / "notes.md").write_text("a line about acknowledged things\n")
    assert re.fullmatch(r"quintet \d+\.\d+\.\d+\n", ran([program, "--version"], cwd=tmp_path))
    said = ran([program, "run", "search acknowledged in *.md", "--home", home], cwd=tmp_path)
    assert "notes.md" in said
    told = ran([program, "threads", "search", "acknowledged", "--home", home, "--json"], cwd=tmp_path)
    assert json.loads(told.splitlines()[0])["thread"].startswith("thr_")
    page = built.place / "bare" / "share" / "man" / "man1" / "quintet.1"
    assert page.read_text() == (ROOT / "data" / "share" / "man" / "man1" / "quintet.1").read_text()


@contextmanager
def serving(program: Path, home: Path, *before: str) -> Iterator[subprocess.Popen[bytes]]:
    """`quintet serve`, ready, with no network but loopback."""
    ready = home.with_suffix(".ready")
    argv = [*cut_off(), *before, str(program), "serve", "--knp-port", "0", "--ready-file", str(ready)]
    with subprocess.Popen([*argv, "--home", str(home)], env=clean_environment(), stdout=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: ready.exists() or process.poll() is not None, 60)
            assert ready.exists(), f"the server ended with {process.poll()}"
            yield process
        finally:
            server = json.loads(ready.read_text())["pid"] if ready.exists() else process.pid
            subprocess.run(["kill", "-TERM", str(server)], check=False)
            process.wait(20)


@pytest.mark.req("security:S55")
def test_the_server_starts_with_the_network_cut(built: Built, tmp_path: Path) -> None:
    with serving(built.quintet, tmp_path / "home") as process:
        assert process.poll() is None
    assert process.returncode == 0


# --- no call at start -------------------------------------------------------------------------------------------------
CALLS = "trace=connect,sendto,sendmsg,sendmmsg"
LOOPBACK = re.compile(r'inet_addr\("127\.|"::1"|sin_addr=htonl\(INADDR_LOOPBACK\)')


def can_trace() -> bool:
    program = shutil.which("strace")
    return program is not None and subprocess.run([program, "-qq", "true"], capture_output=True).returncode == 0


def outward(trace: Path) -> list[str]:
    """Calls that go to an address beyond this machine."""
    lines = trace.read_text(errors="replace").splitlines()
    return [line for line in lines if "AF_INET" in line and not LOOPBACK.search(line)]


needs_strace = pytest.mark.skipif(not can_trace(), reason="strace is not here or may not trace")


@needs_strace
@pytest.mark.req("security:S55")
@pytest.mark.parametrize(
    "words", [(), ("--version",), ("run", "help"), ("threads", "list"), ("version",)], ids=" ".join
)
def test_a_command_calls_nobody_by_itself(built: Built, tmp_path: Path, words: tuple[str, ...]) -> None:
    trace = tmp_path / "trace"
    argv = ["strace", "-f", "-qq", "-e", CALLS, "-o", str(trace), str(built.quintet), *words]
    # With the network there: a call that fails at once must not be why none was seen.
    subprocess.run(
        argv, cwd=tmp_path, env=clean_environment(QUINTET_HOME=str(tmp_path / "home"), HOME=str(tmp_path)),
        stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=True,
    )  # fmt: skip
    assert not outward(trace)


@needs_strace
@pytest.mark.req("security:S55")
def test_the_server_calls_nobody_when_it_starts(built: Built, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    with serving(built.quintet, tmp_path / "home", "strace", "-f", "-qq", "-e", CALLS, "-o", str(trace)):
        pass
    assert trace.exists()
    assert not outward(trace)


@needs_strace
@pytest.mark.req("security:S55")
def test_a_call_to_somewhere_else_would_be_seen(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    code = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(('192.0.2.1', 53))"
    argv = [*cut_off(), "strace", "-f", "-qq", "-e", CALLS, "-o", str(trace), "python3", "-c", code]
    subprocess.run(argv, capture_output=True, timeout=60, check=False)
    assert len(outward(trace)) == 1, trace.read_text()
