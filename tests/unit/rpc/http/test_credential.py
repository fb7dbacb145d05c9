"""The credential: three ways to show it, compared as digests, worth nothing once rotated."""

from __future__ import annotations

import ast
import base64
from pathlib import Path

import pytest

import quintet.rpc.http as package
from quintet.rpc.http.attempts import PER_PEER, TOGETHER, WINDOW_S, Attempts
from quintet.rpc.http.credential import Credential, Shown, in_header, split_path


def basic(user: str, password: str) -> dict[str, str]:
    return {"authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def accepts(credential: Credential, headers: dict[str, str], **more: bool) -> bool:
    shown = in_header(headers)
    return shown is not None and credential.accepts(shown, **more)


@pytest.mark.req("security:S1")
def test_the_token_is_taken_as_bearer_as_basic_and_in_front_of_the_path() -> None:
    credential = Credential("t0ken")
    assert accepts(credential, {"authorization": "Bearer t0ken"})
    assert accepts(credential, {"authorization": "bearer t0ken"})
    assert accepts(credential, basic("opencode", "t0ken"))
    path, shown = split_path("/t/t0ken/threads/x")
    assert (path, shown) == ("/threads/x", Shown("path", "t0ken"))
    assert credential.accepts(Shown("path", "t0ken"))
    assert split_path("/t/t0ken") == ("/", Shown("path", "t0ken"))
    assert split_path("/threads/t/x") == ("/threads/t/x", None)


@pytest.mark.req("security:S1")
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer"},
        {"authorization": "Bearer wrong"},
        {"authorization": "Bearer t0ken2"},
        {"authorization": "Bearer t0ke"},
        {"authorization": "t0ken"},
        {"authorization": "Digest t0ken"},
        {"authorization": "Basic t0ken"},
        {"authorization": "Basic !!!"},
        basic("root", "t0ken"),
        basic("opencode", ""),
        basic("opencode", "wrong"),
    ],
    ids=str,
)
def test_anything_else_is_not(headers: dict[str, str]) -> None:
    assert not accepts(Credential("t0ken"), headers)


def test_a_password_of_ones_own_is_taken_as_basic_only_and_beside_the_token() -> None:
    credential = Credential("t0ken", user="me", password="hunter2")
    assert accepts(credential, basic("me", "hunter2"))
    assert accepts(credential, basic("me", "t0ken"))
    assert not accepts(credential, basic("opencode", "hunter2"))
    assert not accepts(credential, {"authorization": "Bearer hunter2"})
    assert not credential.accepts(Shown("path", "hunter2"))
    assert not accepts(credential, basic("me", "hunter2"), guessable=False)
    assert accepts(credential, basic("me", "t0ken"), guessable=False)


@pytest.mark.req("security:S9")
def test_an_old_token_is_worth_nothing_once_there_is_another() -> None:
    credential = Credential("old")
    credential.rotate("new")
    assert credential.generation == 1
    assert not accepts(credential, {"authorization": "Bearer old"})
    assert accepts(credential, {"authorization": "Bearer new"})


@pytest.mark.req("security:S11")
def test_no_secret_is_compared_by_anything_that_stops_early() -> None:
    """Whatever holds a secret goes through compare_digest: no `==`, `in` or startswith on one in this room."""
    names = {"token", "password", "secret", "digest", "_token", "_password"}
    for path in Path(package.__path__[0]).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Compare) and not any(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
                inside = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
                inside |= {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
                assert not inside & names, f"{path.name}:{node.lineno}"


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.req("security:S13")
def test_a_peer_that_fails_too_often_waits_and_others_do_not() -> None:
    clock = Clock()
    attempts = Attempts(clock)
    for _ in range(PER_PEER):
        assert attempts.wait_s("a") == 0
        attempts.failed("a")
    assert 0 < attempts.wait_s("a") <= WINDOW_S + 1
    assert attempts.wait_s("b") == 0
    clock.now += WINDOW_S + 1
    assert attempts.wait_s("a") == 0


@pytest.mark.req("security:S13")
def test_many_peers_that_fail_a_little_make_everybody_wait() -> None:
    attempts = Attempts(Clock())
    for n in range(TOGETHER):
        attempts.failed(f"peer{n}")
    assert attempts.wait_s("another") > 0


@pytest.mark.req("security:S13")
def test_what_was_tried_is_remembered_by_the_next_server() -> None:
    clock, kept = Clock(), {}
    first = Attempts(clock, save=lambda remembered: kept.update(remembered))
    for _ in range(PER_PEER):
        first.failed("a")
    assert Attempts(clock, load=lambda: dict(kept)).wait_s("a") > 0


def test_a_clock_that_was_set_back_keeps_nobody_out_for_longer() -> None:
    clock = Clock()
    attempts = Attempts(clock)
    for _ in range(PER_PEER):
        attempts.failed("a")
    clock.now -= 86_400
    assert attempts.wait_s("a") == 0


def test_what_is_remembered_stays_small() -> None:
    kept: dict[str, list[float]] = {}

    def save(remembered: dict[str, list[float]]) -> None:
        kept.clear()
        kept.update(remembered)

    attempts = Attempts(Clock(), save=save)
    for n in range(1_500):
        attempts.failed(f"peer{n}")
    assert len(kept) <= 1_000
