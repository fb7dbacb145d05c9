from __future__ import annotations

import os

import pytest

from quintet.domain.errors import Invalid
from quintet.domain.item import ResultStatus
from quintet.domain.tool import CallScope


async def test_a_file_is_returned_as_it_is(use, workspace):
    (workspace / "a.txt").write_bytes(b"one\r\ntwo\xc3\xa4\nthree")
    done = await use("read", path="a.txt")
    assert (done.text, done.message) == ("one\r\ntwoä\nthree", "3 lines of a.txt")


async def test_a_range_of_lines_tells_where_to_read_on(use, workspace):
    (workspace / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 11)))
    done = await use("read", path="a.txt", from_line=3, lines=2)
    assert done.text == "line 3\nline 4\n[lines 3-4 of a file of 71 bytes; read on with from_line=5]"
    assert (await use("read", path="a.txt", from_line=9)).text == "line 9\nline 10\n"


async def test_numbers_sent_as_strings_are_understood(use, workspace):
    (workspace / "a.txt").write_text("1\n2\n3\n")
    assert (await use("read", path="a.txt", from_line="2", lines="1")).text.startswith("2\n")


async def test_a_long_file_is_cut_and_says_so(use, workspace):
    (workspace / "a.txt").write_text("x\n" * 5_000)
    text = (await use("read", path="a.txt")).text
    assert text.count("x\n") == 2_000
    assert "read on with from_line=2001" in text


async def test_long_lines_are_cut_and_told(use, workspace):
    (workspace / "a.txt").write_text("y" * 100_000 + "\nend\n")
    text = (await use("read", path="a.txt")).text
    assert len(text) < 3_000
    assert "…\nend\n" in text
    assert "longer than 2000 characters are cut" in text


async def test_many_middling_lines_are_bounded_by_characters(use, workspace):
    (workspace / "a.txt").write_text(("z" * 1_000 + "\n") * 1_000)
    assert len((await use("read", path="a.txt")).text) < 62_000


async def test_bytes_that_are_no_utf8_are_shown_and_told(use, workspace):
    (workspace / "a.txt").write_bytes(b"caf\xe9")
    assert (await use("read", path="a.txt")).text == "caf\ufffd\n[some bytes are not UTF-8 and are shown as \ufffd]"


async def test_a_binary_file_is_named_not_shown(use, workspace):
    (workspace / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0")
    done = await use("read", path="a.png")
    assert done.status is ResultStatus.ERROR
    assert "binary file (PNG) of 11 bytes" in done.text


async def test_empty_missing_short_directory_and_pipe_are_told(use, workspace):
    (workspace / "empty").touch()
    (workspace / "short").write_text("1\n")
    os.mkfifo(workspace / "pipe")
    assert (await use("read", path="empty")).text == "[empty is empty]"
    assert (await use("read", path="gone")).text == "There is no file gone."
    assert (await use("read", path="short", from_line=9)).text == "short has only 1 lines."
    assert "is a directory. Use `list`" in (await use("read", path=".")).text
    assert "not a regular file" in (await use("read", path="pipe")).text


@pytest.mark.parametrize(
    "arguments",
    [{}, {"path": 3}, {"path": "a", "from_line": 0}, {"path": "a", "lines": 2001}, {"path": "a", "offset": 3}],
)
async def test_wrong_arguments_are_refused_in_words(tools, workspace, arguments):
    with pytest.raises(Invalid, match="read: "):
        await tools["read"].prepare(arguments, CallScope(str(workspace)))


@pytest.mark.parametrize(
    "path", ["../x", "/etc/passwd", "a\0b", "", "link/passwd", "quintet-home/config.toml", "\ud800"]
)
@pytest.mark.parametrize("tool", ["read", "list", "write", "edit", "grep"])
async def test_no_tool_takes_a_path_out_of_the_workspace(tools, workspace, tool, path):
    (workspace / "link").symlink_to("/etc")
    more = {"write": {"content": ""}, "edit": {"edits": [{"old": "a", "new": "b"}]}, "grep": {"pattern": "x"}}
    with pytest.raises(Invalid):
        await tools[tool].prepare({"path": path, **more.get(tool, {})}, CallScope(str(workspace)))


async def test_a_link_put_in_place_after_preparing_is_not_followed(tools, workspace, context, tmp_path):
    (tmp_path / "secret").write_text("secret")
    (workspace / "a").write_text("plain")
    prepared = await tools["read"].prepare({"path": "a"}, CallScope(str(workspace)))
    (workspace / "a").unlink()
    (workspace / "a").symlink_to(tmp_path / "secret")
    done = await tools["read"].run(prepared, context)
    assert done.status is ResultStatus.ERROR
    assert "outside the workspace" in done.text
