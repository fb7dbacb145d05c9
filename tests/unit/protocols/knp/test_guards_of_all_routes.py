"""Every route, as the table has it, behind every guard. A route that is added is swept too, or cannot be added."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import msgspec
import pytest

from quintet.protocols.knp.server import TABLE
from quintet.rpc.http.bodies import MOST_DEPTH
from quintet.rpc.http.connections import LARGEST_HEAD
from quintet.rpc.http.routes import HOLDER, PUBLIC, Route
from tests.fakes.knp_server import Running, knp_server, wait_for
from tests.faults.processes import write_home

ALL = list(TABLE)
TAKE_BODIES = [route for route in ALL if route.body is not None]
each_route = pytest.mark.parametrize("route", ALL, ids=lambda route: route.name)
PUBLIC_ONES = {"GET /health"}


def path_of(route: Route) -> str:
    return re.sub(r"\{[a-zA-Z_]+\}", "nothing-of-this-name", route.path)


@pytest.mark.req("security:S1", "security:S3")
def test_only_health_is_public() -> None:
    assert {route.name for route in ALL if route.who == PUBLIC} == PUBLIC_ONES
    assert all(route.who in (PUBLIC, HOLDER) for route in ALL)


@pytest.mark.req("security:S3")
@each_route
def test_without_a_credential_a_route_says_only_that_it_needs_one(server: Running, route: Route) -> None:
    if route.who == PUBLIC:
        return
    for headers in ({}, {"Authorization": "Bearer "}, {"Authorization": "Basic Zm9vOmJhcg=="}):
        reply = server.ask(route.verb, path_of(route), auth=False, headers=headers)
        assert reply.status in (401, 429), reply
        assert reply.json["error"]["code"] in ("unauthorized", "overloaded")
    if route.verb == "GET":
        assert server.ask("HEAD", path_of(route), auth=False).status == 401


@pytest.mark.req("security:S3")
def test_what_is_not_there_needs_a_credential_too(server: Running) -> None:
    for verb, path in (("GET", "/nothing"), ("POST", "/health"), ("GET", "/t/wrong/threads"), ("OPTIONS", "/threads")):
        assert server.ask(verb, path, auth=False).status in (401, 429), path
    assert server.ask("GET", "/nothing").status == 404
    wrong = server.ask("POST", "/health")
    assert (wrong.status, wrong.headers["allow"]) == (405, "GET")


@pytest.mark.req("security:S23-http")
def test_no_route_takes_a_program(server: Running) -> None:
    """What a client could name a program by: a new route with one of these must first ask a person, with its digest."""
    programs = {"command", "cmd", "argv", "args", "exec", "executable", "program", "script", "env", "environment"}
    for route in TAKE_BODIES:
        named = {field.name for field in msgspec.structs.fields(route.body)}
        assert not named & programs, route.name
    for path in ("/mcp", "/mcp/add", "/plugins", "/hooks", "/pty", "/command"):
        body = {"name": "x", "command": ["touch", "made"]}
        assert server.ask("POST", path, body).status == 404, path


@pytest.mark.req("security:S1")
def test_health_says_nothing_of_threads_or_paths(server: Running) -> None:
    reply = server.ask("GET", "/health", auth=False)
    assert reply.json == {"ok": True, "version": reply.json["version"], "protocol": {"id": "knp", "version": "0.1"}}


@pytest.mark.req("security:S2")
@each_route
def test_a_foreign_host_is_refused_whatever_the_route_and_the_credential(server: Running, route: Route) -> None:
    for host in ("evil.example", f"evil.example:{server.port}", "127.0.0.1:1"):
        reply = server.ask(route.verb, path_of(route), headers={"Host": host})
        assert (reply.status, reply.json["error"]["code"]) == (403, "forbidden"), reply


@pytest.mark.req("security:S4")
@each_route
def test_a_foreign_origin_is_refused_whatever_the_route_and_the_credential(server: Running, route: Route) -> None:
    for headers in (
        {"Origin": "null"},
        {"Origin": "https://evil.example"},
        {"Origin": f"http://localhost:{server.port + 1}"},
        {"Sec-Fetch-Site": "cross-site"},
    ):
        reply = server.ask(route.verb, path_of(route), headers=headers)
        assert (reply.status, reply.json["error"]["code"]) == (403, "forbidden"), reply
        assert "access-control-allow-origin" not in reply.headers


@pytest.mark.req("security:S4")
def test_a_page_that_was_named_may_call_and_is_told_so(server: Running) -> None:
    page = {"Origin": "https://ui.example", "Sec-Fetch-Site": "cross-site"}
    reply = server.ask("GET", "/health", headers=page)
    assert (reply.status, reply.headers["access-control-allow-origin"]) == (200, "https://ui.example")
    asks = {**page, "Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "authorization"}
    preflight = server.ask("OPTIONS", "/threads/x", headers=asks, auth=False)
    assert preflight.status == 204
    assert "authorization" in preflight.headers["access-control-allow-headers"]
    assert server.ask("OPTIONS", "/threads/x", headers={**asks, "Origin": "https://evil.example"}).status == 403


@pytest.mark.req("security:S5")
def test_coming_from_this_machine_grants_nothing(server: Running) -> None:
    for headers in ({}, {"X-Forwarded-For": "127.0.0.1"}, {"Forwarded": "for=127.0.0.1"}):
        assert server.ask("GET", "/openapi.json", auth=False, headers=headers).status == 401


@pytest.mark.req("security:S6")
@each_route
def test_a_body_that_is_not_json_is_refused_and_not_read(server: Running, route: Route) -> None:
    for kind in (None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "json"):
        reply = server.ask(route.verb, path_of(route), raw=b'{"a": 1}', headers={"Content-Type": kind})
        assert (reply.status, reply.json["error"]["code"]) == (415, "invalid_request"), (kind, reply)


@pytest.mark.req("security:S14")
@pytest.mark.parametrize("route", TAKE_BODIES or [ALL[0]], ids=lambda route: route.name)
def test_bodies_that_are_malformed_are_refused(server: Running, route: Route) -> None:
    if route.body is None:
        pytest.skip("no route takes a body")
    deep = b'{"metadata":' + b'{"a":' * MOST_DEPTH + b"1" + b"}" * MOST_DEPTH + b"}"
    for body in (b"", b"{", b"[1,", b"nonsense", b'{"a": NaN}', b'"\xff"', b'{"title":"\xff"}', deep, b"[" * 100_000):
        reply = server.ask(route.verb, path_of(route), raw=body, headers={"Content-Type": "application/json"})
        if not body and route.optional_body:
            continue
        assert 400 <= reply.status < 500, (body[:40], reply)
        if body not in (b"",):
            assert reply.json["error"]["code"] == "invalid_request", (body[:40], reply)


@pytest.mark.parametrize("route", TAKE_BODIES, ids=lambda route: route.name)
def test_a_field_that_nobody_knows_is_refused_and_named(server: Running, route: Route) -> None:
    reply = server.ask(route.verb, path_of(route), {"agentID": "x"})
    assert (reply.status, reply.json["error"]["code"]) == (400, "invalid_request"), reply
    assert "`agentID`" in reply.json["error"]["message"]
    assert msgspec.json.schema(route.body)["$defs"][route.body.__name__]["additionalProperties"] is False


ONE_COUNTS = ("Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID", "X-Kernl-Namespace")


@pytest.mark.req("security:S3")
@pytest.mark.parametrize("name", ONE_COUNTS)
def test_a_header_of_which_one_counts_is_not_sent_twice(server: Running, name: str) -> None:
    right = f"Bearer {server.token}"
    headers = "".join(f"{header}: {right}\r\n" for header in {"Authorization", name})
    for line in ("GET /threads", "POST /threads", "GET /health", "GET /nothing"):
        head = f"{line} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nConnection: close\r\n{headers}"
        for other in ("nonsense", right):
            answer = server.send(f"{head}{name.lower()}: {other}\r\n\r\n".encode())
            assert answer.startswith(b"HTTP/1.1 400 "), answer[:200]
            assert f"header {name.lower()} was".encode() in answer


@pytest.mark.req("security:S14")
@each_route
def test_a_body_over_the_limit_is_refused_without_being_read(server: Running, route: Route) -> None:
    head = (
        f"{route.verb} {path_of(route)} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
        f"Authorization: Bearer {server.token}\r\nContent-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n"
    )
    answer = server.send(head.encode())
    assert answer.startswith(b"HTTP/1.1 413 "), answer[:200]
    assert b"connection: close" in answer


@pytest.mark.req("security:S14")
def test_a_body_in_pieces_is_bounded_too(server: Running) -> None:
    head = (
        f"POST /threads/x HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {server.token}\r\n"
        "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    ).encode()
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as peer:
        peer.sendall(head.replace(b"POST /threads/x", b"GET /openapi.json"))
        piece = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
        answer = b""
        try:
            for _ in range(12):
                peer.sendall(piece)
            while chunk := peer.recv(65536):
                answer += chunk
        except (BrokenPipeError, ConnectionResetError):
            return  # cut off while it was still sending: as good
        assert answer.startswith(b"HTTP/1.1 413 "), answer[:200]


@pytest.mark.req("knp:K42")
def test_a_body_whose_framing_is_unknown_is_refused_and_not_just_dropped(server: Running) -> None:
    answer = server.send(
        f"POST /threads HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {server.token}\r\n"
        "Content-Type: application/json\r\nTransfer-Encoding: xchunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n".encode()
    )
    assert answer.startswith(b"HTTP/1.1 400 "), answer[:200]
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b'"error"' in answer


@pytest.mark.req("security:S14")
def test_a_head_without_end_behind_a_stream_is_bounded_too(server: Running) -> None:
    head = f"GET /events HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {server.token}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as peer:
        peer.sendall(head.encode())
        assert peer.recv(65536).startswith(b"HTTP/1.1 200 ")
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            peer.sendall(b"GET /health HTTP/1.1\r\nX: " + b"x" * 64 * 1024 * 1024)


def test_nonsense_behind_a_stream_ends_it_without_an_answer_in_its_middle(server: Running) -> None:
    head = f"GET /events HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {server.token}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as peer:
        peer.sendall(head.encode())
        answer = peer.recv(65536)
        peer.sendall(b"\0\0\0 no request\r\n\r\n")
        try:
            while chunk := peer.recv(65536):
                answer += chunk
        except ConnectionResetError:
            pass
    assert answer.count(b"HTTP/1.1 ") == 1, answer


@pytest.mark.req("security:S14")
def test_a_head_over_the_limit_is_refused(server: Running) -> None:
    for filler in (b"X-A: " + b"a" * LARGEST_HEAD + b"\r\n", b"X-A: b\r\n" * 200):
        answer = server.send(b"GET /health HTTP/1.1\r\nHost: x\r\n" + filler + b"\r\n")
        assert answer.startswith(b"HTTP/1.1 431 "), answer[:200]
        assert b'"error"' in answer
    long = server.send(b"GET /" + b"a" * (LARGEST_HEAD + 10) + b" HTTP/1.1\r\n\r\n")
    assert long.startswith(b"HTTP/1.1 431 "), long[:200]
    unfinished = server.send(b"GET /health HTTP/1.1\r\nX-A: " + b"a" * (LARGEST_HEAD + 1))
    assert unfinished.startswith(b"HTTP/1.1 431 "), unfinished[:200]


@pytest.mark.req("security:S14")
def test_whoever_sends_no_head_in_time_is_left(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quintet.rpc.http.connections.Connection.head_within_s", 0.2)
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as slow:
        slow.sendall(b"GET /health HTTP/1.1\r\nHost: ")
        assert slow.recv(100) == b""
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as silent:
        assert silent.recv(100) == b""
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as second:
        whole = f"GET /health HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode()
        second.sendall(whole)
        answer = b""
        while not answer.endswith(b"}}"):
            answer += second.recv(65536)
        assert answer.startswith(b"HTTP/1.1 200")
        second.sendall(whole[:20])  # the next request on the same connection
        assert second.recv(100) == b""


@pytest.mark.req("security:S14")
def test_more_connections_than_there_may_be_are_turned_away(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quintet.rpc.http.connections.Connection.most", 3)
    open_ones = [socket.create_connection(("127.0.0.1", server.port), timeout=30) for _ in range(6)]
    try:
        answers = [peer.recv(1000) for peer in open_ones[-2:]]
        assert all(answer.startswith(b"HTTP/1.1 503 ") for answer in answers), answers
    finally:
        for peer in open_ones:
            peer.close()
    wait_for(lambda: server.ask("GET", "/health").status == 200)


@pytest.mark.req("security:S8")
def test_the_access_log_has_who_what_how_and_no_secret(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home")
    with knp_server(home) as server:
        token = server.token
        server.ask("GET", "/health", auth=False)
        server.ask("GET", f"/t/{token}/openapi.json", auth=False)
        server.ask("GET", "/threads/thr_secretname?namespace=hush")
        server.ask("GET", "/t/guess/threads/x", auth=False)
        server.ask("GET", "/nothing-here")
        server.ask("GET", "/health", headers={"Host": "evil.example"})
        with server.stream("/events") as stream:
            stream.next()
    path = home / "access.log"
    assert path.stat().st_mode & 0o777 == 0o600
    text = path.read_text()
    assert [line.split()[2:7] for line in text.splitlines()] == [
        ["-", "GET", "/health", "200", "127.0.0.1"],
        ["holder", "GET", "/openapi.json", "200", "127.0.0.1"],
        ["holder", "GET", "/threads/{tid}", "404", "127.0.0.1"],
        ["-", "GET", "/threads/{tid}", "401", "127.0.0.1"],
        ["holder", "GET", "-", "404", "127.0.0.1"],
        ["-", "GET", "-", "403", "127.0.0.1"],
        ["holder", "GET", "/events", "200", "127.0.0.1"],
    ]
    for secret in (token, "guess", "hush", "secretname", "nothing-here"):
        assert secret not in text


@pytest.mark.req("security:S9")
def test_a_rotated_token_is_worth_nothing_at_once_and_its_streams_end(tmp_path: Path) -> None:
    with knp_server(write_home(tmp_path / "home")) as server, server.stream("/events") as stream:
        assert stream.next()["kind"] == "connected"
        old = server.token
        server.do(server.server.rotate)
        wait_for(lambda: server.token != old)
        assert stream.next() is None
        assert server.ask("GET", "/openapi.json", headers={"Authorization": f"Bearer {old}"}).status == 401
        assert server.ask("GET", "/openapi.json").status == 200


@pytest.mark.req("security:S11")
def test_tokens_are_long_and_never_the_same(tmp_path: Path) -> None:
    tokens = set()
    for name in ("a", "b"):
        with knp_server(write_home(tmp_path / name)) as server:
            tokens.add(server.token)
    assert len(tokens) == 2
    assert all(len(token) >= 43 for token in tokens)  # 256 bits, six to a character


@pytest.mark.req("security:S13")
def test_who_guesses_too_often_waits_also_after_a_restart(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home")
    guess = {"Authorization": "Basic b3BlbmNvZGU6d3Jvbmc="}  # opencode:wrong
    right = {"Authorization": "Basic b3BlbmNvZGU6aHVudGVyMg=="}  # opencode:hunter2
    with knp_server(home, OPENCODE_SERVER_PASSWORD="hunter2") as server:
        assert server.ask("GET", "/openapi.json", headers=right).status == 200
        statuses = [server.ask("GET", "/openapi.json", headers=guess).status for _ in range(12)]
        assert statuses == [401] * 10 + [429] * 2
    with knp_server(home, OPENCODE_SERVER_PASSWORD="hunter2") as server:
        reply = server.ask("GET", "/openapi.json", headers=guess)
        assert reply.status == 429
        assert 0 < int(reply.headers["retry-after"]) <= 61
        assert server.ask("GET", "/openapi.json", headers=right).status == 429, "a guess that hits must not be told"
        assert server.ask("GET", "/openapi.json").status == 200, "the holder of the token is locked out"
        assert server.ask("GET", "/health", auth=False).status == 200


@pytest.mark.req("knp:K39")
def test_a_defect_says_nothing_of_the_server(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(thread: str) -> None:
        raise RuntimeError("/home/somebody/secret.py is broken")

    monkeypatch.setattr(server.app.journal, "thread", broken)
    reply = server.ask("GET", "/threads/x")
    assert (reply.status, reply.json["error"]["code"]) == (500, "internal")
    assert "somebody" not in str(reply.json)
    assert "Traceback" not in str(reply.json)
    assert "somebody" in (server.app.home / "quintet.log").read_text()
