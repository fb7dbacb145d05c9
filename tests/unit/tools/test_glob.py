from __future__ import annotations

import os

import pytest

from quintet.domain.errors import Invalid
from quintet.domain.tool import CallScope
from quintet.tools.glob import GlobTool
from quintet.workspace.paths import PathGuard


@pytest.fixture
def tree(workspace):
    paths = ["b.py", "a.py", "src/c.py", "src/d.ts", ".git/e.py", "quintet-home/f.py", "build/g.py", ".env", "ne\nw.py"]
    for age, path in enumerate(paths):
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_text("")
        os.utime(workspace / path, (1_000_000 - age, 1_000_000 - age))
    (workspace / ".gitignore").write_text("build/\n")
    return workspace


async def test_files_are_told_by_path_without_what_is_ignored_or_hidden(use, tree):
    done = await use("glob", pattern="**/*.py")
    assert done.text.splitlines() == ["a.py", "b.py", "ne\\nw.py", "src/c.py"]
    assert done.message == "4 files"
    assert done.display == ({"type": "brief", "text": "4 files"},)


async def test_the_newest_come_first_when_asked(use, tree):
    done = await use("glob", pattern="*.py", sort="mtime")
    assert done.text.splitlines() == ["b.py", "a.py", "src/c.py", "ne\\nw.py"]


async def test_the_pattern_is_read_from_the_directory_that_is_searched(use, tree):
    assert (await use("glob", pattern="*.ts", path="src")).text == "src/d.ts"
    assert (await use("glob", pattern="src/*.ts", path="src")).text == "No file fits."
    assert (await use("glob", pattern="src/*.ts")).text == "src/d.ts"


async def test_directories_and_what_is_ignored_are_found_when_asked(use, tree):
    (tree / "src/deep").mkdir()
    assert (await use("glob", pattern="./*", directories=True)).text.splitlines() == [
        *(".env", ".gitignore", "a.py", "b.py", "ne\\nw.py", "src/")
    ]
    assert (await use("glob", pattern="src/**", directories=True)).text.splitlines() == [
        *("src/", "src/c.py", "src/d.ts", "src/deep/")
    ]
    assert (await use("glob", pattern="*", path="src", directories=True)).text.splitlines() == [
        *("src/c.py", "src/d.ts", "src/deep/")
    ]
    assert (await use("glob", pattern="build/*", ignored=True)).text == "build/g.py"
    everything = (await use("glob", pattern="**", directories=True, ignored=True)).text.splitlines()
    assert {"build/", "build/g.py"} < set(everything)
    assert not [path for path in everything if path.startswith((".git/", "quintet-home"))]


async def test_many_files_are_cut_and_told(use, tree):
    done = await use("glob", pattern="*.py", limit=2)
    assert done.text.splitlines() == ["a.py", "b.py", "[2 more of 4 files are not shown]"]


async def test_a_long_result_is_cut_and_told(use, workspace):
    for number in range(400):
        (workspace / f"{number:03}{'x' * 200}").write_text("")
    done = await use("glob", pattern="*")
    shown = len(done.text.splitlines()) - 1
    assert len(done.text) < 61_000
    assert done.text.endswith(f"[{400 - shown} more of 400 files are not shown]")


async def test_a_place_that_is_no_directory_is_told(use, tree):
    assert (await use("glob", pattern="*", path="nowhere")).text == "There is no directory nowhere."
    assert "is not a directory" in (await use("glob", pattern="*", path="a.py")).text


async def test_without_ripgrep_it_finds_the_same(tree, context):
    tool = GlobTool(PathGuard(), {"PATH": "/nowhere"}, hidden=(str(tree / "quintet-home"),))
    done = await tool.run(await tool.prepare({"pattern": "**/*.py"}, CallScope(str(tree))), context)
    assert done.text.splitlines() == ["a.py", "b.py", "ne\\nw.py", "src/c.py"]


@pytest.mark.parametrize(
    "arguments",
    [{}, {"pattern": ""}, {"pattern": "a\nb"}, {"pattern": "../*"}, {"pattern": "/etc/*"}, {"pattern": "a", "x": 1}],
)
async def test_wrong_arguments_are_refused_in_words(tools, workspace, arguments):
    with pytest.raises(Invalid, match="glob: "):
        await tools["glob"].prepare(arguments, CallScope(str(workspace)))
