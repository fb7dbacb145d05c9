"""Files given along with what is said: what is taken, what is refused, and where from. The path corpus and the links
that come and go are tried in tests/unit/tools, beside those of the file tools."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest

from quintet.domain.attachment import Attachment
from quintet.domain.errors import Invalid
from quintet.domain.item import ImagePart, MediaKind, MediaPart
from quintet.workspace import attachments
from quintet.workspace.attachments import TEXT_LIMIT, WorkspaceAttachments
from quintet.workspace.kinds import LARGEST
from quintet.workspace.paths import PathGuard
from tests.unit.workspace.repositories import repository

PNG = b"\x89PNG\r\n\x1a\n" + b"\0\1\2"
JPEG = b"\xff\xd8\xff\xe0" + b"\0\1\2"


async def read(
    directory: Path, path: str, *, cwd: str = "", root: str = "", hidden: tuple[str, ...] = ()
) -> Attachment:
    files = WorkspaceAttachments(PathGuard(str(directory / "home"), hidden))
    return await files.read(path, str(directory / cwd), root)


@pytest.mark.parametrize("text", ["one\r\ntwo", "", "é\n", "\ufeffmarked\n"])
async def test_a_text_comes_whole_and_as_it_is(tmp_path: Path, text: str) -> None:
    (tmp_path / "a").write_bytes(text.encode())
    assert await read(tmp_path, "a") == Attachment("a", len(text.encode()), text)


@pytest.mark.parametrize(("data", "kind"), [(PNG, "image/png"), (JPEG, "image/jpeg")])
@pytest.mark.parametrize("name", ["a.png", "a.txt", "a"])
async def test_an_image_is_what_its_bytes_say_whatever_it_is_called(
    tmp_path: Path, name: str, data: bytes, kind: str
) -> None:
    (tmp_path / name).write_bytes(data)
    found = await read(tmp_path, name)
    assert found == Attachment(name, len(data), media=ImagePart(kind, base64.b64encode(data).decode()))


async def test_sound_and_videos_are_attached_as_what_their_bytes_say(tmp_path: Path) -> None:
    for kind, media_type, data in (
        (MediaKind.VIDEO, "video/mp4", b"\0\0\0\x18ftypmp42\0"),
        (MediaKind.AUDIO, "audio/wav", b"RIFF\x24\0\0\0WAVEfmt "),
    ):
        (tmp_path / "a").write_bytes(data)
        url = f"data:{media_type};base64,{base64.b64encode(data).decode()}"
        assert await read(tmp_path, "a") == Attachment("a", len(data), media=MediaPart(kind, url))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"%PDF-1.7\n\xff\xfe", "but PDF"),
        (b"\x7fELF\0\0", "but ELF program"),
        ("one".encode("utf-16"), "but UTF-16 text"),
        (b"caf\xe9", "neither UTF-8 text nor"),
        (b"x" * 9_000 + b"\0", "neither UTF-8 text nor"),
    ],
)
async def test_what_is_neither_text_nor_image_is_refused_in_plain_words(
    tmp_path: Path, data: bytes, words: str
) -> None:
    (tmp_path / "a.txt").write_bytes(data)
    with pytest.raises(Invalid, match=words):
        await read(tmp_path, "a.txt")


@pytest.mark.parametrize(("start", "most"), [(b"", TEXT_LIMIT), (PNG, LARGEST[MediaKind.IMAGE])])
async def test_what_is_too_large_is_refused_and_never_cut(tmp_path: Path, start: bytes, most: int) -> None:
    (tmp_path / "a").write_bytes(start + b"x" * (most - len(start)))
    assert (await read(tmp_path, "a")).size == most
    (tmp_path / "a").write_bytes(start + b"x" * (most - len(start) + 1))
    with pytest.raises(Invalid, match=f"of {most + 1} bytes; at most"):
        await read(tmp_path, "a")


async def test_a_file_that_grows_while_it_is_read_is_not_read_without_end(tmp_path: Path) -> None:
    os.truncate(os.open(tmp_path / "a", os.O_CREAT | os.O_RDWR), 1 << 40)  # all holes
    with pytest.raises(Invalid, match="neither UTF-8 text nor"):
        await read(tmp_path, "a")


@pytest.mark.parametrize("kind", ["directory", "pipe", "missing", "in/a/file"])
async def test_what_is_no_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    (tmp_path / "directory").mkdir()
    (tmp_path / "in").write_text("")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Invalid) as refused:
        await read(tmp_path, kind)
    assert "list" not in refused.value.next_step, "that is a tool's word"


async def test_a_file_that_may_not_be_read_is_told_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For root nothing is forbidden, so the system's answer is played."""

    def closed(place: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(attachments, "open_regular", closed)
    with pytest.raises(Invalid, match="a cannot be opened: Permission denied"):
        await read(tmp_path, "a")


@pytest.mark.req("security:S16")
async def test_a_root_contains_what_the_workspace_around_it_would_let_through(tmp_path: Path) -> None:
    """A server's root may lie in a repository: the files beside it are in the same workspace and yet not its own."""
    repository(tmp_path, {"beside": "beside", "part/a": "inside"})
    (tmp_path / "part/deep").mkdir()
    (tmp_path / "part/out").symlink_to("../beside")
    assert (await read(tmp_path, "../beside", cwd="part")).text == "beside"
    root = str(tmp_path / "part")
    assert (await read(tmp_path, "../a", cwd="part/deep", root=root)).text == "inside"
    for path in ("../beside", str(tmp_path / "beside"), "out"):
        with pytest.raises(Invalid, match="outside the workspace"):
            await read(tmp_path, path, cwd="part", root=root)


@pytest.mark.req("security:S16")
async def test_where_the_person_keeps_secrets_nothing_is_attached_from(tmp_path: Path) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh/id").write_text("canary")
    (tmp_path / "link").symlink_to(".ssh/id")
    for path in (".ssh/id", "link"):
        with pytest.raises(Invalid, match="keeps secrets"):
            await read(tmp_path, path, hidden=(str(tmp_path / ".ssh"),))
