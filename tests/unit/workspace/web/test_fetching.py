"""Real servers on two loopback addresses: 127.0.0.2 plays the public internet, 127.0.0.1 is this machine."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import random
import ssl
import zlib

import pytest

from quintet.domain.errors import Invalid
from quintet.workspace.web import exchange
from quintet.workspace.web.fetching import Fetcher
from quintet.workspace.web.resolving import Unreachable
from quintet.workspace.web.urls import parse_url
from tests.fakes.web import PUBLIC, Names, certificates, reply, serving, why_not_our_public


def fetcher(names: Names | None = None, **more) -> Fetcher:
    return Fetcher(resolve=names or Names(), refuse=why_not_our_public, **more)


async def fetch(url: str, names: Names | None = None, **more):
    return await asyncio.wait_for(fetcher(names, **more).fetch(parse_url(url)), 20)


async def test_a_page_comes_with_its_status_headers_and_body():
    async with serving(reply(200, "hello", Content_Type="text/plain")) as server:
        got = await fetch(f"http://page.example.org:{server.port}/a?b=c")
    assert (got.answer.status, got.answer.body) == (200, b"hello")
    assert got.answer.headers["content-type"] == "text/plain"
    assert server.seen[0].line == "GET /a?b=c HTTP/1.1"
    assert server.seen[0].headers["host"] == f"page.example.org:{server.port}"


# --- names and addresses ------------------------------------------------------------------------------------------
@pytest.mark.req("security:S33")
async def test_a_name_that_changes_its_address_is_looked_up_once_and_never_reaches_this_machine():
    names = Names(rebinding_example_org=[[PUBLIC], ["127.0.0.1"]])
    async with (
        serving(reply(200, "public")) as public,
        serving(reply(200, "secret"), "127.0.0.1", port=public.port) as victim,
    ):
        got = await fetch(f"http://rebinding.example.org:{public.port}/", names)
        assert got.answer.body == b"public"
        assert names.asked == ["rebinding.example.org"]
        with pytest.raises(Invalid, match="this machine"):
            await fetch(f"http://rebinding.example.org:{public.port}/", names)
        assert victim.connections == 0


@pytest.mark.req("security:S33")
async def test_a_redirect_to_the_same_name_is_looked_up_and_checked_anew():
    names = Names(rebinding_example_org=[[PUBLIC], ["127.0.0.1"]])
    async with (
        serving(reply(302, Location="/again")) as public,
        serving(reply(200, "secret"), "127.0.0.1", port=public.port) as victim,
    ):
        with pytest.raises(Invalid, match=r"leads to 127\.0\.0\.1"):
            await fetch(f"http://rebinding.example.org:{public.port}/", names)
        assert (public.connections, victim.connections) == (1, 0)


@pytest.mark.req("security:S33")
async def test_a_mixed_answer_connects_to_nobody():
    names = Names(mixed_example_org=[[PUBLIC, "127.0.0.1"]])
    async with serving(reply(200)) as public:
        with pytest.raises(Invalid, match="this machine"):
            await fetch(f"http://mixed.example.org:{public.port}/", names)
        assert public.connections == 0


async def test_a_dead_address_gives_way_to_the_next():
    def refuse(address):
        return ""

    async with serving(reply(200, "second")) as server:
        names = Names(two_example_org=[["127.0.0.3", PUBLIC]])
        got = await Fetcher(resolve=names, refuse=refuse).fetch(parse_url(f"http://two.example.org:{server.port}/"))
    assert got.answer.body == b"second"


async def test_a_name_nobody_knows_is_told():
    async def unknown(name):
        raise OSError(-2, "Name or service not known")

    with pytest.raises(Unreachable, match=r"nowhere\.example\.org cannot be found: Name or service not known"):
        await Fetcher(resolve=unknown).fetch(parse_url("https://nowhere.example.org/"))


@pytest.mark.req("security:S33")
async def test_without_anything_injected_this_machine_is_refused():
    async with serving(reply(200), "127.0.0.1") as server:
        with pytest.raises(Invalid, match="this machine"):
            await Fetcher().fetch(parse_url(f"http://127.0.0.1:{server.port}/"))
        with pytest.raises(Invalid, match="without a dot"):
            await Fetcher().fetch(parse_url(f"http://localhost:{server.port}/"))
        assert server.connections == 0


# --- redirects ----------------------------------------------------------------------------------------------------
def chain(seen):
    """/3 sends on to /2, /2 to /1, /1 to /0, which answers."""
    left = int(seen.line.split()[1].strip("/"))
    return reply(302, Location=f"/{left - 1}") if left else reply(200, "there")


@pytest.mark.req("security:S33")
async def test_three_redirects_are_followed_and_a_fourth_is_not():
    async with serving(chain) as server:
        got = await fetch(f"http://page.example.org:{server.port}/3")
        assert got.answer.body == b"there"
        assert [hop[-2:] for hop in got.hops] == ["/3", "/2", "/1"]
        with pytest.raises(Invalid, match="more than 3"):
            await fetch(f"http://page.example.org:{server.port}/4")
        assert [seen.line.split()[1] for seen in server.seen[4:]] == ["/4", "/3", "/2", "/1"]


@pytest.mark.req("security:S33")
@pytest.mark.parametrize(
    ("location", "why"),
    [
        ("http://127.0.0.1:{port}/", "not encrypted"),
        ("https://127.0.0.1:{port}/", "this machine"),
        ("https://169.254.169.254/latest/meta-data/", "metadata"),
        ("https://[::1]:{port}/", "this machine"),
        ("https://[::ffff:127.0.0.1]:{port}/", "hides"),
        ("https://2130706433:{port}/", "four plain"),
        ("https://localhost:{port}/", "without a dot"),
        ("https://metadata.google.internal/", "nearby"),
        ("https://inside.example.org:{port}/", "private"),
        ("https://page.example.org@127.0.0.1:{port}/", "user name"),
        ("//127.0.0.1:{port}/", "not encrypted"),
        ("file:///etc/passwd", "file: URLs"),
        ("gopher://127.0.0.1:{port}/_x", "gopher: URLs"),
        ("https://127.0.0.1:{port}\\.example.org/", "backslash"),
    ],
)
async def test_a_redirect_is_checked_as_wholly_as_the_first_address(location, why):
    names = Names(inside_example_org=[["10.0.0.1"]])
    async with serving(reply(200, "secret"), "127.0.0.1") as victim:
        to = location.format(port=victim.port)
        async with serving(reply(302, Location=to)) as server:
            with pytest.raises(Invalid, match=r".") as refused:
                await fetch(f"http://page.example.org:{server.port}/", names)
            assert why in refused.value.line()
            assert (server.connections, victim.connections) == (1, 0)


@pytest.mark.req("security:S33")
async def test_encryption_is_never_given_up_on_the_way(tmp_path):
    shown = certificates(tmp_path, "page.example.org")
    async with serving(reply(200, "plain")) as plain:
        location = f"http://page.example.org:{plain.port}/"
        async with serving(reply(301, Location=location), tls=shown.server) as server:
            with pytest.raises(Invalid, match="not encrypted"):
                await fetch(f"https://page.example.org:{server.port}/", tls=shown.client)
        assert plain.connections == 0


@pytest.mark.req("security:S34")
async def test_cookies_of_one_hop_do_not_reach_the_next_and_no_credential_is_ever_sent():
    async with serving(reply(200, "there")) as second:
        to = reply(307, Location=f"http://page.example.org:{second.port}/", Set_Cookie="a=b", WWW_Authenticate="Basic")
        async with serving(to) as first:
            await fetch(f"http://page.example.org:{first.port}/")
    for seen in (*first.seen, *second.seen):
        assert set(seen.headers) == {"host", "user-agent", "accept", "accept-encoding", "connection"}


# --- certificates -------------------------------------------------------------------------------------------------
async def test_a_certificate_is_checked_against_the_name_that_was_asked_for(tmp_path):
    shown = certificates(tmp_path, "page.example.org", PUBLIC)
    async with serving(reply(200, "safe"), tls=shown.server) as server:
        good = await fetch(f"https://page.example.org:{server.port}/", tls=shown.client)
        by_number = await fetch(f"https://{PUBLIC}:{server.port}/", tls=shown.client)
        assert good.answer.body == by_number.answer.body == b"safe"
        with pytest.raises(Unreachable, match="does not prove who it is"):
            await fetch(f"https://other.example.org:{server.port}/", tls=shown.client)
        with pytest.raises(Unreachable, match="does not prove who it is"):
            await fetch(f"https://page.example.org:{server.port}/", tls=ssl.create_default_context())
        assert len(server.seen) == 2


# --- limits -------------------------------------------------------------------------------------------------------
async def test_an_answer_that_says_it_is_too_large_is_not_read():
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {exchange.LARGEST + 1}\r\n\r\n".encode()
    async with serving(head) as server:
        with pytest.raises(Unreachable, match="larger than 10 MiB"):
            await fetch(f"http://page.example.org:{server.port}/")


async def test_an_answer_that_does_not_say_its_size_is_cut_off_at_the_limit():
    endless = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + b"x" * (exchange.LARGEST + 1)
    async with serving(endless) as server:
        with pytest.raises(Unreachable, match="larger than 10 MiB"):
            await fetch(f"http://page.example.org:{server.port}/")


@pytest.mark.parametrize(("mebibytes", "limit"), [(5, "larger than 1 MiB"), (64, "larger than 6 MiB")])
async def test_a_small_answer_that_unpacks_to_a_huge_one_is_refused(mebibytes, limit):
    bomb = gzip.compress(b"\0" * (mebibytes * 1024 * 1024), 9, mtime=0)
    async with serving(reply(200, bomb, Content_Encoding="gzip")) as server:
        with pytest.raises(Unreachable, match=limit):
            await fetch(f"http://page.example.org:{server.port}/")


async def test_an_answer_that_unpacks_to_more_than_anybody_reads_is_refused():
    noise = random.Random(1).randbytes(1024 * 1024)
    packed = gzip.compress(noise * 3 + b"\0" * (20 * 1024 * 1024), 1, mtime=0)
    async with serving(reply(200, packed, Content_Encoding="gzip")) as server:
        with pytest.raises(Unreachable, match="larger than 20 MiB"):
            await fetch(f"http://page.example.org:{server.port}/")


async def test_a_page_of_one_letter_is_no_bomb():
    packed = gzip.compress(b"x" * (512 * 1024), 9, mtime=0)
    async with serving(reply(200, packed, Content_Encoding="gzip")) as server:
        assert len((await fetch(f"http://page.example.org:{server.port}/")).answer.body) == 512 * 1024


def raw_deflate(data: bytes) -> bytes:
    machine = zlib.compressobj(wbits=-15)
    return machine.compress(data) + machine.flush()


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzip.compress(b"hello", mtime=0)),
        ("gzip", gzip.compress(b"hel", mtime=0) + gzip.compress(b"lo", mtime=0)),
        ("deflate", zlib.compress(b"hello")),
        ("deflate", raw_deflate(b"hello")),
        ("identity", b"hello"),
        ("deflate, gzip", gzip.compress(zlib.compress(b"hello"), mtime=0)),
    ],
)
async def test_packed_answers_are_unpacked(encoding, packed):
    async with serving(reply(200, packed, Content_Encoding=encoding)) as server:
        assert (await fetch(f"http://page.example.org:{server.port}/")).answer.body == b"hello"


@pytest.mark.parametrize(
    ("encoding", "packed", "why"),
    [
        ("br", b"x", "was not asked for"),
        ("gzip", b"not gzip", "cannot be unpacked"),
        ("gzip", gzip.compress(b"hello" * 100, mtime=0)[:-9], "cannot be unpacked"),
    ],
)
async def test_an_answer_packed_badly_is_told(encoding, packed, why):
    async with serving(reply(200, packed, Content_Encoding=encoding)) as server:
        with pytest.raises(Unreachable, match=why):
            await fetch(f"http://page.example.org:{server.port}/")


@pytest.mark.parametrize("junk", [b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000, b"", b"\0" * 100])
async def test_what_does_not_speak_http_is_told(junk):
    async with serving(junk) as server:
        with pytest.raises(Unreachable):
            await fetch(f"http://page.example.org:{server.port}/")


async def test_an_answer_that_breaks_off_is_no_answer():
    async with serving(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf") as server:
        with pytest.raises(Unreachable, match="does not speak HTTP"):
            await fetch(f"http://page.example.org:{server.port}/")


async def test_a_server_that_never_answers_is_left():
    hanging = asyncio.Event()

    async def silent(reader, writer):
        await hanging.wait()
        writer.close()

    listener = await asyncio.start_server(silent, PUBLIC, 0)
    port = listener.sockets[0].getsockname()[1]
    try:
        with pytest.raises(Unreachable, match=r"took longer than 0\.2 s"):
            await fetch(f"http://page.example.org:{port}/", total_s=0.2)
    finally:
        hanging.set()
        listener.close()


async def test_nothing_of_a_fetch_is_left_open_when_it_is_cancelled():
    arrived, gone = asyncio.Event(), asyncio.Event()

    async def silent(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        arrived.set()
        with contextlib.suppress(OSError):
            await reader.read()
        gone.set()
        writer.close()

    listener = await asyncio.start_server(silent, PUBLIC, 0)
    port = listener.sockets[0].getsockname()[1]
    task = asyncio.create_task(fetcher().fetch(parse_url(f"http://page.example.org:{port}/")))
    try:
        await asyncio.wait_for(arrived.wait(), 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(gone.wait(), 10)
    finally:
        listener.close()
