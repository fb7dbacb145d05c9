from __future__ import annotations

import asyncio
import os

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
        "we:ird\\x1b.txt:1:import colon: yes",
    ]
    assert done.message == "4 matches in 4 files"
    assert done.display == ({"type": "brief", "text": "4 matches in 4 files"},)


@pytest.mark.parametrize(
    ("place", "paths"),
    [
        ({"glob": "*.py"}, ["a.py", "src/b.py"]),
        ({"glob": "src/**/*.ts"}, ["src/deep/c.ts"]),
        ({"glob": "src/*.py"}, ["src/b.py"]),
        ({"path": "src"}, ["src/b.py", "src/deep/c.ts"]),
        ({"path": "a.py"}, ["a.py"]),
        ({"path": "src", "glob": "*.ts"}, ["src/deep/c.ts"]),
        ({"path": "src", "glob": "deep/*"}, ["src/deep/c.ts"]),
        ({"path": "src", "glob": "src/deep/*"}, ["src/deep/c.ts"]),
        ({"path": "src/deep/c.ts", "glob": "src/**"}, ["src/deep/c.ts"]),
        ({"glob": "*.{py,ts}"}, ["a.py", "src/b.py", "src/deep/c.ts"]),
        ({"glob": "deep"}, ["src/deep/c.ts"]),
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
    assert done.text.endswith("[250 more matches are not shown; go on with skip=200]")


async def test_links_that_lead_out_are_not_searched(use, workspace, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "f").write_text("treasure")
    (workspace / "link").symlink_to(tmp_path / "outside")
    assert (await use("grep", pattern="treasure")).text == "No match."


async def test_a_searcher_that_never_ends_is_ended_and_what_it_found_is_told(workspace, context, monkeypatch, tmp_path):
    slow = tmp_path / "bin" / "rg"
    slow.parent.mkdir()
    monkeypatch.setattr("quintet.workspace.environment.SYSTEM", {str(slow.parent)})
    said = [
        '{"type":"match","data":{"path":{"text":"./a"},"lines":{"text":"first\\n"},"line_number":1}}',
        '{"type":"end","data":{"path":{"text":"./a"},"binary_offset":null}}',
        '{"type":"match","data":{"path":{"text":"./b"},"lines":{"text":"torn\\n"},"line_num',
    ]
    (tmp_path / "said").write_text("\n".join(said))
    slow.write_text(f"#!/bin/sh\ncat {tmp_path}/said\nexec sleep 300\n")
    slow.chmod(0o755)
    monkeypatch.setattr("quintet.workspace.search.TIMEOUT_S", 1.0)
    tool = GrepTool(PathGuard(), {"PATH": f"{slow.parent}:/usr/bin:/bin"})
    prepared = await tool.prepare({"pattern": "(a+)+$"}, CallScope(str(workspace)))
    done = await asyncio.wait_for(tool.run(prepared, context), 10)
    assert done.text == "a:1:first\n[the search was ended after 1 s; there may be more]"


async def test_without_ripgrep_it_searches_all_the_same(tree, context):
    tool = GrepTool(PathGuard(), {"PATH": "/nowhere"}, hidden=(str(tree / "quintet-home"),))

    async def used(**arguments):
        return await tool.run(await tool.prepare(arguments, CallScope(str(tree))), context)

    done = await used(pattern="^import [a-z]", glob="*.py")
    assert done.text.splitlines() == ["a.py:1:import os", "src/b.py:1:import re"]
    refused = await used(pattern=r"\p{L}")
    assert refused.status is ResultStatus.ERROR
    assert "without ripgrep this expression cannot be used" in refused.text
    assert "Without ripgrep lines are searched one by one." in (await used(pattern="a.b", multiline=True)).text


@pytest.mark.parametrize(
    ("output", "lines"),
    [("files", ["a.py", "src/b.py", "src/deep/c.ts"]), ("count", ["a.py:1", "src/b.py:1", "src/deep/c.ts:1"])],
)
async def test_files_and_counts_are_told_instead_of_lines(use, tree, output, lines):
    done = await use("grep", pattern="IMPORT", output=output, ignore_case=True, glob="*.{py,ts}")
    assert done.text.splitlines() == lines
    cut = await use("grep", pattern="import", output=output, glob="*.{py,ts}", limit=1)
    assert cut.text.splitlines() == [lines[0], "[2 more files are not shown; go on with skip=1]"]
    rest = await use("grep", pattern="import", output=output, glob="*.{py,ts}", skip=1)
    assert rest.text.splitlines() == lines[1:]


async def test_context_is_shown_as_grep_shows_it(use, workspace):
    (workspace / "f").write_text("one\nhit\nthree\nfour\nfive\nhit\n")
    done = await use("grep", pattern="hit", context=1)
    assert done.text.splitlines() == ["f-1-one", "f:2:hit", "f-3-three", "--", "f-5-five", "f:6:hit"]


async def test_lines_before_and_after_are_chosen_apart_and_need_no_numbers(use, workspace):
    (workspace / "f").write_text("one\nhit\nthree\n")
    assert (await use("grep", pattern="hit", after=1)).text.splitlines() == ["f:2:hit", "f-3-three"]
    assert (await use("grep", pattern="hit", before=1, numbers=False)).text.splitlines() == ["f-one", "f:hit"]
    assert (await use("grep", pattern="hit", context=1, after=0)).text.splitlines() == ["f-1-one", "f:2:hit"]


async def test_a_search_goes_on_where_it_was_cut(use, workspace):
    (workspace / "f").write_text("".join(f"hit {n}\n" for n in range(5)))
    first = await use("grep", pattern="hit", limit=2)
    assert first.text.splitlines() == ["f:1:hit 0", "f:2:hit 1", "[3 more matches are not shown; go on with skip=2]"]
    assert (await use("grep", pattern="hit", skip=2)).text.splitlines() == ["f:3:hit 2", "f:4:hit 3", "f:5:hit 4"]
    assert (await use("grep", pattern="hit", skip=9)).text == "No match."


async def test_an_expression_may_go_over_several_lines(use, workspace):
    (workspace / "f").write_text("x\ndef f():\n    return 1\ny\n")
    assert (await use("grep", pattern="def.*return")).text == "No match."
    done = await use("grep", pattern="def.*return", multiline=True)
    assert done.text.splitlines() == ["f:2:def f():", "f:3:    return 1"]
    assert (await use("grep", pattern="f..:\n +r", multiline=True)).text == done.text
    with pytest.raises(Invalid, match="one line"):
        await use("grep", pattern="f\ng")


async def test_matches_are_counted_and_ignored_files_searched_when_asked(use, workspace):
    (workspace / ".gitignore").write_text("out\n")
    (workspace / "f").write_text("hit hit\nhit\n")
    (workspace / "out").write_text("hit\n")
    assert (await use("grep", pattern="hit", output="count")).text == "f:2"
    assert (await use("grep", pattern="hit", output="occurrences")).text == "f:3"
    assert (await use("grep", pattern="hit", output="files", ignored=True)).text.splitlines() == ["f", "out"]
    os.utime(workspace / "f", (1, 1))
    newest = await use("grep", pattern="hit", output="files", ignored=True, sort="mtime")
    assert newest.text.splitlines() == ["out", "f"]


async def test_long_lines_and_long_results_are_cut_and_told(use, workspace):
    (workspace / "f").write_text("hit" + "x" * 600 + "\n")
    done = await use("grep", pattern="hit")
    assert done.text == "f:1:hit" + "x" * 497 + "… [cut]"
    (workspace / "f").write_text(("hit" + "x" * 400 + "\n") * 1_000)
    done = await use("grep", pattern="hit", limit=1_000)
    assert len(done.text) < 61_000
    shown = len(done.text.splitlines()) - 1
    assert done.text.endswith(f"[{1_000 - shown} more matches are not shown; go on with skip={shown}]")
    assert done.message == "1,000 matches in 1 file"


async def test_line_ends_of_windows_are_not_shown(use, workspace):
    (workspace / "f").write_bytes(b"hit\r\n")
    assert (await use("grep", pattern="hit")).text == "f:1:hit"


async def test_a_place_that_is_not_there_is_told(use, workspace):
    assert (await use("grep", pattern="x", path="nowhere")).text == "There is no file or directory nowhere."


@pytest.mark.req("security:S16")
@pytest.mark.parametrize("tool", ["grep", "glob"])
@pytest.mark.parametrize(
    "path", ["..", "/etc", "out", "out/passwd", "a/../..", "/proc/self/root/etc", "x\0", "quintet-home"]
)
async def test_a_path_outside_the_workspace_is_not_searched(tools, tree, tool, path):
    (tree / "out").symlink_to("/etc")
    with pytest.raises(Invalid):
        await tools[tool].prepare({"pattern": "root", "path": path}, CallScope(str(tree)))


@pytest.mark.req("security:S16")
@pytest.mark.parametrize("tool", ["grep", "glob"])
async def test_a_link_that_leads_out_since_it_was_prepared_is_not_searched(tools, tree, context, tool):
    prepared = await tools[tool].prepare({"pattern": "passwd", "path": "src"}, CallScope(str(tree)))
    (tree / "src").rename(tree / "moved")
    (tree / "src").symlink_to("/etc")
    done = await tools[tool].run(prepared, context)
    assert done.status is ResultStatus.ERROR
    assert "outside the workspace" in done.text


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"pattern": ""},
        {"pattern": "a\nb"},
        {"pattern": "a", "flags": "i"},
        {"pattern": "a", "context": 21},
        {"pattern": "a", "limit": 0},
        {"pattern": "a", "output": "lines"},
    ],
)
async def test_wrong_arguments_are_refused_in_words(tools, workspace, arguments):
    with pytest.raises(Invalid, match="grep: "):
        await tools["grep"].prepare(arguments, CallScope(str(workspace)))
