from __future__ import annotations

import asyncio
import os

import pytest

from quintet.domain.errors import Drifted, Invalid
from quintet.domain.item import ResultStatus
from quintet.domain.tool import CallScope


@pytest.fixture
def put(use, workspace):
    """A file the thread has read."""

    async def put(content: str | bytes, path: str = "a"):
        (workspace / path).write_bytes(content.encode() if isinstance(content, str) else content)
        assert (await use("read", path=path)).status is ResultStatus.OK
        return workspace / path

    return put


def edit(old: str, new: str, **more) -> dict:
    return {"old": old, "new": new, **more}


async def test_several_replacements_are_applied_in_order(use, put, workspace):
    await put("one two three\n")
    done = await use("edit", path="a", edits=[edit("one", "1"), edit("1 two", "1 2")])
    assert (workspace / "a").read_text() == "1 2 three\n"
    assert done.text == "Edited a: 2 replacements."
    assert done.diff == "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one two three\n+1 2 three\n"
    assert done.changed_files == (str(workspace / "a"),)
    assert done.message == "a (+1 -1)"
    (block,) = done.display
    assert (block["type"], block["path"]) == ("diff", str(workspace / "a"))
    assert block["hunks"] == [{"old_line": 1, "new_line": 1, "before": "one two three\n", "after": "1 2 three\n"}]


async def test_all_replaces_every_occurrence(use, put, workspace):
    await put("x x x")
    done = await use("edit", path="a", edits=[edit("x", "y", all=True)])
    assert (workspace / "a").read_text() == "y y y"
    assert done.text == "Edited a: 3 replacements."
    assert done.display[0]["replaced"] == 3


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
        ("abc", [edit("a", "\ud800")], "surrogate"),
        ("x" * 1000, [edit("x", "y" * 1_000_000, all=True)], "would grow beyond 4 MiB"),
    ],
)
async def test_what_does_not_fit_exactly_is_refused_and_changes_nothing(
    tools, workspace, put, scope, content, edits, words
):
    await put(content)
    with pytest.raises(Invalid, match=words):
        await tools["edit"].prepare({"path": "a", "edits": edits}, scope)
    assert (workspace / "a").read_bytes() == content.encode()


async def test_line_ends_and_marks_stay_as_they_are(use, put, workspace):
    await put(b"\xef\xbb\xbfa\r\nb\r\n")
    await use("edit", path="a", edits=[edit("b\r\n", "c\r\n")])
    assert (workspace / "a").read_bytes() == b"\xef\xbb\xbfa\r\nc\r\n"


@pytest.mark.parametrize("meanwhile", ["old and more", "something else"])
async def test_a_file_changed_since_it_was_shown_is_left_alone(tools, workspace, put, scope, context, meanwhile):
    await put("old")
    prepared = await tools["edit"].prepare({"path": "a", "edits": [edit("old", "new")]}, scope)
    (workspace / "a").write_text(meanwhile)
    done = await tools["edit"].run(prepared, context)
    assert done.status is ResultStatus.ERROR
    assert "has changed since" in done.text
    assert (workspace / "a").read_text() == meanwhile


async def test_a_file_removed_since_is_not_made_again(tools, workspace, put, scope, context):
    await put("old")
    prepared = await tools["edit"].prepare({"path": "a", "edits": [edit("old", "new")]}, scope)
    (workspace / "a").unlink()
    assert (await tools["edit"].run(prepared, context)).status is ResultStatus.ERROR
    assert not (workspace / "a").exists()


async def test_edits_of_one_file_at_the_same_time_lose_nothing(tools, workspace, put, scope, context):
    """The calls of one step run at once. One comes first; each other one is told that the file has changed."""
    words = [f"word{n:02}" for n in range(20)]
    await put("\n".join(words))
    tool = tools["edit"]
    left = {word: await tool.prepare({"path": "a", "edits": [edit(word, word.upper())]}, scope) for word in words}
    while left:
        done = await asyncio.gather(*(tool.run(p, context) for p in left.values()), return_exceptions=True)
        over = [word for word, result in zip(list(left), done, strict=True) if not isinstance(result, Drifted)]
        assert over, done
        for word in over:
            del left[word]
        left = {w: await tool.prepare({"path": "a", "edits": [edit(w, w.upper())]}, scope) for w in left}
    assert (workspace / "a").read_text() == "\n".join(words).upper()


async def test_missing_binary_and_foreign_text_are_told(tools, workspace):
    (workspace / "b").write_bytes(b"a\0b")
    (workspace / "l").write_bytes(b"caf\xe9")
    for path, words in (("gone", "There is no file gone"), ("b", "binary"), ("l", "not UTF-8")):
        with pytest.raises(Invalid, match=words):
            await tools["edit"].prepare({"path": path, "edits": [edit("a", "b")]}, CallScope(str(workspace)))


async def test_a_file_this_thread_has_not_read_is_refused(tools, use, workspace, scope):
    (workspace / "a").write_text("old")
    call = {"path": "a", "edits": [edit("old", "new")]}
    with pytest.raises(Invalid, match=r"must be read before editing: it was not read in this thread"):
        await tools["edit"].prepare(call, scope)
    await use("read", path="a")
    with pytest.raises(Invalid, match="was not read in this thread"):
        await tools["edit"].prepare(call, CallScope(str(workspace), "thr_another"))
    await use("edit", **call)
    assert (workspace / "a").read_text() == "new"


async def test_a_file_changed_since_this_thread_read_it_is_refused(tools, use, put, scope):
    path = await put("old\n")
    path.write_text("old\nand more\n")
    with pytest.raises(Invalid, match=r"since it was read in this thread\. Read it again"):
        await tools["edit"].prepare({"path": "a", "edits": [edit("old", "new")]}, scope)
    await use("read", path="a", from_line=2, lines=1)  # a part of it will do
    await use("edit", path="a", edits=[edit("old", "new")])
    assert path.read_text() == "new\nand more\n"


async def test_what_this_thread_wrote_or_edited_itself_it_has_seen(use, workspace):
    await use("write", path="a", content="one")
    await use("edit", path="a", edits=[edit("one", "two")])
    await use("edit", path="a", edits=[edit("two", "three")])
    assert (workspace / "a").read_text() == "three"


async def test_a_reading_that_showed_nothing_does_not_count(tools, use, workspace, scope):
    (workspace / "a").write_text("old\n")
    assert (await use("read", path="a", from_line=9)).status is ResultStatus.ERROR
    with pytest.raises(Invalid, match="was not read"):
        await tools["edit"].prepare({"path": "a", "edits": [edit("old", "new")]}, scope)


async def test_a_link_inside_the_workspace_stays_a_link_and_counts_as_what_it_leads_to(use, put, workspace):
    await put("old", "real")
    (workspace / "link").symlink_to("real")
    await use("edit", path="link", edits=[edit("old", "new")])
    assert (workspace / "link").is_symlink()
    assert (workspace / "real").read_text() == "new"


async def test_the_other_name_of_a_hard_link_keeps_its_content(use, put, workspace, tmp_path):
    await put("ours")
    os.link(workspace / "a", tmp_path / "outside")
    await use("edit", path="a", edits=[edit("ours", "new")])
    assert (workspace / "a").read_text() == "new"
    assert (tmp_path / "outside").read_text() == "ours"
