from __future__ import annotations

import os
import shutil
import stat
import subprocess
from random import Random

import pytest

from quintet.workspace.ignore import Ignored
from quintet.workspace.paths import PathGuard
from tests.unit.workspace.ignore_trees import directories, plant

needs_ripgrep = pytest.mark.skipif(shutil.which("rg") is None, reason="ripgrep is not installed")
RIPGREP = ["rg", "--no-config", "--files", "--hidden", "--no-require-git", "--no-ignore-global", "--no-messages"]


@pytest.fixture
def tree(tmp_path):
    root = tmp_path / "tree"

    def make(**files):
        for path, text in files.items():
            place = root / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        return root

    root.mkdir()
    return make


def paths(root, start="", **options):
    return [found.path for found in Ignored(str(root), **options).walk(start)]


@needs_ripgrep
@pytest.mark.parametrize("seed", range(120))
def test_the_walk_leaves_out_what_ripgrep_leaves_out(tmp_path, seed):
    random = Random(seed)
    root = tmp_path / "tree"
    plant(root, random)
    for start in random.sample(starts := directories(root), min(3, len(starts))):
        # Started where it searches: ripgrep 13 misreads rules above a directory it is only given.
        argv = [*RIPGREP, "--null", "--glob=!.git", "--", "."]
        told = subprocess.run(argv, cwd=root / start, capture_output=True, timeout=30, check=False).stdout
        theirs = sorted(os.path.normpath(f"{start}/{os.fsdecode(path)}") for path in told.split(b"\0") if path)
        ignored = Ignored(str(root))
        ours = sorted(f.path for f in ignored.walk(start) if f.entry.is_file(follow_symlinks=False))
        assert ours == theirs, start
        if start == ".":
            every = [os.path.relpath(os.path.join(h, n), root) for h, _, names in os.walk(root) for n in names]
            assert sorted(p for p in every if not ignored.ignores(p) and not (root / p).is_symlink()) == theirs


def test_rules_of_every_kind_and_level_are_applied(tree):
    root = tree(
        **{
            ".gitignore": "*.log\n/only-here\n",
            ".ignore": "data/\n!kept.log\n",
            "kept.log": "",
            "gone.log": "",
            "only-here": "",
            "sub/only-here": "",
            "data/x": "",
            "sub/.gitignore": "!back.log\nnot-here\n",
            "sub/back.log": "",
            "sub/not-here": "",
            "not-here": "",
            ".git/info/exclude": "secret\n",
            "sub/secret": "",
            "sub/.rgignore": "noise\n",
            "sub/noise": "",
        }
    )
    files = [path for path in paths(root) if "ignore" not in path]
    assert files == ["kept.log", "not-here", "sub/back.log", "sub/only-here"]


def test_rules_above_the_root_do_not_count(tree):
    root = tree(**{".gitignore": "*\n", ".ignore": "*\n", "inner/file": ""})
    assert paths(root / "inner") == ["file"]


def test_a_repository_in_the_tree_has_its_own_git_rules_and_shares_the_others(tree):
    root = tree(
        **{".gitignore": "a\n", ".ignore": "b\n", "lib/.git/HEAD": "", "lib/a": "", "lib/b": "", "lib/c": "", "a": ""}
    )
    assert paths(root, "lib") == ["lib/a", "lib/c"]


def test_a_linked_worktree_s_exclude_file_is_found(tree, tmp_path):
    root = tree(**{"a": "", "b": ""})
    admin = tmp_path / "main" / ".git" / "worktrees" / "w"
    admin.mkdir(parents=True)
    (admin / "commondir").write_text("../..\n")
    (tmp_path / "main" / ".git" / "info").mkdir()
    (tmp_path / "main" / ".git" / "info" / "exclude").write_text("b\n")
    (root / ".git").write_text(f"gitdir: {admin}\n")
    assert paths(root) == ["a"]


def test_a_named_directory_is_walked_although_it_is_ignored(tree):
    root = tree(**{".gitignore": "node_modules/\n*.map\n", "node_modules/x/index.js": "", "node_modules/x/y.map": ""})
    assert paths(root) == [".gitignore"]
    assert paths(root, "node_modules/x") == ["node_modules/x/index.js"]
    assert Ignored(str(root)).ignores("node_modules/x/index.js")


def test_quintet_s_home_is_left_out(tree):
    root = tree(**{"home/credentials/key": "", "homely": ""})
    hides = PathGuard(str(root / "home")).hides
    assert paths(root, hides=hides) == ["homely"]
    assert Ignored(str(root), hides).ignores("home/credentials/key")


def test_links_are_told_and_not_followed(tree, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "f").write_text("")
    root = tree(**{"a": ""})
    (root / "link").symlink_to(tmp_path / "outside")
    (root / "loop").symlink_to(root)
    assert paths(root) == ["a", "link", "loop"]
    with pytest.raises(OSError):
        paths(root, "link")


def test_a_start_outside_the_root_is_refused(tree):
    root = tree(**{"a": ""})
    with pytest.raises(ValueError):
        paths(root, "..")
    with pytest.raises(ValueError):
        Ignored(str(root)).ignores("../x")


def test_a_directory_that_cannot_be_read_is_told(tree, monkeypatch):
    root = tree(**{"shut/a": "", "b": ""})
    opened = os.open

    def refusing(path, flags, *args, **kwargs):
        if path == "shut":
            raise PermissionError(13, "Permission denied")
        return opened(path, flags, *args, **kwargs)

    monkeypatch.setattr(os, "open", refusing)
    ignored = Ignored(str(root))
    assert [found.path for found in ignored.walk()] == ["b"]
    assert ignored.unread == ["shut: Permission denied"]


def test_a_tree_deeper_than_the_limit_is_told(tree, monkeypatch):
    root = tree(**{"a/b/c/d": "", "a/e": ""})
    monkeypatch.setattr("quintet.workspace.ignore.DEPTH_LIMIT", 2)
    ignored = Ignored(str(root))
    assert [found.path for found in ignored.walk()] == ["a/e"]
    assert ignored.unread == ["a/b: more than 2 directories deep"]


def test_no_handle_stays_open_when_a_walk_is_left_early(tree):
    root = tree(**{f"d{n}/e/f": "" for n in range(5)})
    before = len(os.listdir("/proc/self/fd"))
    for walked in range(1, 5):
        walk = Ignored(str(root)).walk()
        for _ in range(walked):
            next(walk)
        walk.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_an_entry_s_state_is_read_through_its_directory(tree):
    root = tree(**{"d/f": "four"})
    for found in Ignored(str(root)).walk():
        state = found.entry.stat(follow_symlinks=False)
        assert stat.S_ISREG(state.st_mode)
        assert state.st_size == 4
        assert os.stat(found.entry.name, dir_fd=found.handle).st_ino == state.st_ino


@pytest.mark.parametrize("kind", ["pipe", "directory", "long", "bytes"])
def test_an_ignore_file_that_is_none_does_no_harm(tree, kind):
    root = tree(a="", b="")
    place = root / ".gitignore"
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "directory":
        place.mkdir()
    elif kind == "long":
        place.write_text("a\n" + "#" * 2_000_000)
    else:
        place.write_bytes(b"a\n\xff\nb\n")
    left = [path for path in paths(root) if path != ".gitignore"]
    assert left == (["a", "b"] if kind in ("pipe", "directory") else ["b"])


def test_rules_reach_names_and_directories_with_a_newline(tree):
    root = tree(**{".gitignore": "*.log\nend\n?\n", "a\nb/x.log": "", "a\nb/y": "", "a\nb/z.z": "", "end\n": ""})
    assert paths(root) == [".gitignore", "end\n", "a\nb/z.z"]


def test_rules_for_paths_reach_through_directories_with_a_newline(tree):
    root = tree(**{".gitignore": "x/**/b\n", "x/a\nb/b": "", "x/a\nb/c": ""})
    assert paths(root) == [".gitignore", "x/a\nb/c"]


def test_names_that_are_not_utf_8_are_walked(tree):
    root = tree(**{".gitignore": "*.log\n"})
    for name in (b"\xff.txt", b"\xff.log"):
        with open(os.path.join(os.fsencode(root), name), "wb"):
            pass
    assert paths(root) == [".gitignore", "\udcff.txt"]
