"""The names only the person may write: which they are, and that no spelling of them gets through."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from quintet.workspace.nested import nested_gits
from quintet.workspace.protected import is_protected, nested_places, protected_places


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / ".git" / "info").mkdir(parents=True)
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    return root


def inner(root: Path) -> set[str]:
    return {os.path.relpath(place, root) for place in protected_places(str(root))}


def test_git_s_hooks_and_configuration_are_named_also_while_absent(repository):
    assert {".git/hooks", ".git/config", ".git/config.worktree", ".git/info/attributes"} <= inner(repository)
    assert ".git" not in inner(repository)


def test_without_a_repository_git_s_whole_directory_is_named(tmp_path):
    assert ".git" in inner(tmp_path)
    assert not any(name.startswith(".git/") for name in inner(tmp_path))


def test_a_directory_that_is_absent_stands_for_the_names_in_it(tmp_path):
    (tmp_path / ".git").mkdir()
    assert ".git/info" in inner(tmp_path)
    (tmp_path / ".git" / "info").mkdir()
    assert ".git/info" not in inner(tmp_path)
    assert ".git/info/attributes" in inner(tmp_path)


@pytest.mark.parametrize(
    "name",
    [
        *(".quintet", ".mcp.json", ".claude", ".codex", ".cursor", ".kimi", ".opencode", "opencode.json", ".kward"),
        *("openclaw.json", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".envrc"),
        *(".zshrc", ".zprofile", ".zshenv", ".zlogin", ".zlogout"),
        *(".vscode", ".idea", ".zed", ".devcontainer", ".nvim.lua", ".exrc"),
    ],
)
def test_what_agents_shells_and_editors_read_by_themselves_is_named(repository, name):
    assert name in inner(repository)
    assert is_protected(str(repository), name)
    assert is_protected(str(repository), str(repository / name / "below"))


def test_submodules_of_any_depth_are_named(repository):
    for module in ("lib", "third_party/deep/one", "lib/modules/inner"):
        (repository / ".git/modules" / module).mkdir(parents=True)
        (repository / ".git/modules" / module / "HEAD").touch()
    for module in ("lib", "third_party/deep/one", "lib/modules/inner"):
        assert f".git/modules/{module}/hooks" in inner(repository)
        assert f".git/modules/{module}/config" in inner(repository)


def test_more_submodules_than_can_be_named_are_protected_as_a_whole(repository):
    (repository / ".git/modules/1/2/3/4/5/6/7").mkdir(parents=True)
    (repository / ".git/modules/1/2/3/4/5/6/7/HEAD").touch()
    assert ".git/modules" in inner(repository)


def test_a_git_directory_elsewhere_in_the_workspace_is_found(tmp_path):
    (tmp_path / "admin").mkdir()
    (tmp_path / ".git").write_text("gitdir: admin\n")
    assert {".git", "admin/hooks", "admin/config"} <= inner(tmp_path)
    assert is_protected(str(tmp_path), "admin/hooks/pre-commit")
    assert not is_protected(str(tmp_path), "admin/HEAD")


def test_a_git_directory_outside_is_not_ours_to_name(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "project").mkdir()
    (tmp_path / "project/.git").symlink_to(tmp_path / "elsewhere")
    assert all(not name.startswith("..") for name in inner(tmp_path / "project"))
    assert ".git" in inner(tmp_path / "project")


def test_a_bare_repository_is_protected_like_any_other(tmp_path):
    assert not is_protected(str(tmp_path), "hooks/pre-receive")
    for name in ("HEAD", "objects", "refs"):
        (tmp_path / name).mkdir()
    assert {".git", "hooks", "config"} <= inner(tmp_path)
    assert is_protected(str(tmp_path), "hooks/pre-receive")
    assert not is_protected(str(tmp_path), "description")


def test_what_a_protected_link_leads_to_is_protected(repository):
    (repository / "settings").mkdir()
    (repository / ".claude").symlink_to("settings")
    (repository / ".mcp.json").symlink_to("servers.json")
    assert {".claude", "settings", ".mcp.json", "servers.json"} <= inner(repository)
    (repository / ".profile").symlink_to("/etc/profile")
    assert all(not name.startswith("..") for name in inner(repository))


@pytest.mark.req("security:S28")
@pytest.mark.parametrize(
    ("config", "named"),
    [
        ("[core]\n\thooksPath = .husky/_\n", ".husky"),
        ('[CORE]\n\tbare = false\n\tHooksPath = ".husky"\n', ".husky"),
        ("[core] hookspath=.husky\n", ".husky"),
        ("[core]\n\thooksPath = tools/hooks\n", ""),  # not there
        ("[user]\n\thooksPath = .husky\n", ""),
        ("[core]\n\thooksPath = ..\n", ""),
        ("[core]\n\thooksPath = .\n", ""),
    ],
)
def test_the_directory_a_repository_says_its_hooks_are_in_is_named(repository, config, named):
    (repository / ".husky/_").mkdir(parents=True)
    before = inner(repository)
    (repository / ".git/config").write_text(config)
    assert inner(repository) - before == ({named} if named else set())


@pytest.mark.req("security:S28")
def test_what_git_goes_on_with_is_named_while_it_is_there(repository):
    assert not {".git/rebase-merge", ".git/rebase-apply", ".git/sequencer"} & inner(repository)
    (repository / ".git/rebase-merge").mkdir()
    assert ".git/rebase-merge" in inner(repository)


@pytest.mark.req("security:S28")
def test_repositories_inside_are_found_within_bounds(tmp_path):
    for place in ("a/.git", "a/b/c/d/.git", "a/b/c/d/e/.git", "node_modules/m/.git", ".hidden/h/.git"):
        (tmp_path / place).mkdir(parents=True)
    (tmp_path / "s").mkdir()
    (tmp_path / "s/.git").write_text("gitdir: ../.git/modules/s")
    found = {os.path.relpath(git, tmp_path) for git in nested_gits(str(tmp_path))}
    assert found == {"a/.git", "s/.git", "a/b/c/d/.git"}
    named = {os.path.relpath(place, tmp_path) for place in nested_places(str(tmp_path))}
    assert {"a/.git/hooks", "a/.git/config", "a/.git/commondir", "a/.git/worktrees", "s/.git"} <= named


@pytest.mark.req("security:S28")
def test_of_more_repositories_than_can_be_covered_name_by_name_everything_is_protected(tmp_path):
    for number in range(21):
        (tmp_path / f"r{number}/.git").mkdir(parents=True)
    assert set(nested_places(str(tmp_path))) == {str(tmp_path / f"r{number}/.git") for number in range(21)}


@pytest.mark.req("security:S18")
@pytest.mark.parametrize(
    "path",
    [
        ".GIT/config",
        ".Git/hooks/pre-commit",
        "sub/.gIt/hooks/x",
        ".git",
        "deep/er/.git",
        ".QUINTET",
        ".Claude/settings.json",
        ".MCP.json",
        "OpenCode.JSON",
        ".BashRC",
        ".ba\u017fhrc",  # long s folds to s
        ".\u212aimi/config",  # the Kelvin sign folds to k
        ".\u212award",
        ".g\u200cit/config",  # joiners are left out by some file systems
        ".git\u200b/config",
        ".c\u200dlaude",
        "\ufeff.git/hooks/x",
        ".git./config",
        ".git /config",
        ".git. . /config",
        ".git::$INDEX_ALLOCATION/config",
        ".profile.",
        ".envrc ",
        ".vscode/TASKS.json",
        ".VsCode/Settings.JSON",
        ".idea/RunConfigurations/evil.xml",
    ],
)
def test_no_spelling_a_file_system_may_fold_gets_through(repository, path):
    (repository / ".vscode").mkdir()
    (repository / ".idea").mkdir()
    assert is_protected(str(repository), path)
    assert is_protected(str(repository), str(repository / path))


@pytest.mark.req("security:S18")
def test_composed_and_decomposed_names_are_the_same(tmp_path):
    (tmp_path / "re\u0301glages").mkdir()
    (tmp_path / ".claude").symlink_to("re\u0301glages")
    assert is_protected(str(tmp_path), "r\u00e9glages/x")
    assert is_protected(str(tmp_path), "RE\u0301GLAGES/x")
    (tmp_path / ".codex").symlink_to("s\u015b")
    assert is_protected(str(tmp_path), "\u00df\u0301")  # folds to two letters, of which the second takes the accent


@pytest.mark.parametrize(
    "path",
    [
        *(
            ".gitignore",
            ".gitattributes",
            ".github/workflows/x.yml",
            "git/config",
            ".git2/hooks",
            "src/.bashrc",
            "claude",
        ),
        *(".mcp.json.md", "openclaw.json5", "x.git/config", ".vscodes/tasks.json", "docs/.claude/x", ".", "a"),
    ],
)
def test_names_that_only_look_alike_are_ordinary(repository, path):
    assert not is_protected(str(repository), path)
