"""Commands with an allow-list inside a real wall: 127.0.0.2 outside plays the public internet."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator

import pytest

from quintet.domain.item import ResultStatus
from quintet.domain.tool import CallScope
from quintet.domain.turn import Mode
from quintet.tools.shell import ShellTool
from quintet.tools.shell_profile import ShellSettings
from quintet.workspace.sandbox import network
from quintet.workspace.sandbox.profile import Profile
from quintet.workspace.sandbox.wall import Sandbox
from tests.fakes.stage import Stage, needs_bubblewrap, never_began, never_reset, spawn, staged
from tests.fakes.tool_context import FakeToolContext
from tests.fakes.web import PUBLIC, Names, certificates, reply, serving, why_not_our_public

pytestmark = [needs_bubblewrap, pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")]
CURL = "curl -sS --max-time 20"


@pytest.fixture
def stage() -> Iterator[Stage]:
    with staged() as made:
        yield made


class Done:
    def __init__(self, code: int, out: str, err: str, refused: list[str]) -> None:
        self.code, self.out, self.err, self.refused = code, out, err, refused


async def run(stage: Stage, script: str, *hosts: str, names: Names | None = None) -> Done:
    wall = Sandbox(stage.environment, home=str(stage.home), resolve=names or Names(), refuse=why_not_our_public)
    environment = {"PATH": os.environ["PATH"], "HOME": str(stage.user)}
    profile = Profile(str(stage.workspace), network=hosts)
    argv = ("/bin/bash", "-c", script)
    try:
        for _ in range(3):
            async with wall.confined(argv, str(stage.workspace), environment, profile) as inside:
                got = await asyncio.to_thread(spawn, inside.argv, str(stage.workspace), inside.environment)
            if not never_began(got):
                break
        return Done(got.returncode, got.stdout, got.stderr, list(inside.refused))
    finally:
        await wall.close()


@pytest.mark.req("security:S31")
async def test_an_allowed_host_is_reached_and_another_is_not(stage):
    async with serving(reply(200, "hello")) as server:
        good = f"http://page.example.org:{server.port}/"
        bad = f"http://other.example.org:{server.port}/"
        done = await run(stage, f"{CURL} {good}; echo; {CURL} {bad}", f"page.example.org:{server.port}")
    assert done.out.splitlines() == [
        "hello",
        f"Quintet: other.example.org:{server.port} is not in [sandbox] network.",
    ]
    assert done.refused == [f"other.example.org:{server.port} is not in [sandbox] network."]
    assert [seen.headers["host"] for seen in server.seen] == [f"page.example.org:{server.port}"]


@pytest.mark.req("security:S31")
async def test_what_was_not_let_through_is_told_in_the_commands_result(stage):
    wall = Sandbox(stage.environment, home=str(stage.home), resolve=Names(), refuse=why_not_our_public)
    tool = ShellTool(stage.environment, sandbox=wall, settings=ShellSettings(network=("page.example.org:9",)))
    scope = CallScope(str(stage.workspace), "thr_test", Mode.ALLOW)
    urls = " ".join(f"http://host{number}.example.org/" for number in range(12))
    prepared = await tool.prepare({"command": f"{CURL} {urls} -o /dev/null; true", "network": True}, scope)
    context = FakeToolContext(str(stage.workspace))
    context.mode = Mode.ALLOW
    try:
        done = await tool.run(prepared, context)
    finally:
        await wall.close()
    assert done.status is ResultStatus.OK
    told = done.text.splitlines()[-1]
    assert told.startswith("[the network refused it: host0.example.org:80 is not in [sandbox] network, host1.")
    assert told.endswith("host9.example.org:80 is not in [sandbox] network, 2 more]")


@pytest.mark.req("security:S31")
async def test_https_goes_through_a_tunnel_and_the_certificate_is_the_hosts_own(stage):
    shown = certificates(stage.workspace, "page.example.org")
    async with serving(reply(200, "safe"), tls=shown.server) as server:
        good = f"https://page.example.org:{server.port}/"
        bad = f"https://other.example.org:{server.port}/"
        script = f"{CURL} --cacert server.pem {good}; echo; {CURL} --cacert server.pem {bad}"
        done = await run(stage, script, f"page.example.org:{server.port}")
    assert done.out == "safe\n"
    assert "403" in done.err
    assert len(server.seen) == 1


@pytest.mark.req("security:S31")
async def test_a_program_that_knows_proxies_by_other_variables_finds_it_too(stage):
    async with serving(reply(200, "hello")) as server:
        url = f"http://page.example.org:{server.port}/"
        script = f"python3 -c 'import urllib.request as u; print(u.urlopen(\"{url}\", timeout=10).read())'"
        done = await run(stage, script, f"page.example.org:{server.port}")
    assert done.out.strip() == "b'hello'", done.err


@pytest.mark.req("security:S31")
async def test_there_is_no_other_way_out(stage):
    async with serving(reply(200, "hello")) as server, serving(reply(200), "127.0.0.1") as nearby:
        script = f"""
{CURL} --noproxy '*' http://{PUBLIC}:{server.port}/ && echo REACHED
{CURL} --noproxy '*' http://127.0.0.1:{nearby.port}/ && echo REACHED
exec 3<>/dev/tcp/{PUBLIC}/{server.port} && echo REACHED
getent hosts page.example.org && echo RESOLVED
python3 -c 'import socket; socket.create_connection(("8.8.8.8", 53), 2)' && echo REACHED
python3 -c 'import socket; socket.getaddrinfo("page.example.org", 80)' && echo RESOLVED
python3 -c 'import socket; socket.socket(2, 2).sendto(b"x", ("127.0.0.53", 53))'
{CURL} --socks5-hostname 127.0.0.1:3128 http://{PUBLIC}:{server.port}/ && echo REACHED
echo done"""
        done = await run(stage, script, f"page.example.org:{server.port}")
        assert done.out == "done\n"
        assert (server.connections, nearby.connections) == (0, 0)


@pytest.mark.req("security:S31")
async def test_a_name_that_changes_its_address_stays_where_it_was(stage):
    names = Names(rebinding_example_org=[[PUBLIC], ["127.0.0.1"]])
    async with (
        serving(reply(200, "public\n")) as server,
        serving(reply(200, "secret\n"), "127.0.0.1", port=server.port) as victim,
    ):
        url = f"http://rebinding.example.org:{server.port}/"
        done = await run(stage, f"{CURL} {url}; {CURL} {url}; {CURL} {url}", url.split("/")[2], names=names)
        assert done.out.split() == ["public"] * 3
        assert names.asked == ["rebinding.example.org"]
        assert victim.connections == 0


@pytest.mark.req("security:S31")
async def test_an_allowed_name_does_not_lead_to_this_machine(stage):
    names = Names(page_example_org=[["127.0.0.1"]])
    async with serving(reply(200, "secret"), "127.0.0.1") as victim:
        where = f"page.example.org:{victim.port}"
        done = await run(stage, f"{CURL} http://{where}/", where, names=names)
        assert "leads to 127.0.0.1" in done.out
        assert victim.connections == 0


@pytest.mark.req("security:S31", "security:S27b")
async def test_the_proxys_socket_can_be_used_and_nothing_else_of_it(stage):
    script = f"""
rm -f {network.PLACE}/* && echo REMOVED; touch {network.PLACE}/x && echo WRITTEN
find /run /tmp /var/tmp /dev/shm {stage.root} -type s; echo done"""
    done = await run(stage, script, "page.example.org")
    assert done.out.splitlines() == [f"{network.PLACE}/net.sock", "done"]


def with_namespace(name: str) -> list[str]:
    """The processes of this machine that live in a network namespace."""
    found = []
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{process}/ns/net") == name:
                found.append(process)
        except OSError:
            continue
    return found


async def test_the_forwarder_ends_with_the_command_and_leaves_nothing(stage):
    before = set(os.listdir("/tmp"))
    done = await run(stage, "readlink /proc/self/ns/net; exit 7", "page.example.org")
    assert done.code == 7
    name = done.out.strip()
    assert name.startswith("net:[")
    assert name != os.readlink("/proc/self/ns/net")
    assert with_namespace(name) == []
    assert not [left for left in set(os.listdir("/tmp")) - before if left.startswith("quintet-net-")]


async def test_the_command_is_alone_with_itself(stage):
    """No child it did not start, the usual signals, its own variables and no others."""
    script = """python3 -c '
import os, signal
try: os.wait()
except ChildProcessError: print("no child")
'
grep -E "^SigIgn" /proc/self/status; env | grep -c LC_CTYPE; echo "$HTTPS_PROXY $no_proxy"; kill -TERM 0"""
    done = await run(stage, script, "page.example.org")
    assert done.out.splitlines() == [
        "no child",
        f"SigIgn:\t{never_reset()}",
        "0",
        "http://127.0.0.1:3128 localhost,127.0.0.1,::1",
    ]


async def test_the_way_is_still_open_after_the_command_signals_its_whole_group(stage):
    async with serving(reply(200, "hello")) as server:
        script = f"trap '' TERM; kill -TERM 0; {CURL} http://page.example.org:{server.port}/"
        done = await run(stage, script, f"page.example.org:{server.port}")
    assert done.out == "hello"


async def test_a_home_with_a_long_path_has_a_way_out_too(stage, monkeypatch):
    monkeypatch.setattr(network, "LONGEST", 10)
    async with serving(reply(200, "hello")) as server:
        where = f"page.example.org:{server.port}"
        done = await run(stage, f"{CURL} http://{where}/", where)
    assert done.out == "hello"


async def test_an_empty_list_is_no_network(stage):
    done = await run(stage, "env | grep -ci proxy; ls /run/quintet-network 2>&1 >/dev/null | wc -l")
    assert done.out.split() == ["0", "1"]


async def test_many_connections_at_once_all_come_through(stage):
    async with serving(reply(200, "x" * 100_000)) as server:
        url = f"http://page.example.org:{server.port}/"
        script = f"for n in $(seq 20); do {CURL} -o f$n {url} & done; wait; cat f* | wc -c"
        done = await run(stage, script, f"page.example.org:{server.port}")
    assert done.out.strip() == "2000000", done.err
