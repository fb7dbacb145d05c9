from __future__ import annotations

import os

import pytest

from quintet.domain.errors import Drifted, Invalid
from quintet.domain.item import ResultStatus
from quintet.domain.tool import CallScope, Effect


async def test_a_new_file_is_made_with_the_directories_above_it(use, workspace):
    done = await use("write", path="a/b/c.txt", content="one\ntwo\n")
    target = workspace / "a/b/c.txt"
    assert target.read_text() == "one\ntwo\n"
    assert done.text == "Created a/b/c.txt."
    assert done.message == "a/b/c.txt (+2 -0)"
    assert done.changed_files == (str(target),)
    assert done.diff == "--- /dev/null\n+++ b/a/b/c.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n"
    hunk = {"old_line": 1, "new_line": 1, "before": "", "after": "one\ntwo\n"}
    assert done.display == ({"type": "diff", "path": str(target), "hunks": [hunk], "bytes": target.stat().st_size},)


async def test_preparing_changes_nothing_and_shows_the_diff(tools, workspace):
    prepared = await tools["write"].prepare({"path": "a/b", "content": "x\n"}, CallScope(str(workspace)))
    assert os.listdir(workspace) == []
    assert "+x\n" in prepared.diff
    assert prepared.paths == (str(workspace / "a/b"),)
    assert tools["write"].spec.effect is Effect.WRITE


async def test_an_existing_file_keeps_its_mode_and_leaves_nothing_beside_it(use, workspace):
    script = workspace / "run.sh"
    script.write_text("old")
    script.chmod(0o750)
    done = await use("write", path="run.sh", content="new")
    assert done.text == "Wrote run.sh."
    assert script.read_text() == "new"
    assert script.stat().st_mode & 0o777 == 0o750
    assert os.listdir(workspace) == ["run.sh"]


async def test_content_is_written_byte_for_byte(use, workspace):
    await use("write", path="a", content="a\r\nb\rä\u2028\n\n")
    assert (workspace / "a").read_bytes() == "a\r\nb\rä\u2028\n\n".encode()


async def test_a_link_inside_the_workspace_stays_a_link(use, workspace):
    (workspace / "real").write_text("old")
    (workspace / "link").symlink_to("real")
    await use("write", path="link", content="new")
    assert (workspace / "link").is_symlink()
    assert (workspace / "real").read_text() == "new"


async def test_a_hard_link_to_something_outside_is_not_written_through(use, workspace, tmp_path):
    (tmp_path / "outside").write_text("theirs")
    os.link(tmp_path / "outside", workspace / "inside")
    await use("write", path="inside", content="ours")
    assert (tmp_path / "outside").read_text() == "theirs"


async def test_a_file_changed_since_it_was_shown_is_left_alone(tools, workspace, context):
    (workspace / "a").write_text("shown")
    prepared = await tools["write"].prepare({"path": "a", "content": "mine"}, CallScope(str(workspace)))
    (workspace / "a").write_text("changed meanwhile")
    with pytest.raises(Drifted, match="has changed since"):
        await tools["write"].run(prepared, context)
    assert (workspace / "a").read_text() == "changed meanwhile"


async def test_a_file_that_appeared_since_is_left_alone(tools, workspace, context):
    prepared = await tools["write"].prepare({"path": "a", "content": "mine"}, CallScope(str(workspace)))
    (workspace / "a").write_text("theirs")
    with pytest.raises(Drifted):
        await tools["write"].run(prepared, context)
    assert (workspace / "a").read_text() == "theirs"


async def test_a_directory_swapped_for_a_link_after_preparing_is_refused(tools, workspace, context, tmp_path):
    (workspace / "d").mkdir()
    (tmp_path / "outside").mkdir()
    prepared = await tools["write"].prepare({"path": "d/a", "content": "mine"}, CallScope(str(workspace)))
    (workspace / "d").rmdir()
    (workspace / "d").symlink_to(tmp_path / "outside")
    done = await tools["write"].run(prepared, context)
    assert done.status is ResultStatus.ERROR
    assert os.listdir(tmp_path / "outside") == []


async def test_the_same_content_again_writes_nothing(use, workspace):
    (workspace / "a").write_text("same")
    before = (workspace / "a").stat().st_mtime_ns
    done = await use("write", path="a", content="same")
    assert (done.status, done.message) == (ResultStatus.OK, "no change")
    assert (workspace / "a").stat().st_mtime_ns == before


@pytest.mark.parametrize(
    "path", [".git/hooks/pre-commit", "sub/.GIT/config", ".git", ".mcp.json", ".vscode/tasks.json"]
)
async def test_protected_names_are_not_written(tools, workspace, path):
    with pytest.raises(Invalid, match="is protected"):
        await tools["write"].prepare({"path": path, "content": "x"}, CallScope(str(workspace)))


async def test_a_directory_or_binary_in_the_way_is_told(tools, workspace):
    (workspace / "d").mkdir()
    (workspace / "b").write_bytes(b"\0\1")
    (workspace / "f").write_text("")
    for path, words in (("d", "is a directory"), ("b", "binary"), ("f/x", "Not a directory")):
        with pytest.raises(Invalid, match=words):
            await tools["write"].prepare({"path": path, "content": "x"}, CallScope(str(workspace)))


async def test_what_cannot_be_stored_is_refused(tools, workspace):
    with pytest.raises(Invalid, match="surrogate"):
        await tools["write"].prepare({"path": "a", "content": "\ud800"}, CallScope(str(workspace)))
    with pytest.raises(Invalid, match="larger than 4 MiB"):
        await tools["write"].prepare({"path": "a", "content": "x" * (4 * 1024 * 1024 + 1)}, CallScope(str(workspace)))


async def test_a_disk_that_refuses_leaves_the_old_file_and_nothing_else(use, workspace, monkeypatch):
    (workspace / "a").write_text("old")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    done = await use("write", path="a", content="new")
    assert done.text == "a: No space left on device."
    assert os.listdir(workspace) == ["a"]
    assert (workspace / "a").read_text() == "old"


async def test_what_is_appended_follows_what_is_there(use, workspace):
    (workspace / "log").write_text("one\n")
    done = await use("write", path="log", content="two\n", append=True)
    assert (workspace / "log").read_text() == "one\ntwo\n"
    assert done.text == "Added to log."
    assert done.display[0]["bytes"] == 8


async def test_what_is_appended_to_no_file_makes_one(use, workspace):
    assert (await use("write", path="new", content="one", append=True)).text == "Created new."
    assert (workspace / "new").read_text() == "one"
