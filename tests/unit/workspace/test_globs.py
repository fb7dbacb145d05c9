from __future__ import annotations

import pytest

from quintet.domain.errors import Invalid
from quintet.workspace.globs import Glob, alternatives


@pytest.mark.parametrize(
    ("glob", "path", "fits", "covers"),
    [
        ("*.py", "a/b/c.py", True, True),
        ("*.py", "a.pyc", False, False),
        ("*.py", "dir.py/x", False, False),
        ("src", "src/x/y.py", False, True),
        ("src/", "src/x/y.py", False, True),
        ("src/**", "src/x/y.py", True, True),
        ("src/**/*.py", "src/y.py", True, True),
        ("src/*", "src/x/y.py", False, True),
        ("**/test_*.py", "a/b/test_x.py", True, True),
        ("**/test_*.py", "test_x.py", True, True),
        ("./a/*", "a/x", True, True),
        ("/a/*", "a/x", True, True),
        ("src/*.py", "lib/src/a.py", False, False),
        ("a/**/b/*.py", "a/c/d.py", False, False),
        ("a/**/b/*.py", "a/c/b/d.py", True, True),
        ("*.{ts,tsx}", "x/y.tsx", True, True),
        ("{src,lib}/*.py", "lib/a.py", True, True),
        ("[!a].py", "b.py", True, True),
        ("**", "a/b", True, True),
        ("Makefile", "sub/Makefile", True, True),
        ("new*", "new\nline", True, True),
    ],
)
def test_globs_fit_by_name_or_by_path(glob, path, fits, covers):
    assert Glob(glob).fits(path) is fits
    assert Glob(glob).covers(path) is covers


@pytest.mark.parametrize("glob", ["{a", "{a,{b,c}}", "{a,b}" * 7])
def test_braces_that_make_no_sense_are_refused(glob):
    with pytest.raises(Invalid, match="braces"):
        Glob(glob)


def test_braces_are_left_alone_where_they_are_quoted():
    assert alternatives("[{]a,b") == ["[{]a,b"]
    assert alternatives("\\{a,b\\}") == ["\\{a,b\\}"]


def test_only_plain_endings_are_told_to_another_program():
    assert list(Glob("*.{py,tar.gz}").endings()) == ["*.py", "*.tar.gz"]
    for glob in ("*", "a*.py", "*.p?", "src/*.py", "{*.py,src/x}", "*.ä"):
        assert not Glob(glob).endings()


@pytest.mark.parametrize(
    ("glob", "leads", "leads_not"),
    [
        ("*.py", ("a", "a/b"), ()),
        ("./*.py", (), ("a",)),
        ("src/*.py", ("src",), ("lib", "src/deep")),
        ("src/**/*.py", ("src", "src/a", "src/a/b"), ("lib", "lib/src")),
        ("**/test/*.py", ("a", "a/b", "test"), ()),
        ("src/**", ("src", "src/a"), ("lib",)),
        ("{a,b/c}/x", ("a", "b", "b/c"), ("c", "a/b")),
    ],
)
def test_a_walk_enters_only_what_leads_to_something(glob, leads, leads_not):
    assert [Glob(glob).leads(path) for path in leads] == [True] * len(leads)
    assert [Glob(glob).leads(path) for path in leads_not] == [False] * len(leads_not)
