from __future__ import annotations

import base64
import os

import pytest

from quintet.domain.errors import Invalid
from quintet.domain.item import ImagePart, MediaKind, MediaPart, ResultStatus
from quintet.domain.tool import CallScope


async def test_a_file_is_returned_as_it_is(use, workspace):
    (workspace / "a.txt").write_bytes(b"one\r\ntwo\xc3\xa4\nthree")
    done = await use("read", path="a.txt")
    assert (done.text, done.message) == ("one\r\ntwoä\nthree", "3 lines of a.txt")
    assert done.display == ({"type": "brief", "text": "3 lines of a.txt"},)


async def test_a_range_of_lines_tells_where_to_read_on(use, workspace):
    (workspace / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 11)))
    done = await use("read", path="a.txt", from_line=3, lines=2)
    assert done.text == "line 3\nline 4\n[lines 3-4 of 10; read on with from_line=5]"
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


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (b"%PDF-1.7\n\0", " (PDF)"),
        (b"\x7fELF\2\1\1\0", " (ELF program)"),
        (b"PK\3\4\0\0", " (zip)"),
        (b"\xff\xfea\0b\0", " (UTF-16 text)"),
        (b"RIFF\0\0\0\0ACON", ""),
        (b"\0\0\0\x18ftypavif", ""),
        (b"\0\1", ""),
    ],
)
async def test_a_binary_file_is_named_not_shown(use, workspace, start, kind):
    (workspace / "a.bin").write_bytes(start)
    done = await use("read", path="a.bin")
    assert done.status is ResultStatus.ERROR
    assert done.text == f"a.bin is a binary file{kind} of {len(start)} bytes; it cannot be read as text."
    assert not done.images


@pytest.mark.parametrize(
    ("start", "media_type"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0", "image/png"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpeg"),
        (b"GIF87a\1\0", "image/gif"),
        (b"GIF89a\1\0", "image/gif"),
        (b"RIFF\x24\0\0\0WEBPVP8 ", "image/webp"),
    ],
)
async def test_an_image_is_shown_whatever_its_name(use, workspace, start, media_type):
    (workspace / "a.txt").write_bytes(start)
    done = await use("read", path="a.txt")
    assert done.text == f"[image a.txt: {media_type}, {len(start)} bytes]"
    assert done.images == (ImagePart(media_type, base64.b64encode(start).decode()),)
    assert done.display == ({"type": "brief", "text": done.text.strip("[]")},)


@pytest.mark.parametrize(
    ("kind", "noun", "none", "start", "media_type"),
    [
        (MediaKind.VIDEO, "video", "videos", b"\0\0\0\x18ftypisom\0", "video/mp4"),
        (MediaKind.AUDIO, "recording", "sound", b"RIFF\x24\0\0\0WAVEfmt ", "audio/wav"),
    ],
)
async def test_sound_and_videos_are_for_models_that_take_them(
    use, workspace, context, kind, noun, none, start, media_type
):
    (workspace / "a").write_bytes(start)
    refused = await use("read", path="a")
    assert (refused.status, refused.images) == (ResultStatus.ERROR, ())
    assert f"is a {noun} ({media_type}) of {len(start)} bytes, and the model in use takes no {none}." in refused.text
    context.taken = frozenset({kind})
    done = await use("read", path="a")
    assert done.text == f"[{noun} a: {media_type}, {len(start)} bytes]"
    url = f"data:{media_type};base64,{base64.b64encode(start).decode()}"
    assert done.images == (MediaPart(kind, url),)
    with (workspace / "a").open("r+b") as file:
        file.truncate(20 * 1024 * 1024 + 1)
    large = await use("read", path="a")
    assert (large.status, large.images) == (ResultStatus.ERROR, ())
    assert "at most 20 MiB can be shown" in large.text


async def test_an_image_beyond_the_limit_is_told_not_shown(use, workspace):
    most = 5 * 1024 * 1024
    (workspace / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n".ljust(most, b"\0"))
    assert len((await use("read", path="a.png")).images) == 1
    with (workspace / "a.png").open("ab") as file:
        file.write(b"\0")
    done = await use("read", path="a.png")
    assert (done.status, done.images) == (ResultStatus.ERROR, ())
    assert "image (image/png) of 5242881 bytes; at most 5 MiB" in done.text


async def test_empty_missing_short_directory_and_pipe_are_told(use, workspace):
    (workspace / "empty").touch()
    (workspace / "short").write_text("1\n")
    os.mkfifo(workspace / "pipe")
    assert (await use("read", path="empty")).text == "[empty is empty]"
    assert (await use("read", path="gone")).text == "There is no file gone."
    assert (await use("read", path="short", from_line=9)).text == "short has only 1 line."
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


async def test_lines_are_counted_from_the_end_too(use, workspace):
    (workspace / "f").write_text("".join(f"line {n}\n" for n in range(1, 11)))
    assert (await use("read", path="f", from_line=-2)).text == "line 9\nline 10\n[lines 9-10 of 10]"
    done = await use("read", path="f", from_line=-3, lines=1)
    assert done.text == "line 8\n[lines 8-8 of 10; read on with from_line=9]"
    assert done.facts == {"first": 8, "lines": 1, "total": 10, "cut": [], "full": False}
    assert (await use("read", path="f", from_line=-99)).text.startswith("line 1\n")
    with pytest.raises(Invalid, match="from -1 at the end"):
        await use("read", path="f", from_line=0)


async def test_lines_have_their_numbers_when_asked(use, workspace):
    (workspace / "f").write_text("a\nb")
    assert (await use("read", path="f", numbered=True)).text == "     1\ta\n     2\tb"
    assert (await use("read", path="f", from_line=2, numbered=True)).text == "     2\tb"


async def test_the_last_lines_of_a_long_end_are_the_ones_that_are_shown(use, workspace):
    (workspace / "f").write_text("".join(f"{n:04} {'x' * 995}\n" for n in range(200)))
    done = await use("read", path="f", from_line=-100)
    assert done.facts["full"]
    assert done.facts["first"] + done.facts["lines"] == 201
    assert done.text.endswith("of 200]")
    first = await use("read", path="f")
    assert first.facts["full"]
    assert first.text.startswith("0000 ")
    assert f"of 200; read on with from_line={first.facts['lines'] + 1}]" in first.text
