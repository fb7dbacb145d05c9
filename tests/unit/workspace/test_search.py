from __future__ import annotations

import asyncio
import os
import shutil
from random import Random

import pytest
from msgspec.structs import replace

from quintet.domain.errors import Invalid
from quintet.workspace.globs import Glob
from quintet.workspace.paths import PathGuard
from quintet.workspace.search import Query, Search
from quintet.workspace.search_child import Order, report
from tests.unit.workspace.search_trees import PATTERNS, fill

needs_ripgrep = pytest.mark.skipif(shutil.which("rg") is None, reason="ripgrep is not installed")
RIPGREP = {"PATH": os.path.dirname(shutil.which("rg") or "/nowhere")}
SHOWN = 500  # characters of a line that anybody sees
PYTHON = {"PATH": "/nowhere"}
both = pytest.mark.parametrize(
    "environment", [pytest.param(RIPGREP, id="ripgrep", marks=needs_ripgrep), pytest.param(PYTHON, id="python")]
)
# What our rewriting refuses although ripgrep reads it. Everything else is understood by both or by neither.
PLAINER = {
    r"foo|(?i)bar", r"\p{L}", r"\pL", r"\A", r"\z", r"(?x)f o o", r"(?s).", r"(?m)^foo",
    r"(?U)a+", r"(?u:a)", r"(?-u:a)", r"[a&&b]", r"[a--b]", r"[a~~b]", r"[[a]b]",
    r"[[:^alpha:]]", r"[[:nosuch:]]", r"\u{df}",
}  # fmt: skip


def place(root, path="."):
    return PathGuard().reading(path, str(root))


def in_this_process(root, query):
    """The Python searcher without its process; tests of that are below."""
    made = report(
        Order(
            os.fsencode(root), b"", pattern=query.pattern, ignore_case=query.ignore_case, before=query.before,
            after=query.after, glob=query.glob, rows=query.rows, ignored=query.ignored, occurrences=query.occurrences,
        )
    )  # fmt: skip
    if made.unsupported:
        return made.unsupported
    return [
        (
            os.fsdecode(f.path),
            f.lines,
            [(r.number, r.matches, r.text.decode("utf-8", "replace")[:SHOWN], r.column) for r in f.rows],
        )
        for f in made.files
    ]


def plain(findings):
    return [
        (hits.path, hits.lines, [(row.number, row.matches, row.text[:SHOWN], row.column) for row in hits.rows])
        for hits in findings.files
    ]


@needs_ripgrep
@pytest.mark.parametrize("seed", range(60))
async def test_both_engines_find_the_same(tmp_path, seed):
    random = Random(seed)
    root = tmp_path / "root"
    root.mkdir()
    fill(root, random)
    for pattern in random.sample(PATTERNS, 10):
        query = Query(
            pattern,
            ignore_case=random.random() < 0.3,
            before=random.choice([0, 0, 1, 3]),
            after=random.choice([0, 0, 1, 3]),
            glob=random.choice(["", "", "", "*.py", "src/**", "*.{ts,tsx}", "a.py", "src/*"]),
            rows=random.choice([10_000, 10_000, 5, 0]),
            ignored=random.random() < 0.3,
        )
        if not query.rows and pattern.isalnum():  # how often nothing occurs is read in several ways
            query = replace(query, occurrences=random.random() < 0.5)
        ours = in_this_process(root, query)
        try:
            theirs = plain(await Search(RIPGREP).lines(place(root), query))
        except Invalid:
            assert isinstance(ours, str), (query, ours)
            continue
        if isinstance(ours, str):
            assert pattern in PLAINER, (query, ours)
            continue
        if query.rows < 10_000:  # which rows of a file beyond the limit come along is nobody's concern
            ours, theirs = ([entry[:2] for entry in found] for found in (ours, theirs))
        assert ours == theirs, query


@needs_ripgrep
@pytest.mark.parametrize("pattern", PATTERNS)
async def test_an_expression_means_the_same_to_both_engines_or_is_refused(tmp_path, pattern):
    samples = "foo|Foo|FOO|bar|o|fo\to|a.b|aab|aa|a|ab|b|ä|Ä|ß|日本|42|x y|^|$|{2}|[x]|(|)|\\|-|--version|]|\u00a0|_"
    lines = [line.encode() for line in samples.split("|")] + [
        b"",
        b" ",
        b"\xff",
        b"\xfffoo",
        b"foo\r",
        b"\x0c",
        b"import os",
    ]
    (tmp_path / "f").write_bytes(b"\n".join(lines) + b"\n")
    for ignore_case in (False, True):
        query = Query(pattern, ignore_case=ignore_case, rows=1_000)
        ours = in_this_process(tmp_path, query)
        try:
            theirs = plain(await Search(RIPGREP).lines(place(tmp_path), query))
        except Invalid:
            assert isinstance(ours, str)
        else:
            assert ours == theirs or (isinstance(ours, str) and pattern in PLAINER)


@both
async def test_context_counts_and_order(tmp_path, environment):
    (tmp_path / "b").write_text("1\nhit\n3\n4\n5\n6\nhit\nhit\n9\n")
    (tmp_path / "a").write_text("hit\n")
    found = await Search(environment).lines(place(tmp_path), Query("hit", before=1, after=1, rows=100))
    assert [hits.path for hits in found.files] == ["a", "b"]
    assert [(row.number, row.matches) for row in found.files[1].rows] == [
        (1, False), (2, True), (3, False), (6, False), (7, True), (8, True), (9, False),
    ]  # fmt: skip
    assert found.lines == 4


@both
async def test_names_with_newline_colon_and_bytes_are_found(tmp_path, environment):
    names = (b"new\nline", b"co:12:lon", b"by\xfftes", b"-dash")
    inner = os.path.join(os.fsencode(tmp_path), b"inner")
    os.mkdir(inner)
    for name in names:
        with open(os.path.join(inner, name), "w") as file:
            file.write("hit\n")
    for start in (".", "inner"):
        found = await Search(environment).lines(place(tmp_path, start), Query("hit", rows=10))
        paths = ["inner/-dash", "inner/by\udcfftes", "inner/co:12:lon", "inner/new\nline"]
        assert [hits.path for hits in found.files] == paths
        assert (
            sorted(hits.path for hits in (await Search(environment).files(place(tmp_path, start), Glob("*"))).files)
            == paths
        )


@both
@pytest.mark.parametrize("name", ["co:12:lon", "-dash", "sp ace", "[a]*?{b}"])
async def test_a_file_of_an_odd_name_is_searched_alone(tmp_path, environment, name):
    for other in (name, "other"):
        (tmp_path / other).write_text("hit\n")
    found = await Search(environment).lines(place(tmp_path, name), Query("hit", rows=10))
    assert [hits.path for hits in found.files] == [name]


@both
async def test_a_named_file_is_searched_although_it_is_ignored(tmp_path, environment):
    (tmp_path / ".gitignore").write_text("*.log\nsub/\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "x.log").write_text("hit\n")
    (tmp_path / "sub" / "y").write_text("hit\n")
    search = Search(environment)
    assert (await search.lines(place(tmp_path), Query("hit", rows=9))).files == []
    for path, files in {"sub/x.log": ["sub/x.log"], "sub": ["sub/y"]}.items():
        assert [h.path for h in (await search.lines(place(tmp_path, path), Query("hit", rows=9))).files] == files


@both
async def test_rules_above_the_workspace_do_not_count_and_those_in_it_do(tmp_path, environment):
    (tmp_path / ".gitignore").write_text("*\n")
    (tmp_path / ".ignore").write_text("*\n")
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "kept").write_text("hit\n")
    (root / "sub" / "left.out").write_text("hit\n")
    (root / ".gitignore").write_text("*.out\n")
    search = Search(environment)
    for start in (".", "sub"):
        found = await search.lines(place(root, start), Query("hit", rows=9))
        assert [hits.path for hits in found.files] == ["sub/kept"]
        assert [hits.path for hits in (await search.files(place(root, start), Glob("*"))).files][-1:] == ["sub/kept"]


@both
async def test_quintet_s_home_is_not_searched(tmp_path, environment):
    home = tmp_path / "we[i]rd {home}"
    home.mkdir()
    (home / "key").write_text("hit\n")
    (tmp_path / "we[i]rd {home}2").write_text("hit\n")
    search = Search(environment, (str(home),))
    assert [h.path for h in (await search.lines(place(tmp_path), Query("hit", rows=9))).files] == ["we[i]rd {home}2"]
    assert [h.path for h in (await search.files(place(tmp_path), Glob("*"))).files] == ["we[i]rd {home}2"]


@both
async def test_links_are_neither_followed_nor_searched(tmp_path, environment):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "f").write_text("hit\n")
    root = tmp_path / "root"
    root.mkdir()
    (root / "directory").symlink_to("../outside")
    (root / "file").symlink_to("../outside/f")
    search = Search(environment)
    assert (await search.lines(place(root), Query("hit", rows=9))).files == []
    assert (await search.files(place(root), Glob("*"))).files == []


@pytest.mark.req("security:S17")
@both
async def test_a_link_swapped_in_after_the_check_is_not_followed(tmp_path, environment):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "f").write_text("hit\n")
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "f").write_text("\n")
    for path, swapped in (("sub/f", "../../outside/f"), ("sub", "../outside")):
        checked = place(root, path)
        shutil.move(root / path, root / "moved")
        (root / path).symlink_to(swapped)
        with pytest.raises((OSError, Invalid)):
            await Search(environment).lines(checked, Query("hit", rows=9))
        (root / path).unlink()
        shutil.move(root / "moved", root / path)


@both
async def test_a_pipe_is_not_waited_for(tmp_path, environment):
    os.mkfifo(tmp_path / "pipe")
    search = Search(environment)
    found = await asyncio.wait_for(search.lines(place(tmp_path), Query("hit", rows=9)), 20)
    assert found.files == []
    with pytest.raises(Invalid, match="neither a directory nor a regular file"):
        await search.lines(place(tmp_path, "pipe"), Query("hit", rows=9))


async def test_an_expression_that_runs_away_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr("quintet.workspace.search.TIMEOUT_S", 1.0)
    (tmp_path / "f").write_text("a" * 40 + "!\n")
    with pytest.raises(Invalid, match="ended after 1 s"):
        await asyncio.wait_for(Search(PYTHON).lines(place(tmp_path), Query("(a+)+$", rows=9)), 20)
    assert not _children()


async def test_a_cancelled_search_leaves_no_process(tmp_path):
    (tmp_path / "f").write_text("a" * 40 + "!\n")
    searching = asyncio.ensure_future(Search(PYTHON).lines(place(tmp_path), Query("(a+)+$", rows=9)))
    async with asyncio.timeout(20):
        while not _children():
            await asyncio.sleep(0.01)
    searching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(searching, 10)
    assert not _children()


def _children():
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return [pid for pid in file.read().split() if b"search_child" in _command(pid)]


def _command(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


@both
async def test_more_than_can_be_read_is_counted_and_begun(tmp_path, environment, monkeypatch):
    monkeypatch.setattr("quintet.workspace.search_ripgrep.OUTPUT_LIMIT", 20_000)
    for name in ("a", "b", "c d"):
        (tmp_path / name).write_text("hit me\n" * 300)
    found = await Search(environment).lines(place(tmp_path), Query("hit", rows=20))
    assert [(hits.path, hits.lines) for hits in found.files] == [("a", 300), ("b", 300), ("c d", 300)]
    assert [row.number for row in found.files[0].rows][:20] == list(range(1, 21))
    assert found.notes == ()


@needs_ripgrep
async def test_lines_too_long_to_be_read_are_told(tmp_path, monkeypatch):
    monkeypatch.setattr("quintet.workspace.search_ripgrep.OUTPUT_LIMIT", 20_000)
    (tmp_path / "a").write_text("hit" + "x" * 30_000 + "\n")
    found = await Search(RIPGREP).lines(place(tmp_path), Query("hit", rows=20))
    assert [(hits.path, hits.lines, hits.rows) for hits in found.files] == [("a", 1, ())]
    assert found.notes == ("the lines are too long to be shown; only files are told",)


@both
async def test_a_project_has_no_say_in_how_it_is_searched(tmp_path, environment):
    (tmp_path / "quintet").mkdir()
    (tmp_path / "quintet" / "__init__.py").write_text("raise SystemExit('taken over')\n")
    (tmp_path / "re.py").write_text("raise SystemExit('taken over')\n")
    (tmp_path / ".ripgreprc").write_text("--pre=/bin/false\n")
    hostile = {**environment, "RIPGREP_CONFIG_PATH": str(tmp_path / ".ripgreprc"), "PYTHONPATH": str(tmp_path)}
    found = await Search(hostile).lines(place(tmp_path), Query("taken", rows=9))
    assert [hits.path for hits in found.files] == ["quintet/__init__.py", "re.py"]


@both
@pytest.mark.parametrize(
    ("glob", "paths"),
    [
        ("*.py", ["a.py", "src/b.py", "src/deep/c.py"]),
        ("**/*.py", ["a.py", "src/b.py", "src/deep/c.py"]),
        ("src/*", ["src/b.py"]),
        ("src/**", ["src/b.py", "src/deep/c.py", "src/deep/d.ts"]),
        ("./src/*.py", ["src/b.py"]),
        ("*.{ts,tsx}", ["src/deep/d.ts"]),
        ("{a,src/b}.py", ["a.py", "src/b.py"]),
        ("deep", []),
        ("[ab].py", ["a.py", "src/b.py"]),
    ],
)
async def test_files_are_found_by_glob(tmp_path, environment, glob, paths):
    for path in ("a.py", "src/b.py", "src/deep/c.py", "src/deep/d.ts", "ignored/e.py", ".git/f.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("")
    (tmp_path / ".ignore").write_text("ignored\n")
    assert [hits.path for hits in (await Search(environment).files(place(tmp_path), Glob(glob))).files] == paths


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("./a: Permission denied (os error 13)", "could not be read: one place a: Permission denied (os error 13)"),
        ("rg: ./a: Gone\nrg: ./b: Gone", "could not be read: 2 places, such as a: Gone"),
    ],
)
@pytest.mark.parametrize("rows", [0, 10])
async def test_what_ripgrep_could_not_read_is_told_and_no_failure(tmp_path, monkeypatch, said, told, rows):
    fake = tmp_path / "bin" / "rg"
    fake.parent.mkdir()
    monkeypatch.setattr("quintet.workspace.environment.SYSTEM", {str(fake.parent)})
    fake.write_text(f"#!/bin/sh\ncat > /dev/null\ncat >&2 <<'END'\n{said}\nEND\nexit 2\n")
    fake.chmod(0o755)
    environment = {"PATH": f"{fake.parent}:/usr/bin:/bin"}
    found = await Search(environment).lines(place(tmp_path), Query("x", rows=rows))
    assert (found.files, found.notes) == ([], (told,))


async def test_what_the_python_searcher_could_not_read_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("quintet.workspace.ignore.DEPTH_LIMIT", 1)
    (tmp_path / "a").mkdir()
    found = await Search(PYTHON).files(place(tmp_path), Glob("*"))
    assert found.notes == ("could not be read: one place a: more than 1 directories deep",)
