from __future__ import annotations

import pytest

from quintet.domain.errors import Invalid
from quintet.domain.item import ResultStatus
from quintet.domain.tool import CallScope


def edit(old: str, new: str, **more) -> dict:
    return {"old": old, "new": new, **more}


async def test_several_replacements_are_applied_in_order(use, workspace):
    (workspace / "a").write_text("one two three\n")
    done = await use("edit", path="a", edits=[edit("one", "1"), edit("1 two", "1 2")])
    assert (workspace / "a").read_text() == "1 2 three\n"
    assert done.text == "Edited a: 2 replacements."
    assert done.diff == "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one two three\n+1 2 three\n"
    assert done.changed_files == (str(workspace / "a"),)


async def test_all_replaces_every_occurrence(use, workspace):
    (workspace / "a").write_text("x x x")
    await use("edit", path="a", edits=[edit("x", "y", all=True)])
    assert (workspace / "a").read_text() == "y y y"


@pytest.mark.parametrize(
    ("content", "edits", "words"),
    [
        ("x x", [edit("x", "y")], "Edit 1 of a: the old text occurs 2 times"),
        ("aaa", [edit("aa", "b")], "occurs 2 times"),
        ("abc", [edit("d", "e")], "does not occur"),
        ("abc", [edit("b", "x"), edit("b", "y")], "Edit 2 of a: the old text does not occur"),
        ("a\r\nb\r\n", [edit("a\nb", "c")], r"lines end with \\r\\n"),
        ("abc", [edit("b", "b")], "are the same"),
        ("abc", [edit("", "b")], "edit: "),
        ("abc", [], "edit: "),
        ("abc", [{"old": "a"}], "edit: "),
        ("abc", [edit("a", "b", regex=True)], "edit: "),
    ],
)
async def test_what_does_not_fit_exactly_is_refused_and_changes_nothing(tools, workspace, content, edits, words):
    (workspace / "a").write_bytes(content.encode())
    with pytest.raises(Invalid, match=words):
        await tools["edit"].prepare({"path": "a", "edits": edits}, CallScope(str(workspace)))
    assert (workspace / "a").read_bytes() == content.encode()


async def test_line_ends_and_marks_stay_as_they_are(use, workspace):
    (workspace / "a").write_bytes(b"\xef\xbb\xbfa\r\nb\r\n")
    await use("edit", path="a", edits=[edit("b\r\n", "c\r\n")])
    assert (workspace / "a").read_bytes() == b"\xef\xbb\xbfa\r\nc\r\n"


@pytest.mark.parametrize("meanwhile", ["old and more", "something else"])
async def test_a_file_changed_since_it_was_shown_is_left_alone(tools, workspace, context, meanwhile):
    (workspace / "a").write_text("old")
    prepared = await tools["edit"].prepare({"path": "a", "edits": [edit("old", "new")]}, CallScope(str(workspace)))
    (workspace / "a").write_text(meanwhile)
    done = await tools["edit"].run(prepared, context)
    assert done.status is ResultStatus.ERROR
    assert "has changed since" in done.text
    assert (workspace / "a").read_text() == meanwhile


async def test_a_file_removed_since_is_not_made_again(tools, workspace, context):
    (workspace / "a").write_text("old")
    prepared = await tools["edit"].prepare({"path": "a", "edits": [edit("old", "new")]}, CallScope(str(workspace)))
    (workspace / "a").unlink()
    assert (await tools["edit"].run(prepared, context)).status is ResultStatus.ERROR
    assert not (workspace / "a").exists()


async def test_missing_binary_and_foreign_text_are_told(tools, workspace):
    (workspace / "b").write_bytes(b"a\0b")
    (workspace / "l").write_bytes(b"caf\xe9")
    for path, words in (("gone", "There is no file gone"), ("b", "binary"), ("l", "not UTF-8")):
        with pytest.raises(Invalid, match=words):
            await tools["edit"].prepare({"path": path, "edits": [edit("a", "b")]}, CallScope(str(workspace)))
