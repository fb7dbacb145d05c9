"""The client: finds the server, says what was refused, and takes a lost stream up where it was lost."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest

from quintet.cli.attached_view import AttachedView
from quintet.cli.terminal import Screen
from quintet.cli.typed import Typed
from quintet.client import Address, Client, Envelope, find_server
from quintet.client.discovery import parse_address
from quintet.client.envelope import Lines
from quintet.domain.errors import Denied, Invalid, NoServer, NotFound
from quintet.domain.thread import ThreadSettings
from quintet.serving.server import Wish
from tests.fakes.knp_server import Running, knp_server
from tests.faults.processes import one_line, quintet, quintet_running, wait_until, write_home

WITHIN_S = 30.0


def serve(tmp_path: Path) -> Iterator[Running]:
    home = write_home(tmp_path / "home")
    with knp_server(home, Wish(knp_port=0, roots=(str(tmp_path),))) as running:
        (home / "server.json").write_text(json.dumps(running.server.facts()))
        yield running


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    yield from serve(tmp_path)


async def take(client: Client, count: int, **query: str) -> list[Envelope]:
    """So many numbered envelopes, from the beginning."""
    found: list[Envelope] = []
    async with asyncio.timeout(WITHIN_S):
        async for envelope in client.events(0, **query):
            if envelope.numbered:
                found.append(envelope)
            if len(found) == count:
                return found
    raise AssertionError("the stream ended")


async def test_a_local_server_is_found_by_its_file(server: Running, tmp_path: Path) -> None:
    async with Client.local(tmp_path / "home") as client:
        assert (await client.health())["protocol"] == {"id": "knp", "version": "0.1"}
        made = await client.create_thread(title="by the client")
        assert (await client.thread(made["tid"]))["title"] == "by the client"
        assert [t["tid"] for t in (await client.threads())["threads"]] == [made["tid"]]


async def test_where_no_server_is_the_client_says_so(tmp_path: Path) -> None:
    with pytest.raises(NoServer):
        Client.local(tmp_path)
    (tmp_path / "server.json").write_text("{")
    with pytest.raises(NoServer):
        Client.local(tmp_path)
    async with Client.at("http://127.0.0.1:1") as client:
        with pytest.raises(NoServer):
            await client.health()
        with pytest.raises(NoServer):
            await take(client, 1)


async def test_what_is_refused_is_one_of_our_errors(server: Running) -> None:
    url = server.server.url
    async with Client.at(url, server.token) as client:
        with pytest.raises(NotFound):
            await client.thread("thr_nothing")
        with pytest.raises(Invalid):
            await client.threads(limit="-1")
    async with Client.at(url, "wrong") as client:
        with pytest.raises(Denied):
            await client.threads()
        with pytest.raises(Denied):
            await take(client, 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://127.0.0.1:4096", Address("http://127.0.0.1:4096")),
        ("127.0.0.1:4096", Address("http://127.0.0.1:4096")),
        ("http://127.0.0.1:4096/t/abc", Address("http://127.0.0.1:4096", "abc")),
        ("https://box.lan/quintet/t/abc/", Address("https://box.lan/quintet", "abc")),
    ],
)
def test_addresses_are_taken_as_people_paste_them(text: str, expected: Address) -> None:
    assert parse_address(text, environment={}) == expected


@pytest.mark.parametrize("text", ["", "ftp://x", "http://", "http://me:pw@x", "http://x/t/abc/threads", "http://x?a=b"])
def test_what_is_no_address_is_told_so(text: str) -> None:
    with pytest.raises(Invalid):
        parse_address(text, environment={})


def test_a_token_can_come_from_the_environment_which_other_users_do_not_see() -> None:
    assert parse_address("http://x", environment={"QUINTET_TOKEN": "abc"}).token == "abc"


@pytest.mark.req("knp:K13")
async def test_a_stream_goes_on_with_its_cursor_over_a_restart_at_another_port(tmp_path: Path) -> None:
    running = serve(tmp_path)
    server = next(running)
    thread = await asyncio.to_thread(server.call, server.app.threads.create(ThreadSettings(str(tmp_path)), title="a"))
    got: list[Envelope] = []
    news = asyncio.Event()

    async def follow() -> None:
        async with Client.local(tmp_path / "home") as client:
            async for envelope in client.events(0):
                got.append(envelope)
                news.set()

    async def until(title: str) -> None:
        async with asyncio.timeout(WITHIN_S):
            while not any(title in json.dumps(e.data) for e in got):
                news.clear()
                await news.wait()

    following = asyncio.create_task(follow())
    try:
        await asyncio.to_thread(server.call, server.app.threads.rename(thread.id, "before the restart"))
        await until("before the restart")
        await asyncio.to_thread(lambda: next(running, None))
        assert quintet("threads", "rename", thread.id, "while it was away", home=tmp_path / "home").code == 0
        again = serve(tmp_path)
        second = await asyncio.to_thread(next, again)
        await until("while it was away")
        await asyncio.to_thread(second.call, second.app.threads.rename(thread.id, "after the restart"))
        await until("after the restart")
        await asyncio.to_thread(lambda: next(again, None))
    finally:
        following.cancel()
    numbers = [e.seq for e in got if e.numbered]
    assert numbers == sorted(set(numbers))
    assert len([e for e in got if e.kind == "thread.updated"]) == 3


async def test_a_call_finds_the_server_that_was_started_anew_elsewhere_or_has_another_token(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home")
    facts = home / "server.json"
    first = serve(tmp_path)
    next(first)
    async with Client.local(home) as client:
        made = await client.create_thread(title="before")
        first.close()
        with pytest.raises(NoServer):
            await client.threads()
        with knp_server(home, Wish(knp_port=0, roots=(str(tmp_path),))) as running:
            facts.write_text(json.dumps(running.server.facts()))
            assert [t["tid"] for t in (await client.threads())["threads"]] == [made["tid"]]
            running.server.rotate()
            with pytest.raises(Denied):
                await client.threads()
            facts.write_text(json.dumps(running.server.facts()))
            assert (await client.create_thread(title="after"))["title"] == "after"


def test_frames_are_read_however_the_bytes_are_cut() -> None:
    raw = b'id: 17\ndata: {"seq":17,"kind":"a","data":{}}\n\n: comment\n\ndata: {"seq":17,"kind":"b","data":{}}\n\n'
    for size in range(1, len(raw)):
        lines = Lines()
        found = [e for at in range(0, len(raw), size) for e in lines.feed(raw[at : at + size])]
        assert [(e.seq, e.kind, e.numbered) for e in found] == [(17, "a", True), (17, "b", False)]


def test_events_of_a_server_somewhere_can_be_followed(server: Running, tmp_path: Path) -> None:
    url = f"{server.server.url}/t/{server.token}"
    words = ("events", "--follow", "--url", url, "--after", "0")
    elsewhere = tmp_path / "elsewhere"
    with quintet_running(*words, home=elsewhere) as plain, quintet_running(*words, "--json", home=elsewhere) as lines:
        server.call(server.app.threads.create(ThreadSettings(str(tmp_path)), title="a\x1b[31mb"))
        _, _, line = plain.until(lambda text: "thread.created" in text)
        assert "\x1b" not in line
        _, envelope = lines.event("thread.created")
        assert envelope["data"]["thread"]["namespace"] == envelope["namespace"]
    assert not elsewhere.exists(), "a home was made to look at somebody else's"


def test_attach_shows_what_happens_and_answers_what_waits(tmp_path: Path) -> None:
    script = 'scope: turn\ntext: Well,\ntool_call: shell {"command": "touch made"}\n---\ntext: done\n'
    home = write_home(tmp_path / "home", script)
    work = tmp_path / "work"
    work.mkdir()
    with knp_server(home, Wish(knp_port=0, roots=(str(work),))) as running:
        (home / "server.json").write_text(json.dumps(running.server.facts()))
        tid = running.ask("POST", "/threads", {}).json["tid"]
        with quintet_running("attach", tid, home=home) as attached:
            wait_until(lambda: any("attached" in line for line in attached.err), WITHIN_S)
            attached.say("please do it")
            attached.until(lambda line: "touch made" in line)
            attached.until(lambda line: "allow | deny" in line)
            attached.say("allow")
            attached.until(lambda line: "done" in line)
    assert (work / "made").exists()


def test_one_request_is_shown_at_a_time_and_hidden_characters_are_spelled_out() -> None:
    out, forgotten = StringIO(), []
    view = AttachedView(Screen(color=False, out=out, err=out), lambda: bool(forgotten.append(view.asks())))
    with pytest.raises(NotFound):
        view.asks()
    for name in ("int_1", "int_2", "int_1"):
        view.asked({"id": name, "tid": "thr_1", "tool": {"id": "shell"}, "input": {"command": f"rm \u202e {name}"}})
    assert view.asks() == "int_1"
    assert (out.getvalue().count("allow |"), "rm \\u202e int_2" in out.getvalue()) == (1, False)
    view.show(Envelope(16, "approval.resolved", {"id": "int_1", "decision": "deny"}))
    assert view.asks() == "int_2"
    assert "rm \\u202e int_2" in out.getvalue()
    assert "\u202e" not in out.getvalue()
    assert forgotten == ["int_1", "int_2"], "what was typed before a request is shown is no answer to it"


async def test_typed_lines_come_as_they_are_typed_and_a_file_gives_none(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    try:
        os.write(writer, b"one\ntw")
        lines = Typed(reader).lines()
        assert await asyncio.wait_for(anext(lines), WITHIN_S) == "one"
        os.write(writer, b"o\nthree")
        os.close(writer)
        assert [line async for line in lines] == ["two", "three"]
    finally:
        os.close(reader)
    with (tmp_path / "file").open("w+") as file:
        assert [line async for line in Typed(file.fileno()).lines()] == []


async def test_what_was_typed_too_early_can_be_forgotten_and_the_end_is_still_known() -> None:
    reader, writer = os.pipe()
    typed = Typed(reader)
    try:
        os.write(writer, b"one\nallow\nhalf")
        lines = typed.lines()
        assert await asyncio.wait_for(anext(lines), WITHIN_S) == "one"
        assert typed.forget()
        assert not typed.forget()
        os.write(writer, b"way\nyes")
        os.close(writer)
        assert await asyncio.wait_for(anext(lines), WITHIN_S) == "way"
        assert typed.forget() is True
        assert [line async for line in lines] == []
    finally:
        os.close(reader)


def test_a_program_of_the_agent_cannot_attach(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home")
    assert "may not attach" in one_line(quintet("attach", home=home, QUINTET_CALL="call"), 3)


def test_the_home_is_found_as_everywhere_else(tmp_path: Path) -> None:
    (tmp_path / "server.json").write_text('{"pid": 1, "token": "t", "knp": {"url": "http://127.0.0.1:1"}}')
    assert find_server(environment={"QUINTET_HOME": str(tmp_path)}) == Address("http://127.0.0.1:1", "t")
    (tmp_path / "server.json").write_text('{"pid": 1, "token": "t", "knp": {"socket": "/s"}}')
    assert find_server(tmp_path) == Address("http://localhost", "t", "/s")
