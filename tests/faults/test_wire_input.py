"""R7 on Wire: whatever comes in on stdin, each line gets its own answer within a second and serving goes on."""

from __future__ import annotations

import fcntl
import json
import os
import struct
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.wire_client import Message, WireClient, kinds, spoken
from tests.faults.processes import wait_until, write_home
from tests.faults.tiers import limit_s, seeded, shares
from tests.faults.wire_lines import KINDS, Bad, batch, calls, cut_off, flipped, params, sent

HANG_S = 1.0
PARTS = 4
MIB = 1024 * 1024


@contextmanager
def client(tmp_path: Path, script: str = "scope: turn\ntext: hello\n") -> Iterator[WireClient]:
    """One that has been greeted: how long it takes to start is another matter."""
    work = tmp_path / "work"
    work.mkdir()
    with WireClient(write_home(tmp_path / "home", script), work=work) as wire:
        wire.initialize()
        yield wire


def settled(wire: WireClient, number: int) -> list[Message]:
    """What came before the answer to a sound request that stands behind the bad line."""
    heard: list[Message] = []
    while (message := wire.next(HANG_S)) is not None and message.get("id") != f"sound-{number}":
        heard.append(message)
    assert message is not None
    assert message["error"]["message"] == "No agent turn is in progress"
    return heard


def tried(wire: WireClient, line: bytes, number: int) -> list[Message]:
    wire.raw(line + b"\n" + sent(id=f"sound-{number}", method="cancel"))
    return settled(wire, number)


def check(bad: Bad, heard: list[Message]) -> None:
    about = f"{bad.line[:300]!r} wants {bad.codes} for {bad.id!r:.50}, got {heard!r:.600}"
    assert len(heard) == bool(bad.codes), about
    for message in heard:
        assert set(message) == {"jsonrpc", "id", "error"}, about
        assert message["id"] == bad.id, about
        assert type(message["id"]) is type(bad.id), about
        assert message["error"]["code"] in bad.codes, about
        assert message["error"]["message"], about


def gone_well(wire: WireClient) -> None:
    """It greets, plays a turn and leaves as if nothing had been."""
    assert wire.initialize()["result"]["server"]["name"] == "quintet"
    heard = wire.prompt()
    assert spoken(heard) == "hello"
    assert heard[-1]["result"] == {"status": "finished"}
    wire.hang_up()
    assert wire.rest() == []
    assert wire.ended() == (0, "")


@pytest.mark.fault
@pytest.mark.req("reliability:R7", "wire:S02", "wire:S06", "wire:S14", "wire:S102", "wire:S103")
@pytest.mark.timeout(limit_s(180))
@pytest.mark.parametrize(("part", "rounds"), shares("R7", PARTS))
def test_each_malformed_line_gets_its_answer_and_the_next_request_is_served(
    tmp_path: Path, part: int, rounds: int
) -> None:
    rng = seeded(f"wire-{part}")
    with client(tmp_path) as wire:
        for number in range(rounds):
            bad = KINDS[number % len(KINDS)](rng)
            check(bad, tried(wire, bad.line, number))
        gone_well(wire)


@pytest.mark.fault
@pytest.mark.req("reliability:R7")
@pytest.mark.timeout(limit_s(180))
@pytest.mark.parametrize(("part", "rounds"), shares("R7", PARTS))
def test_a_line_with_flipped_bytes_is_answered_at_most_once(tmp_path: Path, part: int, rounds: int) -> None:
    rng = seeded(f"wire-flip-{part}")
    with client(tmp_path) as wire:
        for number in range(rounds):
            line = flipped(rng)
            heard = tried(wire, line.replace(b"\n", b" "), number)
            assert len([m for m in heard if "id" in m]) <= 1, (line, heard)
        gone_well(wire)


@pytest.mark.req("reliability:R7")
def test_a_line_may_come_in_two_pieces_cut_anywhere(tmp_path: Path) -> None:
    rng = seeded("wire-split")
    sound = Bad(sent(id="🜁", method="cancel", params={"x": "é“”"}), (-32000,), "🜁")
    unknown = Bad(sent(id="u", method="é🜁"), (-32601,), "u")
    ways = [
        sound,
        cut_off(rng),
        batch(rng),
        params(rng),
        unknown,
        Bad(b"\xff\xfe\xf0", (-32700,)),
    ]
    with client(tmp_path) as wire:
        number = 0
        for bad in ways:
            line = bad.line + b"\n"
            for at in range(1, len(line)):
                number += 1
                piece(wire, line[:at])
                piece(wire, line[at:])
                wire.send(id=f"sound-{number}", method="cancel")
                check(bad, settled(wire, number))
        gone_well(wire)


def piece(wire: WireClient, data: bytes) -> None:
    """Written, and taken out of the pipe by the other side before anything follows."""
    assert wire.popen.stdin is not None
    pipe = wire.popen.stdin.fileno()
    assert os.write(pipe, data) == len(data)

    def empty() -> bool:
        return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0\0\0\0"))[0] == 0

    wait_until(empty, 5, every_s=0.0002)


@pytest.mark.req("reliability:R7", "wire:S27")
@pytest.mark.parametrize(
    ("line", "codes", "id"),
    [
        (b"x" * (101 * MIB), (-32600,), None),
        (b'{"jsonrpc":"2.0","id":"p1","method":"prompt","params":{"user_input":' + b"[" * MIB, (-32700, -32600), None),
        (b"[" * (8 * MIB) + b"]" * (8 * MIB), (-32600,), None),
        (b'{"jsonrpc":"2.0","id":"p1","method":"prompt","params":{"x":"' + b"y" * (20 * MIB) + b'"}}', (-32602,), "p1"),
        (b'{"a":1},' * MIB, (-32700,), None),
    ],
    ids=["over-the-limit", "deep-and-open", "deep", "large-and-wrong", "many"],
)
def test_a_huge_line_is_answered_as_soon_as_it_is_whole(
    tmp_path: Path, line: bytes, codes: tuple[int, ...], id: Any
) -> None:
    with client(tmp_path) as wire:
        check(Bad(line, codes, id), tried(wire, line, 1))
        gone_well(wire)


@pytest.mark.req("reliability:R7", "wire:S06")
def test_malformed_lines_do_not_harm_a_running_turn(tmp_path: Path) -> None:
    rng = seeded("wire-in-a-turn")
    release = tmp_path / "release"
    quiet = [kind for kind in KINDS if kind is not params]  # a greeting that lacks something is refused either way
    with client(tmp_path, f"scope: turn\ntext: hel\nuntil: {release}\ntext: lo\n") as wire:
        wire.send(id="p", method="prompt", params={"user_input": "go"})
        before = wire.until(lambda m: "ContentPart" in str(m))
        for number in range(100):
            bad = quiet[number % len(quiet)](rng)
            wire.raw(bad.line)
            if bad.codes:
                heard = wire.next(HANG_S)
                assert heard is not None
                check(bad, [heard])
        release.touch()
        after = wire.reply("p")
        assert kinds(before + after) == [
            *("TurnBegin", "StepBegin", "ContentPart", "ContentPart", "StatusUpdate", "TurnEnd", "reply"),
        ]
        gone_well(wire)


def short(value: Any) -> str:
    return f"{value!s:.20}"


@pytest.mark.req("reliability:R7", "wire:S08")
@pytest.mark.parametrize("number", [0, -1, 2**53 + 1, -(2**63), 2**64, int("9" * 400)], ids=short)
def test_an_id_is_repeated_to_its_last_digit(tmp_path: Path, number: int) -> None:
    with client(tmp_path) as wire:
        assert wire.call("cancel", number)[-1]["id"] == number


@pytest.mark.req("reliability:R7")
@pytest.mark.parametrize("id", ["9" * 5000, "1e400", "-0.0", "1.0"], ids=short)
def test_an_id_that_cannot_be_repeated_is_no_id(tmp_path: Path, id: str) -> None:
    with client(tmp_path) as wire:
        line = f'{{"jsonrpc":"2.0","id":{id},"method":"cancel"}}'.encode()
        check(Bad(line, (-32600,)), tried(wire, line, 1))
        gone_well(wire)


def test_the_lines_differ_and_so_do_their_answers() -> None:
    """The generator itself: every kind makes lines of one piece, and sound ones are sound."""
    rng = seeded("wire-lines")
    for make in KINDS:
        assert all(b"\n" not in make(rng).line for _ in range(50)), make
    assert all(json.loads(sent(**calls(rng))) for _ in range(50))
