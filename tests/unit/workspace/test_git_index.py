"""What an index holds, read without git: what git says of the same one, or nothing."""

from __future__ import annotations

import random
import struct
import subprocess
from pathlib import Path

import pytest

from quintet.workspace.git_index import plain_names
from tests.unit.workspace.repositories import repository, sh, write


def index_of(tree: Path) -> bytes:
    return (tree / ".git/index").read_bytes()


def listed(tree: Path) -> list[bytes]:
    done = subprocess.run(["git", "ls-files", "-z"], cwd=tree, capture_output=True, check=True)
    return done.stdout.split(b"\0")[:-1]


@pytest.mark.req("mechanisms:M8.shell")
@pytest.mark.parametrize("seed", range(4))
def test_the_names_are_those_that_git_lists_whatever_their_length_and_whatever_else_the_index_holds(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    names = {"".join(chance.choices("abé ./\n\\x", k=chance.randint(1, 40))).strip("/. ") for _ in range(150)}
    tree = repository(tmp_path / "r", {f"d{n}/{'x' * n}/f": "" for n in range(1, 30)})
    for name in names:
        try:
            write(tree, {name: ""})
        except OSError:
            continue  # a file where a directory would be, or no name at all
    sh("git add -A; ln -s f link; git add link; git commit -q -m more; git status", tree)  # with a tree cache
    assert plain_names(index_of(tree)) == listed(tree)
    sh("git rm -rq --cached .", tree)
    assert plain_names(index_of(tree)) == listed(tree) == []


@pytest.mark.req("mechanisms:M8.shell")
@pytest.mark.parametrize(
    "script",
    [
        "git update-index --assume-unchanged a.txt",
        "git update-index --skip-worktree a.txt",
        "touch new; git add -N new",
        "git checkout -q -b o; echo 1 > a.txt; git commit -qam o; git checkout -q main; "
        "echo 2 > a.txt; git commit -qam m; git merge -q o || true",
        "git update-index --index-version 4",
        "git update-index --split-index",
        "git sparse-checkout set --cone --sparse-index src",
    ],
    ids=["assume unchanged", "skip worktree", "intent to add", "conflict", "version 4", "split", "sparse"],
)
def test_an_index_with_anything_special_is_left_to_git(tmp_path: Path, script: str) -> None:
    tree = repository(tmp_path / "r")
    assert plain_names(index_of(tree)) == listed(tree)
    sh(script, tree)
    assert plain_names(index_of(tree)) is None


def test_a_path_too_long_for_its_flags_is_left_to_git(tmp_path: Path) -> None:
    tree = repository(tmp_path / "r")
    blob = subprocess.run(["git", "hash-object", "-w", "a.txt"], cwd=tree, capture_output=True, check=True).stdout
    for length, plain in ((4094, True), (4095, False), (5000, False)):
        line = b"100644 %s\t%s\0" % (blob.strip(), (b"d" * 99 + b"/") * (length // 100) + b"x" * (length % 100 or 100))
        subprocess.run(["git", "update-index", "-z", "--index-info"], cwd=tree, input=line, check=True)
        assert (plain_names(index_of(tree)) is not None) == plain, length
        sh("git reset -q", tree)


def test_an_index_that_is_cut_short_or_claims_too_much_is_left_to_git(tmp_path: Path) -> None:
    whole = index_of(repository(tmp_path / "r"))
    for length in range(len(whole)):
        # Where only an extension is missing, what git would read is all there.
        assert plain_names(whole[:length]) in (None, plain_names(whole)), length
    assert plain_names(whole[: len(whole) // 2]) is None
    assert plain_names(whole + b"x") is None
    for count in (0, 1, 3, 2**32 - 1):
        assert plain_names(whole[:8] + struct.pack(">L", count) + whole[12:]) is None, count


@pytest.mark.req("mechanisms:M8.shell")
async def test_a_repository_that_names_objects_otherwise_is_left_to_git(history, tmp_path: Path) -> None:
    tree = tmp_path / "r"
    tree.mkdir()
    sh("git init -q --object-format=sha256 .; echo a > a.txt; git add -A; git commit -q -m first", tree)
    write(tree, {"a.txt": "changed\n", "new": "new\n"})
    assert (await history.secure(str(tree))).files == 2
