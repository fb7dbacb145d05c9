from __future__ import annotations

import os

import pytest

from quintet.domain.errors import Invalid
from quintet.workspace.paths import PathGuard, contains


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (root / "src").mkdir()
    (tmp_path / "project-too").mkdir()
    return root


def test_a_path_is_resolved_from_the_working_directory_and_shown_relative_to_it(project):
    place = PathGuard().reading("a/../b.txt", str(project / "src"))
    assert (place.path, place.shown, place.root) == (str(project / "src/b.txt"), "b.txt", str(project))


def test_the_whole_project_is_the_workspace_of_a_directory_in_it(project):
    place = PathGuard().writing("../readme", str(project / "src"))
    assert (place.path, place.shown) == (str(project / "readme"), str(project / "readme"))


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../x",
        "../project-too/x",
        "/",
        "/etc/passwd",
        "src/../../x",
        "/proc/self/root/etc/passwd",
        "out/x",
        "chain/x",
        "",
        "x\0",
        "a" * 5000,
        "\udfff",
        b"\xff".decode("utf-8", "surrogateescape"),
        "\ud83d" * 300,
        "a\nb",
        "\x1b[2J",
        "a\x7f",
        "a\u0085b",
        "a/" + "b" * 256,
        "é" * 128,
    ],
)
def test_paths_that_leave_the_project_are_refused(project, path):
    (project / "out").symlink_to("/etc")
    (project / "chain").symlink_to("hop")
    (project / "hop").symlink_to("../project-too")
    for judge in (PathGuard().reading, PathGuard().writing):
        with pytest.raises(Invalid) as error:
            judge(path, str(project))
        assert len(error.value.message) < 400


def test_a_link_that_stays_inside_is_resolved(project):
    (project / "link").symlink_to("src")
    assert PathGuard().writing("link/x", str(project)).path == str(project / "src/x")


def test_a_link_in_a_loop_does_not_escape_or_hang(project):
    (project / "a").symlink_to("b")
    (project / "b").symlink_to("a")
    assert contains(str(project), PathGuard().reading("a/x", str(project)).path)


@pytest.mark.parametrize("path", ["home", "home/quintet.db", "link/config.toml"])
def test_quintet_s_own_home_is_refused_also_inside_the_project(project, path):
    (project / "home").mkdir()
    (project / "link").symlink_to("home")
    guard = PathGuard(str(project / "home"))
    with pytest.raises(Invalid, match="Quintet's own"):
        guard.reading(path, str(project))
    assert guard.reading("homely", str(project)).shown == "homely"


@pytest.mark.parametrize("path", [".git/config", "sub/.git/hooks/x", ".Git/HEAD", "link/config"])
def test_git_s_own_files_can_be_read_but_not_written(project, path):
    (project / "link").symlink_to(".git")
    PathGuard().reading(path, str(project))
    with pytest.raises(Invalid, match="is protected"):
        PathGuard().writing(path, str(project))


def test_a_file_whose_name_is_no_utf8_is_not_reached_through_a_link(project):
    (project / "link").symlink_to(b"caf\xe9".decode("utf-8", "surrogateescape"))
    with pytest.raises(Invalid, match="can resolve"):
        PathGuard().reading("link", str(project))


def test_a_place_knows_the_way_from_its_root(project):
    guard = PathGuard()
    assert guard.reading(".", str(project)).names == ()
    assert guard.reading("a/b", str(project / "src")).names == ("src", "a", "b")


def test_names_that_merely_begin_like_git_are_ordinary(project):
    assert PathGuard().writing(".gitignore", str(project)).shown == ".gitignore"
    assert PathGuard().writing(".github/workflows/x.yml", str(project)).shown == ".github/workflows/x.yml"


def test_a_home_directory_kept_in_git_is_no_workspace(project, monkeypatch):
    monkeypatch.setenv("HOME", str(project))
    assert PathGuard().workspace(str(project / "src")) == str(project / "src")
    with pytest.raises(Invalid):
        PathGuard().reading("../.ssh/id", str(project / "src"))


def test_a_linked_worktree_is_its_own_workspace(project, tmp_path):
    linked = tmp_path / "linked"
    linked.mkdir()
    admin = project / ".git/worktrees/linked"
    admin.mkdir(parents=True)
    (admin / "gitdir").write_text(f"{linked}/.git\n")
    (linked / ".git").write_text(f"gitdir: {admin}\n")
    assert PathGuard().workspace(str(linked)) == str(linked)
    with pytest.raises(Invalid):
        PathGuard().reading(str(project / "src"), str(linked))


def test_containment_goes_by_whole_names():
    assert contains("/a/b", "/a/b")
    assert contains("/a/b", "/a/b/c")
    assert contains("/", "/x")
    assert not contains("/a/b", "/a/bc")
    assert not contains("/a/b", "/a")


def test_a_working_directory_behind_a_link_is_resolved(project, tmp_path):
    (tmp_path / "alias").symlink_to(project)
    assert PathGuard().reading("src", str(tmp_path / "alias")).path == os.path.realpath(project / "src")
