"""The prompt: where it comes from, and that nothing is taken from stdin that was not asked for."""

from __future__ import annotations

import io
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from quintet.cli.prompt_text import LARGEST_PROMPT, read_prompt, unread_stdin
from quintet.domain.errors import Invalid


class Pipe:
    """Stdin, with its other end in the test's hands."""

    def __init__(self, reading: int, writing: int) -> None:
        self.stdin = io.TextIOWrapper(os.fdopen(reading, "rb"), encoding="utf-8")
        self.writing = os.fdopen(writing, "wb", buffering=0)

    def close(self) -> None:
        self.stdin.close()
        self.writing.close()


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pipe]:
    made = Pipe(*os.pipe())
    monkeypatch.setattr("sys.stdin", made.stdin)
    yield made
    made.close()


@pytest.mark.req("first_minutes:F15")
@pytest.mark.parametrize("words", [["-"], []])
def test_stdin_alone_is_the_prompt_as_it_is(pipe: Pipe, words: list[str]) -> None:
    pipe.writing.write(b"read this\n")
    pipe.writing.close()
    assert read_prompt(words) == "read this\n"


@pytest.mark.req("first_minutes:F15")
@pytest.mark.parametrize("piped", [b"line one\nline two\n", b"line one\nline two"])
def test_a_dash_among_the_words_adds_what_is_piped_in_and_marks_it(pipe: Pipe, piped: bytes) -> None:
    pipe.writing.write(piped)
    pipe.writing.close()
    assert read_prompt(["what", "failed?", "-"]) == "what failed?\n\n<stdin>\nline one\nline two\n</stdin>"


@pytest.mark.req("first_minutes:F15")
def test_a_dash_adds_to_a_file_too_and_an_empty_stdin_is_told_as_empty(pipe: Pipe, tmp_path: Path) -> None:
    (tmp_path / "ask.txt").write_text("explain")
    pipe.writing.close()
    assert read_prompt([f"@{tmp_path}/ask.txt", "-"]) == "explain\n\n<stdin>\n\n</stdin>"


@pytest.mark.req("first_minutes:F15")
def test_words_without_a_dash_leave_stdin_alone_and_say_so_when_something_waits_there(pipe: Pipe) -> None:
    assert read_prompt(["hello"]) == "hello"  # nobody writes and nobody closes: there is nothing to wait for
    assert unread_stdin(["hello"]) == ""
    pipe.writing.write(b"meant for somebody else\n")
    assert read_prompt(["hello"]) == "hello"
    assert (
        unread_stdin(["hello"]) == 'quintet: stdin was not read. To give it along, say so: quintet run "what to do" -'
    )
    assert unread_stdin(["hello", "-"]) == unread_stdin([]) == ""
    assert pipe.stdin.readline() == "meant for somebody else\n"  # whose it is still finds it


@pytest.mark.req("first_minutes:F15")
def test_a_file_as_stdin_counts_as_far_as_it_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "list").write_text("a\nb\n")
    with open(tmp_path / "list") as file:
        monkeypatch.setattr("sys.stdin", file)
        assert unread_stdin(["hello"])
        os.lseek(file.fileno(), 0, os.SEEK_END)
        assert unread_stdin(["hello"]) == ""


@pytest.mark.req("first_minutes:F15")
def test_a_socket_as_stdin_is_looked_at_and_a_device_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = socket.socketpair()
    with here, there, here.makefile("r") as stdin, open(os.devnull) as nothing, open("/dev/zero") as endless:
        monkeypatch.setattr("sys.stdin", stdin)
        assert unread_stdin(["hello"]) == ""
        there.sendall(b"x")
        assert unread_stdin(["hello"])
        for device in (nothing, endless):
            monkeypatch.setattr("sys.stdin", device)
            assert unread_stdin(["hello"]) == ""


@pytest.mark.req("first_minutes:F15")
def test_what_is_piped_in_is_bounded_and_must_be_text(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe.writing.write(b"\xff\xfe")
    pipe.writing.close()
    with pytest.raises(Invalid, match="not UTF-8"):
        read_prompt(["hello", "-"])
    with open("/dev/zero") as endless:
        monkeypatch.setattr("sys.stdin", endless)
        with pytest.raises(Invalid, match=f"larger than {LARGEST_PROMPT}"):
            read_prompt(["hello", "-"])


@pytest.mark.req("first_minutes:F15")
def test_on_a_terminal_a_dash_stands_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    leader, follower = os.openpty()
    with os.fdopen(leader, "rb"), os.fdopen(follower, "r") as terminal:
        monkeypatch.setattr("sys.stdin", terminal)
        assert unread_stdin(["hello"]) == ""
        with pytest.raises(Invalid, match="Nothing is piped in"):
            read_prompt(["hello", "-"])
        with pytest.raises(Invalid, match="no prompt"):
            read_prompt([])
