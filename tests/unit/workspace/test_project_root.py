from __future__ import annotations

import os
import subprocess

import pytest

from quintet.workspace.project_root import project_root, worktree_root


def git(*args: object, cwd: object) -> None:
    names = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    subprocess.run(["git", *map(str, args)], cwd=str(cwd), check=True, capture_output=True, env={**os.environ, **names})


@pytest.fixture
def repository(tmp_path):
    made = tmp_path / "repo"
    (made / "src" / "deep").mkdir(parents=True)
    git("init", "-q", cwd=made)
    git("commit", "-q", "--allow-empty", "-m", "first", cwd=made)
    return made


def test_outside_git_it_is_the_directory_itself(tmp_path):
    assert project_root(str(tmp_path)) == worktree_root(str(tmp_path)) == str(tmp_path)


def test_inside_git_it_is_the_top_level(repository):
    assert project_root(str(repository / "src" / "deep")) == str(repository)


def test_a_linked_worktree_belongs_to_the_main_one(repository, tmp_path):
    linked = tmp_path / "linked"
    git("worktree", "add", "-q", linked, cwd=repository)
    assert worktree_root(str(linked)) == str(linked)
    assert project_root(str(linked)) == str(repository)


def test_a_link_to_the_project_gives_the_same_root(repository, tmp_path):
    (tmp_path / "alias").symlink_to(repository / "src")
    assert project_root(str(tmp_path / "alias")) == str(repository)


def test_a_submodule_is_a_project_of_its_own(repository, tmp_path):
    outer = tmp_path / "outer"
    outer.mkdir()
    git("init", "-q", cwd=outer)
    git("-c", "protocol.file.allow=always", "submodule", "add", "-q", repository, "inner", cwd=outer)
    assert project_root(str(outer / "inner")) == str(outer / "inner")


@pytest.mark.parametrize(
    "content",
    ["", "gitdir:", "gitdir: /nowhere", "nonsense", "gitdir: \0", "gitdir: ../repo/.git/worktrees/none"],
)
def test_a_git_file_that_makes_no_sense_is_ignored(tmp_path, content):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / ".git").write_text(content)
    assert project_root(str(tmp_path / "x")) == str(tmp_path / "x")


def test_a_directory_cannot_claim_a_project_that_does_not_know_it(repository, tmp_path):
    linked, claimer = tmp_path / "linked", tmp_path / "claimer"
    git("worktree", "add", "-q", linked, cwd=repository)
    claimer.mkdir()
    (claimer / ".git").write_text((linked / ".git").read_text())
    assert project_root(str(claimer)) == str(claimer)


def test_a_pipe_named_git_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / ".git")
    assert project_root(str(tmp_path)) == str(tmp_path)


def test_git_itself_is_never_run(repository, monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", None)
    monkeypatch.setattr(os, "posix_spawn", None)
    assert project_root(str(repository / "src")) == str(repository)
