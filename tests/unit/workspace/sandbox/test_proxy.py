"""The proxy over its real socket, to real servers: 127.0.0.2 plays the public internet, 127.0.0.1 is this machine."""

from __future__ import annotations

import asyncio
import os
import stat
from contextlib import asynccontextmanager

import pytest

from quintet.domain.errors import Invalid
from quintet.workspace.sandbox import proxy
from quintet.workspace.sandbox.allowed_hosts import parse_allowed
from quintet.workspace.sandbox.proxy import allowing
from quintet.workspace.web.urls import parse_url
from tests.fakes.web import PUBLIC, Names, reply, serving, why_not_our_public

WAIT_S = 10.0


class Way:
    def __init__(self, path: str, refused: list[str]) -> None:
        self.path = path
        self.refused = refused

    async def open(self):
        return await asyncio.open_unix_connection(self.path)

    async def say(self, request: str | bytes) -> bytes:
        """All that comes back until the proxy closes."""
        reader, writer = await self.open()
        writer.write(request.encode() if isinstance(request, str) else request)
        try:
            return await asyncio.wait_for(reader.read(), WAIT_S)
        finally:
            writer.close()

    async def get(self, url: str, *headers: str) -> bytes:
        host = url.split("/")[2]
        return await self.say("\r\n".join([f"GET {url} HTTP/1.1", f"Host: {host}", *headers, "", ""]))

    async def tunnel(self, target: str, sent: bytes) -> bytes:
        reader, writer = await self.open()
        writer.write(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), WAIT_S)
            if not head.startswith(b"HTTP/1.1 200"):
                return head + await asyncio.wait_for(reader.read(), WAIT_S)
            writer.write(sent)
            writer.write_eof()
            return await asyncio.wait_for(reader.read(), WAIT_S)
        finally:
            writer.close()


@pytest.fixture
def way(tmp_path_factory):
    @asynccontextmanager
    async def made(*hosts, names=None):
        refused: list[str] = []
        directory = tmp_path_factory.mktemp("p")
        async with allowing(
            hosts, str(directory), resolve=names or Names(), refuse=why_not_our_public, refused=refused.append
        ) as path:
            yield Way(path, refused)

    return made


# --- the list -----------------------------------------------------------------------------------------------------
@pytest.mark.req("security:S31", "security:S35")
@pytest.mark.parametrize(
    ("entry", "url", "covered"),
    [
        ("example.org", "https://example.org/", True),
        ("example.org", "http://example.org/", True),
        ("EXAMPLE.org", "https://example.ORG/", True),
        ("example.org", "https://example.org:8443/", False),
        ("example.org:8443", "https://example.org:8443/", True),
        ("example.org:8443", "https://example.org/", False),
        ("example.org", "https://www.example.org/", False),
        ("example.org", "https://example.org.evil.com/", False),
        ("example.org", "https://evilexample.org/", False),
        ("*.example.org", "https://www.example.org/", True),
        ("*.example.org", "https://a.b.example.org/", True),
        ("*.example.org", "https://example.org/", False),
        ("*.example.org", "https://evilexample.org/", False),
        ("*.example.org", "https://www.example.org.evil.com/", False),
        ("bücher.example.org", "https://xn--bcher-kva.example.org/", True),
        ("10.0.0.7", "https://10.0.0.7/", True),
        ("10.0.0.7", "https://10.0.0.70/", False),
        ("[2606:4700::1]:8080", "http://[2606:4700:0:0::1]:8080/", True),
    ],
)
def test_the_list_is_compared_label_by_label(entry, url, covered):
    (allowed,) = parse_allowed([entry])
    parsed = parse_url(url)
    assert allowed.covers(parsed.host, parsed.port) is covered


@pytest.mark.parametrize(
    "entry", ["", "*", "*.org", "*.1.1.1.1", "a b", "https://a.org", "a.org/", "a.org:99999", "a@b.org"]
)
def test_an_entry_that_is_no_host_is_refused(entry):
    with pytest.raises(Invalid, match=r"sandbox\.network"):
        parse_allowed([entry])


# --- plain requests -----------------------------------------------------------------------------------------------
@pytest.mark.req("security:S31")
async def test_an_allowed_host_is_reached_and_its_answer_comes_back(way):
    async with serving(reply(200, "hello", X_Own="kept")) as server, way(f"page.example.org:{server.port}") as out:
        got = await out.get(f"http://page.example.org:{server.port}/a?b", "Proxy-Authorization: Basic x", "X-Mine: 1")
    assert got.startswith(b"HTTP/1.1 200")
    assert got.endswith(b"hello")
    assert b"X-Own: kept" in got
    seen = server.seen[0]
    assert seen.line == "GET /a?b HTTP/1.1"
    assert seen.headers["host"] == f"page.example.org:{server.port}"
    assert seen.headers["x-mine"] == "1"
    assert "proxy-authorization" not in seen.headers


@pytest.mark.req("security:S31")
async def test_another_host_is_refused_and_told(way):
    async with serving(reply(200)) as server, way("page.example.org") as out:
        got = await out.get(f"http://other.example.org:{server.port}/")
        by_port = await out.get(f"http://page.example.org:{server.port}/")
    assert got.startswith(b"HTTP/1.1 403")
    assert b"is not in [sandbox] network" in got
    assert by_port.startswith(b"HTTP/1.1 403")
    assert out.refused == [
        f"other.example.org:{server.port} is not in [sandbox] network.",
        f"page.example.org:{server.port} is not in [sandbox] network.",
    ]
    assert server.connections == 0


@pytest.mark.req("security:S31")
async def test_the_host_header_is_the_addresses_own_and_no_second_request_rides_along(way):
    async with serving(reply(200, "one")) as server, way(f"page.example.org:{server.port}") as out:
        url = f"http://page.example.org:{server.port}/"
        got = await out.say(
            f"GET {url} HTTP/1.1\r\nHost: inside.example.org\r\n\r\n"
            f"GET {url}two HTTP/1.1\r\nHost: inside.example.org\r\n\r\n"
        )
    assert got.count(b"HTTP/1.1 200") == 1
    assert [seen.headers["host"] for seen in server.seen] == [f"page.example.org:{server.port}"]


async def test_a_body_goes_along(way):
    async with serving(lambda seen: reply(200, seen.body[::-1])) as server, way(f"a.example.org:{server.port}") as out:
        head = f"POST http://a.example.org:{server.port}/ HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n"
        got = await out.say(head.encode() + b"a" + b"b" * 199_999)
    assert got.endswith(b"bbba")
    assert server.seen[0].body == b"a" + b"b" * 199_999


@pytest.mark.parametrize("junk", [b"SSH-2.0\r\n\r\n", b"HTTP/1.1 200 OK\r\n", b""])
async def test_a_server_that_does_not_speak_http_is_told(way, junk):
    async with serving(junk) as server, way(f"a.example.org:{server.port}") as out:
        assert (await out.get(f"http://a.example.org:{server.port}/")).startswith(b"HTTP/1.1 502")


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: page.example.org\r\n\r\n", b"400"),
        (b"GET https://page.example.org/ HTTP/1.1\r\nHost: a\r\n\r\n", b"400"),
        (b"GET ftp://page.example.org/ HTTP/1.1\r\nHost: a\r\n\r\n", b"400"),
        (b"GET http://a@page.example.org/ HTTP/1.1\r\nHost: a\r\n\r\n", b"400"),
        (b"CONNECT page.example.org HTTP/1.1\r\nHost: a\r\n\r\n", b"400"),
        (b"CONNECT page.example.org:x HTTP/1.1\r\nHost: a\r\n\r\n", b"400"),
        (b"CONNECT a@page.example.org:443 HTTP/1.1\r\nHost: a\r\n\r\n", b"400"),
        (b"CONNECT page.example.org:443/x:443 HTTP/1.1\r\nHost: a\r\n\r\n", b"400"),
        (b"CONNECT 2130706433:443 HTTP/1.1\r\nHost: a\r\n\r\n", b"400"),
        (b"\x05\x01\x00 not http\r\n\r\n", b"400"),
        (b"GET http://page.example.org/ HTTP/1.1\r\nX: " + b"y" * 100_000, b"400"),
    ],
)
async def test_what_is_no_proxy_request_is_answered_and_leads_nowhere(way, request_, status):
    names = Names()
    async with way("page.example.org", names=names) as out:
        assert (await out.say(request_)).split()[1] == status
    assert names.asked == []


# --- tunnels ------------------------------------------------------------------------------------------------------
@pytest.mark.req("security:S31")
async def test_a_tunnel_carries_bytes_both_ways_to_an_allowed_host_only(way):
    async with serving(reply(200, "through")) as server, way(f"page.example.org:{server.port}") as out:
        asked = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
        assert (await out.tunnel(f"page.example.org:{server.port}", asked)).endswith(b"through")
        assert (await out.tunnel(f"other.example.org:{server.port}", asked)).startswith(b"HTTP/1.1 403")
        assert server.connections == 1


@pytest.mark.req("security:S31")
async def test_bytes_sent_together_with_the_connect_are_not_lost(way):
    async with serving(reply(200, "through")) as server, way(f"page.example.org:{server.port}") as out:
        target = f"page.example.org:{server.port}"
        got = await out.say(f"CONNECT {target} HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert got.endswith(b"through")


# --- names and addresses ------------------------------------------------------------------------------------------
@pytest.mark.req("security:S31")
async def test_a_name_stays_with_the_address_it_had_first(way):
    names = Names(rebinding_example_org=[[PUBLIC], ["127.0.0.1"]])
    async with (
        serving(reply(200, "public")) as server,
        serving(reply(200, "secret"), "127.0.0.1", port=server.port) as victim,
        way(f"rebinding.example.org:{server.port}", names=names) as out,
    ):
        for _ in range(3):
            assert (await out.get(f"http://rebinding.example.org:{server.port}/")).endswith(b"public")
        assert names.asked == ["rebinding.example.org"]
        assert victim.connections == 0


@pytest.mark.req("security:S31")
@pytest.mark.parametrize("answers", [["127.0.0.1"], ["10.0.0.1"], [PUBLIC, "127.0.0.1"], ["169.254.169.254"], ["::1"]])
async def test_an_allowed_name_that_leads_to_this_machine_or_its_network_is_refused(way, answers):
    async with (
        serving(reply(200), "127.0.0.1") as victim,
        way(f"page.example.org:{victim.port}", names=Names(page_example_org=[answers])) as out,
    ):
        got = await out.get(f"http://page.example.org:{victim.port}/")
        assert got.startswith(b"HTTP/1.1 403")
        assert len(out.refused) == 1
        assert out.refused[0].startswith("page.example.org leads to ")
        assert victim.connections == 0


@pytest.mark.req("security:S31")
async def test_an_address_of_this_machine_is_reached_only_when_it_is_listed_itself(way):
    async with serving(reply(200, "mine"), "127.0.0.1") as server:
        async with way(f"127.0.0.1:{server.port}") as out:
            assert (await out.get(f"http://127.0.0.1:{server.port}/")).endswith(b"mine")
        async with way("127.0.0.1", "*.example.org") as out:
            assert (await out.get(f"http://127.0.0.1:{server.port}/")).startswith(b"HTTP/1.1 403")
    assert server.connections == 1


async def test_a_name_that_was_not_found_is_looked_up_again(way):
    answers = [OSError(-3, "Temporary failure in name resolution"), [PUBLIC]]

    async def shaky(name):
        found = answers.pop(0)
        if isinstance(found, OSError):
            raise found
        return found

    async with serving(reply(200, "there")) as server, way(f"a.example.org:{server.port}", names=shaky) as out:
        first = await out.get(f"http://a.example.org:{server.port}/")
        assert first.startswith(b"HTTP/1.1 502")
        assert b"Temporary failure" in first
        assert (await out.get(f"http://a.example.org:{server.port}/")).endswith(b"there")


@pytest.mark.req("security:S31")
async def test_of_very_many_names_the_one_asked_for_longest_ago_is_forgotten(way, monkeypatch):
    monkeypatch.setattr(proxy, "PINNED", 2)
    names = Names()
    async with serving(reply(200, "there")) as server, way(f"*.example.org:{server.port}", names=names) as out:
        for name in ("a", "b", "a", "c", "a", "b"):  # `a` is asked for again and again, so `b` goes
            assert (await out.get(f"http://{name}.example.org:{server.port}/")).endswith(b"there")
    assert names.asked == [f"{name}.example.org" for name in ("a", "b", "c", "b")]


# --- limits and the end -------------------------------------------------------------------------------------------
async def test_no_more_connections_than_allowed_are_served_at_once(way, monkeypatch):
    monkeypatch.setattr(proxy, "CONNECTIONS", 2)
    async with serving(reply(200, "there")) as server, way(f"a.example.org:{server.port}") as out:
        held = [await out.open() for _ in range(2)]
        # The third may come before the proxy has met the first two.
        said = [await out.get(f"http://a.example.org:{server.port}/") for _ in range(20)]
        assert said[-1].startswith(b"HTTP/1.1 503")
        for _, writer in held:
            writer.close()


async def test_a_silent_connection_is_answered_in_time(way, monkeypatch):
    monkeypatch.setattr(proxy, "HEAD_S", 0.05)
    async with way("a.example.org") as out:
        assert (await out.say(b"")).startswith(b"HTTP/1.1 408")


@pytest.mark.req("security:S19")
async def test_the_socket_is_private_and_gone_afterwards(way):
    async with way("a.example.org") as out:
        assert stat.S_IMODE(os.stat(out.path).st_mode) == 0o600
    assert not os.path.exists(out.path)


async def test_open_tunnels_are_cut_at_the_end(way):
    held = asyncio.Event()

    async def silent(reader, writer):
        await reader.read()
        held.set()
        writer.close()

    listener = await asyncio.start_server(silent, PUBLIC, 0)
    port = listener.sockets[0].getsockname()[1]
    try:
        async with way(f"a.example.org:{port}") as out:
            reader, writer = await out.open()
            writer.write(f"CONNECT a.example.org:{port} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), WAIT_S)
        assert await asyncio.wait_for(reader.read(), WAIT_S) == b""
        writer.close()
        await asyncio.wait_for(held.wait(), WAIT_S)
    finally:
        listener.close()
