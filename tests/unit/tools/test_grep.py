from __future__ import annotations

import asyncio

import pytest

from quintet.domain.errors import Invalid
from quintet.domain.item import ResultStatus
from quintet.domain.tool import CallScope
from quintet.tools.grep import GrepTool
from quintet.workspace.paths import PathGuard


@pytest.fixture
def tree(workspace):
    for path, text in {
        "a.py": "import os\nprint(1)\n",
        "src/b.py": "import re\n",
        "src/deep/c.ts": "import x\n",
        ".git/config": "import secret\n",
        "quintet-home/credentials/key": "import key\n",
        "we:ird\x1b.txt": "import colon: yes\n",
        "bin": "import \0",
    }.items():
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_text(text)
    return workspace


async def test_matches_are_told_by_path_line_and_text_in_order(use, tree):
    done = await use("grep", pattern="^import [a-z]")
    assert done.text.splitlines() == [
        "a.py:1:import os",
        "src/b.py:1:import re",
        "src/deep/c.ts:1:import x",
        "we:ird\x1b.txt:1:import colon: yes",
    ]
    assert done.message == "4 matches"


@pytest.mark.parametrize(
    ("place", "paths"),
    [
        ({"glob": "*.py"}, ["a.py", "src/b.py"]),
        ({"glob": "src/**/*.ts"}, ["src/deep/c.ts"]),
        ({"glob": "src/*.py"}, ["src/b.py"]),
        ({"path": "src"}, ["src/b.py", "src/deep/c.ts"]),
        ({"path": "a.py"}, ["a.py"]),
        ({"path": "src", "glob": "*.ts"}, ["src/deep/c.ts"]),
    ],
)
async def test_path_and_glob_narrow_the_search(use, tree, place, paths):
    text = (await use("grep", pattern="import", **place)).text
    assert [line.split(":")[0] for line in text.splitlines()] == paths


async def test_nothing_found_is_told(use, tree):
    done = await use("grep", pattern="nowhere")
    assert (done.status, done.text, done.message) == (ResultStatus.OK, "No match.", "0 matches")


async def test_a_wrong_expression_is_told(use, tree):
    done = await use("grep", pattern="a(b")
    assert done.status is ResultStatus.ERROR
    assert "The search failed" in done.text


async def test_pattern_and_path_are_never_taken_for_options(use, workspace):
    (workspace / "-v").write_text("say --version\n")
    assert (await use("grep", pattern="--version", path="-v")).text == "-v:1:say --version"


async def test_many_matches_are_cut_and_told(use, workspace):
    for n in range(3):
        (workspace / f"f{n}").write_text("hit\n" * 150)
    done = await use("grep", pattern="hit")
    assert len(done.text.splitlines()) == 201
    assert done.text.endswith("[250 more matches are not shown]")


async def test_links_that_lead_out_are_not_searched(use, workspace, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "f").write_text("treasure")
    (workspace / "link").symlink_to(tmp_path / "outside")
    assert (await use("grep", pattern="treasure")).text == "No match."


async def test_an_expression_that_never_ends_is_ended(workspace, context, monkeypatch, tmp_path):
    slow = tmp_path / "bin" / "rg"
    slow.parent.mkdir()
    slow.write_text("#!/bin/sh\nprintf 'a\\0001:first\\nto'\nsleep 300\n")
    slow.chmod(0o755)
    monkeypatch.setattr("quintet.tools.grep.TIMEOUT_S", 0.3)
    tool = GrepTool(PathGuard(), {"PATH": f"{slow.parent}:/usr/bin:/bin"})
    prepared = await tool.prepare({"pattern": "(a+)+$"}, CallScope(str(workspace)))
    done = await asyncio.wait_for(tool.run(prepared, context), 10)
    assert done.text.startswith("a:1:first\n[the search was ended after")


async def test_without_any_searcher_it_says_so(workspace, context):
    tool = GrepTool(PathGuard(), {"PATH": "/nowhere"})
    done = await tool.run(await tool.prepare({"pattern": "x"}, CallScope(str(workspace))), context)
    assert done.text == "Neither ripgrep nor grep is installed here."


@pytest.mark.parametrize("arguments", [{}, {"pattern": ""}, {"pattern": "a\nb"}, {"pattern": "a", "flags": "i"}])
async def test_wrong_arguments_are_refused_in_words(tools, workspace, arguments):
    with pytest.raises(Invalid, match="grep: "):
        await tools["grep"].prepare(arguments, CallScope(str(workspace)))
