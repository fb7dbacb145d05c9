from __future__ import annotations

from quintet.domain.item import ResultStatus


async def test_names_are_sorted_and_marked_and_git_is_left_out(use, workspace):
    for name in ("b", ".git", "quintet-home"):
        (workspace / name).mkdir()
    (workspace / "a.txt").touch()
    (workspace / "c").symlink_to("b")
    done = await use("list")
    assert (done.text, done.message) == ("a.txt\nb/\nc@", "3 entries in .")
    assert done.display == ({"type": "brief", "text": "3 entries in ."},)


async def test_a_large_directory_is_cut_and_says_so(use, workspace):
    for n in range(620):
        (workspace / f"{n:04}").touch()
    text = (await use("list", path=".")).text
    assert text.endswith("0499\n[120 more of 620 entries are not shown]")


async def test_a_name_cannot_draw_on_the_screen(use, workspace):
    (workspace / "a\x1b[2J\nb").touch()
    assert (await use("list")).text == "a\\x1b[2J\\nb"


async def test_empty_missing_and_file_are_told(use, workspace):
    assert (await use("list")).text == "[. is empty]"
    assert (await use("list", path="gone")).text == "There is no directory gone."
    (workspace / "f").touch()
    done = await use("list", path="f")
    assert (done.status, done.text) == (ResultStatus.ERROR, "f is not a directory; use `read`.")
