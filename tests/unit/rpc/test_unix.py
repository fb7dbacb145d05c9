import asyncio
import fcntl
import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from quintet.rpc.unix import UnixServer
from quintet.rpc.unix_path import MAX_PATH, SocketTrouble

from .conftest import within


async def echo(source: Any, sink: Any) -> None:
    while data := await source.read():
        await sink.write(data)


@asynccontextmanager
async def serving(path: Path, **options: Any) -> AsyncIterator[UnixServer]:
    server = UnixServer(path, options.pop("handle", echo), **options)
    await server.start()
    try:
        yield server
    finally:
        await within(server.close())


async def talk(path: Path, data: bytes = b"hello") -> bytes:
    """What comes back; nothing if we are turned away."""

    async def conversation() -> bytes:
        reader, writer = await asyncio.open_unix_connection(path)
        try:
            writer.write(data)
            writer.write_eof()
            return await reader.read()
        except ConnectionError:
            return b""
        finally:
            writer.close()

    got: bytes = await within(conversation())
    return got


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture
def umask() -> Any:
    before = os.umask(0)
    yield os.umask
    os.umask(before)


@pytest.mark.req("security:S19")
@pytest.mark.parametrize("mask", [0, 0o022, 0o777])
async def test_the_socket_is_0600_in_a_0700_directory_whatever_the_umask(
    tmp_path: Path, umask: Callable[[int], int], mask: int
) -> None:
    umask(mask)
    if mask:
        (tmp_path / "run").mkdir(mode=0o755)
    path = tmp_path / "run" / "s.sock"
    async with serving(path):
        assert mode(path) == 0o600
        assert mode(path.parent) == 0o700
        assert await talk(path) == b"hello"


@pytest.mark.req("security:S19")
async def test_the_socket_is_never_looser_than_0600_not_even_for_a_moment(
    tmp_path: Path, umask: Callable[[int], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    original = os.chmod

    def watching(path: Any, *args: Any, **options: Any) -> None:
        if Path(path).is_socket():
            seen.append(mode(Path(path)))
        original(path, *args, **options)

    monkeypatch.setattr(os, "chmod", watching)
    async with serving(tmp_path / "s.sock", named_by_user=True):
        assert seen == [0o600]


async def test_a_directory_the_user_named_is_left_as_it_is(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    async with serving(tmp_path / "s.sock", named_by_user=True):
        assert mode(tmp_path) == 0o755


async def test_a_directory_that_is_a_symlink_is_not_trusted(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(SocketTrouble, match="not a directory of this user"):
        await UnixServer(tmp_path / "link" / "s.sock", echo).start()


def leave_stale(path: Path) -> None:
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(path))
    dead.close()


async def test_a_stale_socket_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "s.sock"
    leave_stale(path)
    async with serving(path):
        assert await talk(path) == b"hello"


async def test_a_live_socket_is_refused_and_keeps_working(tmp_path: Path) -> None:
    path = tmp_path / "s.sock"
    async with serving(path):
        with pytest.raises(SocketTrouble, match="another server is listening"):
            await UnixServer(path, echo).start()
        assert await talk(path) == b"hello"


async def test_of_many_servers_that_find_a_stale_socket_exactly_one_serves(tmp_path: Path) -> None:
    path = tmp_path / "s.sock"
    leave_stale(path)
    won: list[bool] = []
    everyone_tried = threading.Barrier(6)

    def contend() -> None:
        async def main() -> None:
            server = UnixServer(path, echo)
            try:
                await server.start()
                won.append(await talk(path) == b"hello")
            except SocketTrouble:
                pass
            await asyncio.to_thread(everyone_tried.wait, 10)
            await server.close()

        asyncio.run(main())

    threads = [threading.Thread(target=contend) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join, 15)
    assert won == [True]
    assert not path.exists()


async def test_a_server_waits_while_another_is_replacing_the_socket(tmp_path: Path) -> None:
    path = tmp_path / "s.sock"
    leave_stale(path)
    stale = path.stat().st_ino
    other = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    server = UnixServer(path, echo)
    starting = asyncio.create_task(server.start())
    for _ in range(50):
        await asyncio.sleep(0)
    assert not starting.done()
    assert path.stat().st_ino == stale
    os.close(other)
    await within(starting)
    assert await talk(path) == b"hello"
    await within(server.close())


async def test_what_is_not_a_socket_is_never_deleted(tmp_path: Path) -> None:
    path = tmp_path / "s.sock"
    path.write_text("precious")
    with pytest.raises(SocketTrouble, match="not a socket"):
        await UnixServer(path, echo).start()
    assert path.read_text() == "precious"
    link = tmp_path / "link.sock"
    link.symlink_to("s.sock")
    with pytest.raises(SocketTrouble, match="not a socket"):
        await UnixServer(link, echo).start()


async def test_a_path_of_108_bytes_is_one_clear_error_and_107_are_served(tmp_path: Path) -> None:
    room = MAX_PATH - len(os.fsencode(tmp_path)) - 1
    if room < 1:
        pytest.skip("the temporary directory itself is too long")
    with pytest.raises(SocketTrouble, match="longer than 107 bytes"):
        await UnixServer(tmp_path / ("s" * (room + 1)), echo).start()
    async with serving(tmp_path / ("s" * room)):
        assert await talk(tmp_path / ("s" * room)) == b"hello"


async def test_a_directory_that_cannot_be_used_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(SocketTrouble, match="cannot serve"):
        await UnixServer(tmp_path / "missing" / "s.sock", echo, named_by_user=True).start()


@pytest.mark.req("security:S19")
async def test_a_peer_of_another_uid_is_turned_away(tmp_path: Path) -> None:
    log: list[tuple[str, object]] = []
    path = tmp_path / "s.sock"
    async with serving(path, uid=os.geteuid() + 1, log=lambda *entry: log.append(entry)):
        assert await talk(path) == b""
    assert log == [("peer of another user refused", os.geteuid())]


@pytest.mark.req("security:S19")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
async def test_another_real_user_is_turned_away_even_if_the_file_lets_them_in(tmp_path: Path) -> None:
    script = (
        "import os, socket, sys; os.setgid(65534); os.setuid(65534)\n"
        "s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print('connected', flush=True)\n"
        "try: print(s.recv(9))\n"
        "except ConnectionError: print('reset')"
    )
    handled = asyncio.Event()

    async def greet(source: Any, sink: Any) -> None:
        handled.set()
        await sink.write(b"secret")

    # Not under tmp_path: every parent must let the other user pass.
    directory = Path("/tmp") / f"quintet-test-{os.getpid()}"
    directory.mkdir(mode=0o755)
    try:
        path = directory / "s.sock"
        async with serving(path, named_by_user=True, handle=greet):
            path.chmod(0o666)
            command = [sys.executable, "-c", script, str(path)]
            done = await asyncio.to_thread(subprocess.run, command, capture_output=True, timeout=10)
            assert done.stdout.splitlines()[0] == b"connected", done.stderr
            assert b"secret" not in done.stdout
            assert not handled.is_set()
    finally:
        directory.rmdir()


async def test_the_file_is_removed_at_close_only_if_it_is_still_ours(tmp_path: Path) -> None:
    path = tmp_path / "s.sock"
    async with serving(path):
        pass
    assert not path.exists()
    async with serving(path):
        path.unlink()
        leave_stale(path)
    assert path.is_socket()
    async with serving(path):
        path.unlink()


async def test_connections_over_the_cap_are_closed_and_places_come_back(tmp_path: Path) -> None:
    path = tmp_path / "s.sock"
    async with serving(path, max_connections=2) as server:
        held = [await asyncio.open_unix_connection(path) for _ in range(2)]
        for reader, writer in held:
            writer.write(b"x")
            assert await within(reader.readexactly(1)) == b"x"
        assert await talk(path) == b""
        held[0][1].close()
        async with asyncio.timeout(5):
            while len(server._peers) == 2:
                await asyncio.sleep(0)
        assert await talk(path) == b"hello"
        held[1][1].close()


async def test_connect_and_close_probes_and_failing_handlers_are_harmless(tmp_path: Path) -> None:
    path = tmp_path / "s.sock"
    failed: list[str] = []

    async def careless(source: Any, sink: Any) -> None:
        data = await source.read()
        if data == b"fail":
            raise RuntimeError("inside")
        await sink.write(data)

    async with serving(path, handle=careless, log=lambda what, about: failed.append(what)):
        for _ in range(20):
            probe = socket.socket(socket.AF_UNIX)
            probe.connect(str(path))
            probe.close()
        assert await talk(path, b"fail") == b""
        assert await talk(path) == b"hello"
    assert failed == ["connection failed"]


async def test_closing_ends_every_connection_within_its_bound_even_a_stubborn_one(tmp_path: Path) -> None:
    path = tmp_path / "s.sock"
    let_go = asyncio.Event()

    async def stubborn(source: Any, sink: Any) -> None:
        await sink.write(b"x")
        try:
            await source.read()
        except asyncio.CancelledError:
            await let_go.wait()

    server = UnixServer(path, stubborn)
    await server.start()
    reader, writer = await asyncio.open_unix_connection(path)
    assert await within(reader.readexactly(1)) == b"x"
    await within(server.close(0.05), 2)
    assert not path.exists()
    let_go.set()
    assert await within(reader.read()) == b""
    writer.close()


async def test_a_peer_accepted_just_before_the_close_is_closed_too(tmp_path: Path) -> None:
    server = UnixServer(tmp_path / "s.sock", echo)
    ours, theirs = socket.socketpair()
    server._serve(theirs)  # its task has not had its first step when the close comes
    await within(server.close())
    assert theirs.fileno() == -1
    ours.close()
