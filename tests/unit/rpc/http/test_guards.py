"""Host, Origin and fetch site: exact lists, whatever a request says of itself."""

from __future__ import annotations

import pytest

from quintet.rpc.http.faults import Forbidden
from quintet.rpc.http.guards import Guards, is_loopback

GUARDS = Guards(
    bound=[("127.0.0.1", 4096)], hosts=["Box.lan:4096"], origins=["https://ui.example"], proxies=["10.0.0.1"]
)


def allowed(headers: dict[str, str], guards: Guards = GUARDS, *, twice: str = "", unix: bool = False) -> bool:
    counts = {name: 2 if name == twice else 1 for name in headers}
    try:
        guards.check(headers, counts, unix=unix)
    except Forbidden:
        return False
    return True


@pytest.mark.req("security:S2")
@pytest.mark.parametrize("host", ["127.0.0.1:4096", "localhost:4096", "LocalHost:4096", "[::1]:4096", "box.lan:4096"])
def test_hosts_on_the_list_are_heard(host: str) -> None:
    assert allowed({"host": host})


@pytest.mark.req("security:S2")
@pytest.mark.parametrize(
    "host",
    [
        "",
        "127.0.0.1",
        "127.0.0.1:4097",
        "evil.example",
        "evil.example:4096",
        "127.0.0.1.evil.example:4096",
        "localhost.evil.example:4096",
        "127.0.0.1:4096@evil.example",
        "127.0.0.1:4096 ",
        "0.0.0.0:4096",
        "[::]:4096",
        "2130706433:4096",
        "box.lan",
    ],
)
def test_any_other_host_is_refused(host: str) -> None:
    assert not allowed({"host": host})


@pytest.mark.req("security:S2")
def test_a_request_without_a_host_or_with_two_is_refused() -> None:
    assert not allowed({})
    assert not allowed({"host": "localhost:4096"}, twice="host")
    assert allowed({"host": "localhost"}, unix=True)
    assert not allowed({"host": "evil.example"}, unix=True)


@pytest.mark.req("security:S4")
@pytest.mark.parametrize(
    ("origin", "heard"),
    [
        ("http://127.0.0.1:4096", True),
        ("http://localhost:4096", True),
        ("https://ui.example", True),
        ("null", False),
        ("", False),
        ("http://localhost:3000", False),
        ("http://localhost", False),
        ("https://127.0.0.1:4096", False),
        ("http://localhost:4096.evil.example", False),
        ("https://ui.example.evil.example", False),
        ("https://evil.example", False),
        ("file://", False),
    ],
)
def test_an_origin_is_heard_only_if_it_is_on_the_list(origin: str, heard: bool) -> None:
    assert allowed({"host": "localhost:4096", "origin": origin}) is heard


@pytest.mark.req("security:S4")
def test_an_origin_is_not_trusted_because_the_host_says_the_same() -> None:
    assert not allowed({"host": "evil.example:4096", "origin": "http://evil.example:4096"})
    assert not allowed({"host": "localhost:4096", "origin": "https://ui.example"}, twice="origin")


@pytest.mark.req("security:S4")
def test_pages_of_another_site_are_refused_also_where_a_browser_sends_no_origin() -> None:
    assert not allowed({"host": "localhost:4096", "sec-fetch-site": "cross-site"})
    assert allowed({"host": "localhost:4096", "sec-fetch-site": "same-origin"})
    assert allowed({"host": "localhost:4096", "sec-fetch-site": "none"})
    assert allowed({"host": "localhost:4096", "sec-fetch-site": "cross-site", "origin": "https://ui.example"})


@pytest.mark.req("security:S5")
def test_a_loopback_peer_is_local_only_where_nobody_passed_the_request_on() -> None:
    assert GUARDS.peer(("127.0.0.1", 5), {}).local
    for header in ("x-forwarded-for", "forwarded"):
        assert not GUARDS.peer(("127.0.0.1", 5), {header: "127.0.0.1"}).local, header
    assert not GUARDS.peer(("192.168.0.9", 5), {}).local


@pytest.mark.req("security:S5")
def test_only_a_named_proxy_is_believed() -> None:
    assert GUARDS.peer(("10.0.0.1", 5), {"x-forwarded-for": "1.1.1.1, 203.0.113.7"}).address == "203.0.113.7"
    assert GUARDS.peer(("10.0.0.2", 5), {"x-forwarded-for": "203.0.113.7"}).address == "10.0.0.2"
    assert not GUARDS.peer(("10.0.0.1", 5), {"x-forwarded-for": "127.0.0.1"}).local


def test_an_address_for_everybody_is_no_name_for_anybody() -> None:
    everywhere = Guards(bound=[("0.0.0.0", 80)])
    assert not allowed({"host": "0.0.0.0:80"}, everywhere)
    assert allowed({"host": "localhost"}, everywhere)
    assert allowed({"host": "localhost:80"}, everywhere)


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True)]
    + [(host, False) for host in ("0.0.0.0", "::", "10.0.0.1", "100.64.0.1", "127.evil.com", "localhost.evil.com")],
)
def test_loopback_is_told_by_address_not_by_how_a_name_begins(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback
