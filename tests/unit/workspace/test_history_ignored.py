"""Ignored and moved files: what only came to sight is never taken for a command's own."""

from __future__ import annotations

import os

import pytest

from quintet.domain.errors import Invalid
from tests.unit.workspace.histories import kinds, put_back, put_back_what_can_be, wait_a_tick
from tests.unit.workspace.repositories import sh, snapshot, write


@pytest.mark.req("mechanisms:M8.shell")
async def test_ignored_files_are_neither_kept_nor_told(history, tree):
    write(tree, {".gitignore": "built/\n*.log\n", "built/x": "1", "n.log": "1"})
    secured = await history.secure(str(tree))
    sh("echo 2 > built/x; rm n.log; echo 3 > new.log", tree)
    assert (await history.compare(secured)).changes == ()


@pytest.mark.req("mechanisms:M8.ignored")
@pytest.mark.parametrize("edit", ["rm .gitignore", "echo '!secret/' >> .gitignore", "echo other > .gitignore"])
async def test_a_file_that_only_came_to_sight_is_never_taken_for_the_commands_own(history, tree, edit):
    write(tree, {".gitignore": "secret/\n", "secret/mine": "1", "secret/too": "2"})
    sh("test ! -d .git || { git add .gitignore; git commit -qm i; }", tree)
    os.utime(tree / "secret/mine", (1, 1))
    secured = await history.secure(str(tree))
    sh(f"{edit}; echo touched >> secret/too", tree)
    compared = await history.compare(secured)
    assert kinds(compared).get("secret/mine", ("other",))[0] != "absent"
    assert kinds(compared)["secret/too"][0] == "other"
    assert any("ignore rules" in words for words in compared.partial)
    change = next(c for c in compared.changes if c.path == "secret/too")
    with pytest.raises(Invalid):
        await history.put(str(tree), change.path, change.before)
    assert (tree / "secret/too").exists()


@pytest.mark.req("mechanisms:M8.ignored")
async def test_a_longer_ignore_file_hides_nothing_of_what_was_made(history, tree):
    write(tree, {".gitignore": "secret/\n"})
    secured = await history.secure(str(tree))
    sh("echo '*.o' >> .gitignore; echo 1 > new", tree)
    compared = await history.compare(secured)
    assert kinds(compared) == {".gitignore": ("file", "file"), "new": ("absent", "file")}
    assert compared.partial == ()


@pytest.mark.req("mechanisms:M8.ignored")
@pytest.mark.parametrize(
    "edit",
    [
        "echo '!*.log' > logs/.gitignore",
        "printf '\\357\\273\\277!*.log\\n' > logs/.gitignore",
        "{ head -c 1100000 /dev/zero | tr '\\0' '#'; echo; echo '!*.log'; } > logs/.gitignore",
        "printf '.gitignore\\n!*.log\\n' > logs/.gitignore",
    ],
    ids=["new", "marked", "too large to keep", "ignores itself"],
)
async def test_a_new_ignore_file_that_shows_files_does_not_make_them_the_commands_own(history, tree, edit):
    write(tree, {".gitignore": "*.log\n", "logs/x.log": "mine", "logs/y.log": "mine too", "logs/seen": "1"})
    secured = await history.secure(str(tree))
    sh(f"{edit}; echo 1 > new; cp logs/y.log z; mv z logs/y.log", tree)
    compared = await history.compare(secured)
    assert any("ignore rules" in words for words in compared.partial)
    await put_back_what_can_be(history, tree, compared)
    assert (tree / "logs/x.log").read_text() == "mine"
    assert (tree / "logs/y.log").read_text() == "mine too"


@pytest.mark.req("mechanisms:M8.ignored")
@pytest.mark.parametrize("edit", ["rm .venv/.gitignore", "echo '!lib.py' >> .venv/.gitignore", "mv .venv/.gitignore o"])
async def test_an_ignore_file_that_is_ignored_itself_comes_back_and_what_it_hid_stays(history, tree, edit):
    write(tree, {".venv/.gitignore": "*\n", ".venv/lib.py": "mine", ".venv/bin/x": "1"})
    before = snapshot(tree)
    secured = await history.secure(str(tree))
    sh(f"{edit}; cp .venv/lib.py .venv/l; mv .venv/l .venv/lib.py", tree)
    compared = await history.compare(secured)
    await put_back_what_can_be(history, tree, compared)
    assert {path: found for path, found in snapshot(tree).items() if path != "o"} == before


@pytest.mark.req("mechanisms:M8.ignored")
async def test_a_new_ignore_file_that_only_hides_leaves_what_was_made_the_commands_own(history, tree):
    secured = await history.secure(str(tree))
    sh("mkdir .venv; echo '*' > .venv/.gitignore; echo l > .venv/lib; echo '*.o' > .gitignore; echo 1 > new", tree)
    compared = await history.compare(secured)
    assert kinds(compared) == {".gitignore": ("absent", "file"), "new": ("absent", "file")}
    assert compared.partial == ()


@pytest.mark.req("mechanisms:M8.moved")
@pytest.mark.parametrize(
    "move",
    [
        "mv .env .env.bak",
        "echo more >> .env; mv .env .env.bak",
        "touch .env; mv .env .env.bak",
        "ln .env .env.bak; rm .env",
        "mv ../outside .env.bak",
        "cp -p ../outside .env.bak; rm ../outside",
    ],
)
async def test_a_file_moved_out_of_a_place_that_is_not_kept_is_never_removed(history, tree, tmp_path, move):
    write(tree, {".gitignore": ".env\n", ".env": "the only one"})
    write(tmp_path, {"outside": "the only one"})
    wait_a_tick(tree)
    secured = await history.secure(str(tree))
    sh(f"{move}; echo 1 > new", tree)
    compared = await history.compare(secured)
    assert kinds(compared) == {".env.bak": ("other", "file"), "new": ("absent", "file")}
    assert any(".env.bak" in words and "not kept" in words for words in compared.partial)
    await put_back_what_can_be(history, tree, compared)
    assert (tree / ".env.bak").read_text().startswith("the only one")
    assert not (tree / "new").exists()


@pytest.mark.req("mechanisms:M8.moved")
@pytest.mark.parametrize("move", ["mv a.txt c.txt", "ln a.txt c.txt", "mv src lib; echo 1 >> lib/b.txt", "mv u v"])
async def test_a_file_moved_from_where_it_is_kept_goes_back(history, tree, move):
    write(tree, {"u": "untracked"})
    wait_a_tick(tree)
    before = snapshot(tree)
    secured = await history.secure(str(tree))
    sh(move, tree)
    compared = await history.compare(secured)
    assert compared.partial == ()
    await put_back(history, tree, compared)
    assert snapshot(tree) == before


@pytest.mark.req("mechanisms:M8.moved")
async def test_a_file_moved_from_where_it_was_too_large_to_keep_is_never_removed(history, tree):
    write(tree, {"large": "x" * (1024 * 1024 + 1)})
    wait_a_tick(tree)
    secured = await history.secure(str(tree))
    sh("mv large moved", tree)
    compared = await history.compare(secured)
    assert kinds(compared) == {"large": ("file", "absent"), "moved": ("other", "file")}


@pytest.mark.req("mechanisms:M8.moved")
async def test_ignored_files_that_were_moved_with_their_directory_are_told(history, tree):
    write(tree, {".gitignore": ".env\n", "src/.env": "the only one"})
    wait_a_tick(tree)
    secured = await history.secure(str(tree))
    sh("mv src lib; echo new > lib/new; mkdir -p made; echo new > made/x; echo young > made/.env", tree)
    compared = await history.compare(secured)
    assert [words for words in compared.partial if "lib/.env" in words and "not moved back" in words]
    assert not any("made/.env" in words for words in compared.partial)
    await put_back(history, tree, compared)
    assert (tree / "lib/.env").read_text() == "the only one"
    assert (tree / "src/b.txt").exists()
