"""Going down by handles, and replacing by them."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from quintet.workspace.handles import open_below, open_file, open_plain, replace, write_new
from quintet.workspace.plugin_commands import _answer


def descriptors() -> int:
    return len(os.listdir("/dev/fd"))


@pytest.fixture(autouse=True)
def _no_handle_is_left_open():
    before = descriptors()
    yield
    assert descriptors() == before


@pytest.fixture
def root(tmp_path):
    (tmp_path / "root/a/b").mkdir(parents=True)
    (tmp_path / "out").mkdir()
    (tmp_path / "root/file").write_text("x")
    (tmp_path / "root/link").symlink_to(tmp_path / "out")
    (tmp_path / "root/near").symlink_to("a")
    return tmp_path / "root"


@pytest.fixture
def held(root):
    handle = open_below(str(root), ())
    yield handle
    os.close(handle)


def same(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    finally:
        os.close(handle)


@pytest.mark.parametrize("readable", [False, True])
@pytest.mark.parametrize("names", [(), ("a",), ("a", "b")])
def test_names_lead_down_from_a_path_and_from_a_handle(root, held, names, readable):
    assert same(open_below(str(root), names, readable=readable), root.joinpath(*names))
    assert same(open_below(held, names, readable=readable), root.joinpath(*names))


def test_a_readable_handle_lists(root):
    handle = open_below(str(root), ("a",), readable=True)
    assert os.listdir(handle) == ["b"]
    os.close(handle)


@pytest.mark.req("security:S17")
@pytest.mark.parametrize("make", [False, True])
@pytest.mark.parametrize("readable", [False, True])
@pytest.mark.parametrize("names", [("link",), ("link", "x"), ("near",), ("near", "b"), ("file",), ("file", "x")])
def test_neither_a_link_nor_a_file_is_passed_or_made_over(root, held, names, readable, make):
    for start in (str(root), held):
        with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
            open_below(start, names, make=make, readable=readable)
    assert os.listdir(root.parent / "out") == []


@pytest.mark.req("security:S17")
def test_a_root_that_became_a_link_is_not_followed(root, tmp_path):
    (tmp_path / "elsewhere").symlink_to(root)
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        open_below(str(tmp_path / "elsewhere"), ("a",))


def test_a_missing_directory_is_made_only_when_asked(root):
    with pytest.raises(FileNotFoundError):
        open_below(str(root), ("a", "n", "m"))
    assert not (root / "a/n").exists()
    os.close(open_below(str(root), ("a", "n", "m"), make=True))
    assert (root / "a/n/m").is_dir()


@pytest.mark.req("security:S17")
def test_a_link_in_a_file_s_place_is_neither_opened_nor_written_through(root, held):
    (root / "out.txt").symlink_to(root.parent / "out/secret")
    with pytest.raises(OSError, match="Too many levels"):
        open_file(held, "out.txt")
    with pytest.raises(FileExistsError):
        write_new(held, "out.txt", b"x", None)
    replace(held, "out.txt", lambda passing: write_new(held, passing, b"mine", None))
    assert (root / "out.txt").read_bytes() == b"mine"
    assert not (root / "out.txt").is_symlink()
    assert os.listdir(root.parent / "out") == []


def test_a_pipe_does_not_hold_whoever_opens_it(root, held):
    os.mkfifo(root / "pipe")
    handle = open_file(held, "pipe")
    assert stat.S_ISFIFO(os.fstat(handle).st_mode)
    os.close(handle)


@pytest.mark.parametrize(("mode", "shown"), [(None, 0o640), (0o777, 0o777), (0o400, 0o400)])
def test_a_new_file_has_the_mode_asked_for_or_that_of_any_new_file(root, held, mode, shown):
    before = os.umask(0o026)
    try:
        write_new(held, "new", b"data", mode)
    finally:
        os.umask(before)
    assert stat.S_IMODE((root / "new").stat().st_mode) == shown
    assert (root / "new").read_bytes() == b"data"


def test_a_replacement_that_fails_leaves_what_was_there_and_nothing_else(root, held):
    before = sorted(os.listdir(root))

    def breaks(passing: str) -> None:
        write_new(held, passing, b"half", None)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replace(held, "file", breaks)
    with pytest.raises(IsADirectoryError):
        replace(held, "a", lambda passing: write_new(held, passing, b"whole", None))
    assert sorted(os.listdir(root)) == before
    assert (root / "file").read_text() == "x"


def test_a_plain_file_is_opened_and_neither_a_link_nor_a_pipe_nor_a_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to("file")
    os.mkfifo(tmp_path / "pipe")
    with os.fdopen(open_plain(str(tmp_path / "file")), "rb") as file:
        assert file.read() == b"x"
    for name in ("link", "pipe", ".", "missing"):  # a pipe that is waited for would end this by the suite's limit
        with pytest.raises(OSError):
            open_plain(str(tmp_path / name))


def test_what_a_plugin_leaves_in_its_answers_place_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    answers: list[object] = []
    asking = threading.Thread(target=lambda: answers.append(_answer(str(tmp_path / "pipe"))), daemon=True)
    asking.start()
    asking.join(20)
    if held_up := asking.is_alive():
        os.close(os.open(tmp_path / "pipe", os.O_WRONLY))
    assert (held_up, answers) == (False, [None])
