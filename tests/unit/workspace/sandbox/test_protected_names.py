"""A table of names, written down here and nowhere else, that neither a real command nor a file tool may write."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from quintet.domain.errors import Invalid
from quintet.domain.tool import CallScope
from quintet.tools.builtin import builtin_tools
from quintet.workspace.protected import is_protected
from quintet.workspace.sandbox.profile import Profile
from tests.fakes.stage import Stage, needs_bubblewrap, spawn, staged

pytestmark = needs_bubblewrap
GIT = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]

NAMES = [
    # git: what it runs and what it obeys
    *(".git/hooks/pre-commit", ".git/config", ".git/info/attributes"),
    *(".git/worktrees/linked/commondir", ".git/worktrees/linked/gitdir", ".git/worktrees/linked/config.worktree"),
    *(".git/worktrees/new/commondir", ".git/rebase-merge/git-rebase-todo", ".git/sequencer/todo"),
    # repositories inside
    *("nested/.git/hooks/post-checkout", "nested/.git/config", "nested/.git/worktrees/x/commondir"),
    *("deep/er/nested/.git/hooks/pre-push", "deep/er/nested/.git/config", "pointed/.git"),
    # Quintet's own and other agents' project files
    *(".quintet/config.toml", ".quintet", ".mcp.json", ".claude/settings.json", ".codex/config.toml"),
    *(".cursor/mcp.json", ".kimi/config", ".opencode/x", ".kward/x"),
    # shells
    *(".bashrc", ".bash_profile", ".profile", ".envrc", ".zshrc", ".zprofile", ".zshenv"),
    # editors
    *(".vscode/tasks.json", ".vscode/extensions.json", ".idea/workspace.xml", ".idea/runConfigurations/a.xml"),
    *(".zed/tasks.json", ".devcontainer/devcontainer.json", ".nvim.lua", ".exrc"),
    # where the repository says its hooks are
    *(".husky/pre-commit", ".husky/_/pre-commit"),
]
ABSENT_ONLY_PUT_BACK = [".git/commondir", ".git/config.worktree", "nested/.git/commondir", "opencode.json"]


@pytest.fixture
def stage() -> Iterator[Stage]:
    with staged() as made:
        prepare(made.workspace)
        yield made


def git(*words: str, cwd: Path) -> None:
    subprocess.run([*GIT, *words], cwd=cwd, check=True, capture_output=True, timeout=30)


def prepare(workspace: Path) -> None:
    git("commit", "-q", "--allow-empty", "-m", "one", cwd=workspace)
    git("worktree", "add", "-q", "../linked", cwd=workspace)
    git("config", "core.hooksPath", ".husky/_", cwd=workspace)
    for nested in ("nested", "deep/er/nested"):
        git("init", "-q", nested, cwd=workspace)
    (workspace / "pointed").mkdir()
    (workspace / "pointed/.git").write_text("gitdir: ../nested/.git\n")
    for directory in (".husky/_", ".git/rebase-merge", ".git/sequencer", ".zed"):
        (workspace / directory).mkdir(parents=True)
    (workspace / ".git/rebase-merge/git-rebase-todo").write_text("noop\n")
    (workspace / ".husky/pre-commit").write_text("true\n")


def tree(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() if p.is_file() else b"" for p in sorted(root.rglob("*"))}


@pytest.mark.req("security:S28")
async def test_no_command_writes_one_of_them(stage: Stage) -> None:
    before = tree(stage.workspace)
    attempts = 'mkdir -p "$(dirname "$n")"; echo x > "$n" && echo "wrote $n"; rm -rf "$n"'
    rename = '"$PY" -c "import os, sys; os.rename(sys.argv[1], sys.argv[2])" $d moved && echo moved $d'
    around = f"for d in .git .git/worktrees .git/hooks nested nested/.git deep .husky .zed; do {rename}; done"
    done = await stage.run(f"exec 2>&-; for n in {' '.join(NAMES)}; do {attempts}; done; {around}; echo end")
    assert done.stdout == "end\n"
    assert tree(stage.workspace) == before


@pytest.mark.req("security:S28")
async def test_of_those_nothing_can_be_laid_over_nothing_stays(stage: Stage) -> None:
    async with stage.sandbox.confined(
        ("/bin/bash", "-c", f"for n in {' '.join(ABSENT_ONLY_PUT_BACK)}; do echo x > $n; done"),
        str(stage.workspace),
        {"PATH": os.environ["PATH"]},
        stage.profile(),
    ) as inside:
        await asyncio.to_thread(spawn, inside.argv, str(stage.workspace), inside.environment)
    assert not [name for name in ABSENT_ONLY_PUT_BACK if (stage.workspace / name).exists()]
    assert sorted(one.place for one in inside.put_back) == sorted(
        str(stage.workspace / name) for name in ABSENT_ONLY_PUT_BACK
    )
    assert {Path(one.aside).read_text() for one in inside.put_back} == {"x\n"}


@pytest.mark.req("security:S29")
@pytest.mark.parametrize("name", [*NAMES, *ABSENT_ONLY_PUT_BACK])
async def test_no_file_tool_writes_one_of_them(stage: Stage, name: str) -> None:
    tools = {tool.spec.name: tool for tool in builtin_tools(home=str(stage.home), environment=stage.environment)}
    with pytest.raises(Invalid, match="protected"):
        await tools["write"].prepare({"path": name, "content": "x"}, CallScope(str(stage.workspace)))


@pytest.mark.req("security:S28")
async def test_the_settings_of_another_worktree_cannot_be_led_elsewhere(stage: Stage) -> None:
    """What git itself would do there afterwards, with a program planted by a command."""
    planted = (
        "mkdir evil; cp -r .git/objects .git/refs .git/HEAD evil/; printf '[core]\\n\\tfsmonitor = "
        f"touch {stage.outside}/ran\\n' > evil/config; echo {stage.workspace}/evil > .git/worktrees/linked/commondir"
    )
    await stage.run(planted)
    subprocess.run(["git", "status"], cwd=stage.root / "linked", capture_output=True, timeout=30, check=False)
    assert not (stage.outside / "ran").exists()


@pytest.mark.req("security:S28")
async def test_what_the_person_made_meanwhile_is_moved_aside_and_named_and_not_deleted(stage: Stage) -> None:
    config = stage.workspace / ".git/config.worktree"
    async with stage.sandbox.confined(("true",), str(stage.workspace), {}, stage.profile()) as inside:
        config.write_text("[my]\n\tsetting = precious\n")
    (told,) = inside.put_back
    assert told.place == str(config)
    assert "precious" in Path(told.aside).read_text()


@pytest.mark.req("security:S28")
async def test_a_rebase_that_a_command_began_is_told_and_the_next_one_may_go_on_with_it(stage: Stage) -> None:
    for name in ("rebase-merge", "sequencer"):
        for inner in (stage.workspace / ".git" / name).iterdir():
            inner.unlink()
        (stage.workspace / ".git" / name).rmdir()
    git("config", "--unset", "core.hooksPath", cwd=stage.workspace)
    conflict = (
        "echo 1 > f; git add f; git commit -qm f; git checkout -qb other HEAD~; echo 2 > f; git add f; "
        "git commit -qm g; git rebase -q -"
    )
    environment = {"PATH": os.environ["PATH"]} | {
        f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }

    async def told(script: str) -> list[str]:
        async with stage.sandbox.confined(
            ("/bin/bash", "-c", script), str(stage.workspace), environment, stage.profile()
        ) as inside:
            await asyncio.to_thread(spawn, inside.argv, str(stage.workspace), inside.environment)
        return [one.place for one in inside.put_back if one.left]

    rebase = stage.workspace / ".git/rebase-merge"
    assert await told(conflict) == [str(rebase)]
    assert rebase.is_dir()
    assert await told("echo 3 > f; git add f; GIT_EDITOR=true git rebase --continue") == []
    assert not rebase.exists()
    git("config", "core.editor", "true", cwd=stage.workspace)
    rebase.mkdir()  # of somebody else
    (rebase / "git-rebase-todo").write_text("noop\n")
    assert await told("echo 'exec evil' > .git/rebase-merge/git-rebase-todo") == []
    assert (rebase / "git-rebase-todo").read_text() == "noop\n"


HOME_NAMES = [
    *(".gitconfig", ".config/git/config", ".config/git/attributes", ".config/git/ignore", ".config/git/hooks/pre-push"),
    *(".config/fish/config.fish", ".config/fish/conf.d/a.fish", ".config/zsh/.zshrc", ".bash_aliases", ".inputrc"),
    *(
        ".ssh/authorized_keys",
        ".ssh/config",
        ".ssh/rc",
        ".config/autostart/a.desktop",
        ".config/systemd/user/a.service",
    ),
    *(
        ".local/bin/git",
        ".cargo/bin/rg",
        ".local/lib/python3.11/site-packages/a.pth",
        ".vimrc",
        ".config/nvim/init.lua",
    ),
]


@pytest.mark.req("security:S28")
@pytest.mark.parametrize("there", [True, False])
async def test_in_a_home_no_command_writes_what_programs_read_for_a_person_everywhere(
    stage: Stage, there: bool
) -> None:
    """They name programs, or are programs, and run outside of any wall."""
    if there:
        for name in HOME_NAMES:
            (stage.user / name).parent.mkdir(parents=True, exist_ok=True)
            (stage.user / name).write_text("mine\n")
    before = tree(stage.user)
    names, parents = " ".join(HOME_NAMES), ".config .config/git .local .local/bin .cargo .ssh"
    attempts = 'mkdir -p "$(dirname $n)"; echo evil >> $n && echo wrote $n; rm -rf $n && mkdir $n/ && echo made $n'
    rename = '"$PY" -c "import os, sys; os.rename(sys.argv[1], sys.argv[2])" $d moved && echo moved $d'
    script = f"exec 2>&-; for n in {names}; do {attempts}; done; for d in {parents}; do {rename}; done; echo end"
    done = await stage.run(script, Profile(str(stage.user)), cwd=stage.user)
    assert done.stdout == "end\n"
    assert tree(stage.user) == before


@pytest.mark.req("security:S28")
async def test_in_a_home_git_itself_obeys_nothing_that_a_command_left(stage: Stage) -> None:
    evil = f"printf '[core]\\n\\tfsmonitor = touch {stage.outside}/ran\\n'"
    (stage.user / ".config/git").mkdir()
    await stage.run(f"{evil} > .config/git/config", Profile(str(stage.user)), cwd=stage.user)
    variables = {"PATH": os.environ["PATH"], "HOME": str(stage.user)}
    words = ["git", "-C", str(stage.workspace), "status"]
    await asyncio.to_thread(subprocess.run, words, env=variables, capture_output=True, timeout=30, check=True)
    assert not (stage.outside / "ran").exists()


@pytest.mark.req("security:S28")
async def test_what_a_command_puts_among_the_programs_of_a_home_is_moved_aside(stage: Stage) -> None:
    """`bin` has no dot, so nothing stands in for it while it is absent."""
    profile = Profile(str(stage.user))
    argv = ("/bin/bash", "-c", "mkdir bin; echo x > bin/git")
    async with stage.sandbox.confined(argv, str(stage.user), {"PATH": os.environ["PATH"]}, profile) as inside:
        await asyncio.to_thread(spawn, inside.argv, str(stage.user), inside.environment)
    assert [(one.place, one.aside) for one in inside.put_back] == [
        (str(stage.user / "bin"), str(stage.user / "bin.from-command"))
    ]
    assert not (stage.user / "bin").exists()


@pytest.mark.req("security:S28")
async def test_what_matters_in_a_home_is_any_file_elsewhere(stage: Stage) -> None:
    names = [name for name in HOME_NAMES if name != ".gitconfig"]
    done = await stage.run(
        f'for n in bin/git {" ".join(names)}; do mkdir -p "$(dirname $n)"; echo x > $n || echo $n; done'
    )
    assert (done.stdout, done.stderr) == ("", "")
    assert all((stage.workspace / name).read_text() == "x\n" for name in names)


@pytest.mark.req("security:S29")
@pytest.mark.parametrize("name", [*HOME_NAMES, "bin/git"])
def test_in_a_home_no_file_tool_writes_one_of_them(stage: Stage, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_protected(str(stage.user), name) is (name == ".gitconfig")
    monkeypatch.setenv("HOME", str(stage.user))
    assert is_protected(str(stage.user), name)
    assert is_protected(str(stage.user), name.upper())
    assert not is_protected(str(stage.user), ".config/mine/settings")
