"""Commands inside a real wall: what they may write, see and reach, and what is left afterwards."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from quintet.domain.errors import Invalid
from quintet.workspace.sandbox.bubblewrap import Tool
from quintet.workspace.sandbox.check_up import check_up
from quintet.workspace.sandbox.profile import Profile, State
from quintet.workspace.sandbox.wall import Sandbox
from quintet.workspace.sandbox.watched import PutBack
from tests.fakes.stage import BARE, SECRET, Stage, needs_bubblewrap, never_reset, spawn, staged
from tests.fakes.waiting import until

pytestmark = needs_bubblewrap
GIT = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]


@pytest.fixture
def stage() -> Iterator[Stage]:
    with staged() as made:
        yield made


def host_status(workspace: Path) -> str:
    return subprocess.run(
        ["git", "status", "--short"], cwd=workspace, capture_output=True, text=True, timeout=30, check=True
    ).stdout


# --- what works here --------------------------------------------------------------------------------------------------
@pytest.mark.req("reliability:R19")
async def test_the_state_is_found_by_running_the_real_profile(stage: Stage) -> None:
    state = await stage.sandbox.state()
    assert (state.works, state.kind, state.why) == (True, "bubblewrap", "")
    rows = await stage.sandbox.rows()
    names = ["bubblewrap", "user namespaces", "network namespace", "masks", "landlock", "system calls"]
    assert [row.name for row in rows] == [*names, "process cap", "memory cap"]
    assert all(row.ok for row in rows[:4])


@pytest.mark.parametrize("held", [(), ("pids",), ("pids", "memory")])
def test_the_check_up_says_who_holds_the_caps(held: tuple[str, ...]) -> None:
    processes, memory = check_up(State(True), None, filters=True, held=held)[-2:]
    assert [processes.ok, memory.ok] == ["pids" in held, "memory" in held]
    for row in (processes, memory):
        assert ("held by the kernel" in row.detail, bool(row.fix)) == (row.ok, not row.ok)


async def test_switched_off_it_says_so(stage: Stage) -> None:
    state = await Sandbox(stage.environment, home=str(stage.home), enabled=False).state()
    assert not state.works
    assert state.why == "The sandbox is switched off in config.toml."
    assert 'mode = "off"' in state.fix


@pytest.mark.req("reliability:R19")
async def test_one_that_took_too_long_to_try_is_told_in_a_line_and_tried_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as hurry:
        hurry.setattr("quintet.workspace.sandbox.probe.WITHIN_S", 0.0)
        hurry.setattr("quintet.workspace.sandbox.probe.found_tool", lambda environment: Tool("/usr/bin/bwrap", (0, 8)))
        state = await stage.sandbox.state()
    assert (state.works, state.why) == (False, "Trying it took longer than 0 s.")
    assert (await stage.sandbox.state()).works


@pytest.mark.req("reliability:R19")
async def test_a_program_that_fails_is_no_sandbox(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Landlock alone would be there; it never counts as a sandbox."""
    broken = stage.root / "bin"
    broken.mkdir()
    (broken / "bwrap").write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2; exit 1\n")
    (broken / "bwrap").chmod(0o755)
    monkeypatch.setattr("quintet.workspace.sandbox.probe.SYSTEM_PLACES", str(broken))
    monkeypatch.setattr("quintet.workspace.environment.SYSTEM", {str(broken)})
    sandbox = Sandbox({**stage.environment, "PATH": str(broken)}, home=str(stage.home))
    state = await sandbox.state()
    assert (state.works, state.kind) == (False, "none")
    assert "uid map" in state.why
    assert state.fix
    assert not any(row.ok for row in (await sandbox.rows())[1:6])


async def test_without_the_program_the_line_to_install_it_is_given(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quintet.workspace.sandbox.probe.SYSTEM_PLACES", str(stage.outside))
    sandbox = Sandbox({**stage.environment, "PATH": str(stage.outside)}, home=str(stage.home))
    state = await sandbox.state()
    assert not state.works
    assert "bubblewrap" in state.fix
    assert (await sandbox.rows())[0].detail == "not found"


async def test_programs_of_the_probe_do_not_depend_on_path(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    state = await Sandbox({**stage.environment, "PATH": "/nonexistent"}, home=str(stage.home)).state()
    assert (state.works, state.why) == (True, "")


# --- what may be written ----------------------------------------------------------------------------------------------
@pytest.mark.req("security:S26", "security:S29")
@pytest.mark.parametrize("network", ["off", "on"])
async def test_the_workspace_is_writable_and_nothing_else(stage: Stage, network: str) -> None:
    script = 'echo 1 > inside; echo 2 > "$OUT/new"; echo 3 > ../beside'
    done = await stage.run(script, stage.profile(network=network), variables={"OUT": str(stage.outside)})
    assert (stage.workspace / "inside").read_text() == "1\n"
    assert done.stderr.count("Read-only file system") == 2
    assert sorted(p.name for p in stage.root.iterdir()) == ["home", "outside", "user", "workspace"]


@pytest.mark.req("security:S26")
async def test_a_read_only_profile_writes_nothing_but_its_temporary_files(stage: Stage) -> None:
    done = await stage.run("echo x > new; echo y > /tmp/f && cat /tmp/f", stage.profile(writable=False, scratch=True))
    assert done.stdout == "y\n"
    assert not (stage.workspace / "new").exists()


@pytest.mark.req("security:S29")
async def test_the_directory_a_command_starts_in_makes_nothing_writable(stage: Stage) -> None:
    done = await stage.run("pwd; echo x > new", cwd=stage.outside)
    assert done.stdout.strip() == str(stage.outside)
    assert "Read-only" in done.stderr
    assert [p.name for p in stage.outside.iterdir()] == ["canary"]


async def test_directories_the_person_opted_in_are_writable_and_nothing_is_made_in_them(stage: Stage) -> None:
    cache = stage.user / ".cache" / "pip"
    cache.mkdir(parents=True)
    sandbox = Sandbox(stage.environment, home=str(stage.home), writable=[str(cache)])
    assert (await sandbox.state()).works  # looking whether it works is a run like any other
    assert list(cache.iterdir()) == []
    done = await stage.run(f"ls -A {cache}; echo x > {cache}/wheel; echo y > {cache.parent}/no", sandbox=sandbox)
    assert done.stdout == ""
    assert [p.name for p in cache.iterdir()] == ["wheel"]
    assert not (cache.parent / "no").exists()


async def test_a_directory_opted_in_that_is_not_there_is_not_made_and_the_check_up_says_so(stage: Stage) -> None:
    cache = stage.user / ".cache"
    sandbox = Sandbox(stage.environment, home=str(stage.home), writable=[str(cache), str(stage.outside)])
    done = await stage.run(f"echo x > {stage.outside}/made && mkdir {cache}", sandbox=sandbox)
    assert "Read-only" in done.stderr
    assert (stage.outside / "made").exists()
    assert not cache.exists()
    rows = [row for row in await sandbox.rows() if row.name == "writable"]
    assert [(row.ok, row.detail, row.fix) for row in rows] == [(False, f"{cache} is not there", f"mkdir -p {cache}")]
    assert sandbox.missing() == [str(cache)]


@pytest.mark.req("security:S28")
async def test_protected_names_in_a_directory_opted_in_stay_as_they_are(stage: Stage) -> None:
    (stage.outside / ".bashrc").write_text("mine")
    subprocess.run(["git", "init", "-q", str(stage.outside)], check=True)
    config = (stage.outside / ".git" / "config").read_text()
    shutil.rmtree(stage.outside / ".git" / "hooks")
    sandbox = Sandbox(stage.environment, home=str(stage.home), writable=[str(stage.outside)])
    script = f"cd {stage.outside}; echo x > .bashrc; echo x > .git/config; mv .git g; echo x > .envrc; mkdir .git/hooks"
    environment = {"PATH": os.environ["PATH"]}
    where = str(stage.workspace)
    async with sandbox.confined(("/bin/bash", "-c", script), where, environment, stage.profile()) as inside:
        await asyncio.to_thread(spawn, inside.argv, where, inside.environment)
    assert (stage.outside / ".bashrc").read_text() == "mine"
    assert (stage.outside / ".git" / "config").read_text() == config
    names = [".bashrc", ".envrc.from-command", ".git", "canary"]
    assert sorted(p.name for p in stage.outside.iterdir()) == names
    assert not (stage.outside / ".git" / "hooks").exists()
    assert {one.place for one in inside.put_back} == {
        str(stage.outside / ".envrc"),
        str(stage.outside / ".git" / "hooks"),
    }


@pytest.mark.req("security:S28", "security:S29")
async def test_a_directory_added_to_the_workspace_is_written_as_the_mode_says_but_for_protected_names(
    stage: Stage,
) -> None:
    (stage.outside / ".bashrc").write_text("mine")
    (stage.outside / "inner").mkdir()
    (stage.root / "way").symlink_to(stage.user)
    script = f"cd {stage.outside}; cat canary; echo x > made; echo x > .bashrc; echo x > .envrc; mv inner {stage.user}/"
    script += f"; echo x > {stage.root}/way/no; mv {stage.outside} {stage.root}/moved"
    added = (str(stage.outside), str(stage.root / "way"), str(stage.root / "none"))
    for writable in (False, True):
        profile = msgspec.structs.replace(stage.profile(writable=writable), added=added)
        assert "untouched" in (await stage.run(script, profile)).stdout
        assert (stage.outside / "made").exists() is writable
    assert (stage.outside / ".bashrc").read_text() == "mine"
    assert not (stage.outside / ".envrc").exists()
    assert not {"no", "inner"} & {path.name for path in stage.user.iterdir()}
    assert not (stage.root / "none").exists()


@pytest.mark.req("security:S28")
async def test_an_added_directory_is_guarded_as_the_workspace_is_also_while_a_command_runs(stage: Stage) -> None:
    """What is put back afterwards was there for a while: for hours, where a command goes on in the background."""
    subprocess.run(["git", "init", "-q", str(stage.outside)], check=True)
    shutil.rmtree(stage.outside / ".git" / "hooks")
    before = sorted(str(path) for path in stage.outside.rglob("*"))
    names = ".envrc .git/hooks/pre-commit .vscode/tasks.json .quintet/config.toml .mcp.json"
    attempt = 'mkdir -p "$(dirname "$n")"; echo x > "$n" && echo "wrote $n"'
    profile = msgspec.structs.replace(stage.profile(), added=(str(stage.outside),))
    done = await stage.run(f"exec 2>&-; cd {stage.outside}; for n in {names}; do {attempt}; done; echo end", profile)
    assert done.stdout == "end\n"
    assert sorted(str(path) for path in stage.outside.rglob("*")) == before


@pytest.mark.req("security:S28")
async def test_a_rebase_begun_in_an_added_directory_is_told_and_may_be_gone_on_with(stage: Stage) -> None:
    subprocess.run(["git", "init", "-q", str(stage.outside)], check=True)
    profile = msgspec.structs.replace(stage.profile(), added=(str(stage.outside),))
    place = stage.outside / ".git" / "rebase-merge"
    environment, where = {"PATH": os.environ["PATH"]}, str(stage.workspace)
    begin = ("/bin/bash", "-c", f"mkdir {place} && echo begun > {place}/head")
    async with stage.sandbox.confined(begin, where, environment, profile) as inside:
        await asyncio.to_thread(spawn, inside.argv, where, inside.environment)
    assert [(one.place, one.left) for one in inside.put_back] == [(str(place), True)]
    done = await stage.run(f"echo more > {place}/done && echo went on", profile)
    assert done.stdout == "went on\n"


@pytest.mark.parametrize("place", ["/", "/proc", "HOME", "HOME/run"])
async def test_what_nobody_may_be_given_is_refused(stage: Stage, place: str) -> None:
    named = place.replace("HOME", str(stage.home))
    with pytest.raises(Invalid, match="writable"):
        await stage.run("true", sandbox=Sandbox(stage.environment, home=str(stage.home), writable=[named]))
    with pytest.raises(Invalid, match="Commands cannot"):
        await stage.run("true", Profile(named))


async def test_temporary_files_are_shared_by_a_threads_commands_and_private_to_it(stage: Stage) -> None:
    await stage.run('echo one > "$TMPDIR/f"', stage.profile(scratch=True))
    done = await stage.run("cat /tmp/f; ls -A /tmp /var/tmp /dev/shm /run | grep -c .", stage.profile(scratch=True))
    assert done.stdout.split("\n")[0] == "one"
    other = await stage.run("ls -A /tmp")
    assert other.stdout == ""
    assert not os.path.exists("/tmp/f")
    await stage.sandbox.close()
    assert list((stage.home / "run" / "sandbox" / "scratch").iterdir()) == []


# --- what is hidden ---------------------------------------------------------------------------------------------------
@pytest.mark.req("security:S45", "security:S26")
@pytest.mark.parametrize("network", ["off", "on"])
async def test_the_home_and_credentials_are_hidden_in_every_mode(stage: Stage, network: str) -> None:
    done = await stage.run(
        f"cd {stage.root}; grep -r {SECRET} . ; ls -A home user/.ssh", stage.profile(network=network)
    )
    assert SECRET not in done.stdout
    assert done.stdout.split() == ["home:", "user/.ssh:"]


async def test_a_credential_that_is_a_link_is_hidden_where_it_lies(stage: Stage) -> None:
    (stage.outside / "keys").mkdir()
    (stage.outside / "keys" / "k").write_text(SECRET)
    (stage.user / ".gnupg").symlink_to(stage.outside / "keys")
    (stage.outside / "token").write_text(SECRET)
    (stage.user / ".pypirc").symlink_to(stage.outside / "token")
    done = await stage.run(
        f"cat {stage.outside}/token {stage.outside}/keys/k {stage.user}/.pypirc {stage.user}/.gnupg/k"
    )
    assert SECRET not in done.stdout


async def test_a_home_inside_the_workspace_is_hidden_there(stage: Stage) -> None:
    home = stage.workspace / "deep" / "home"
    home.mkdir(parents=True)
    (home / "quintet.db").write_text(SECRET)
    sandbox = Sandbox(stage.environment, home=str(home))
    done = await stage.run("cat deep/home/*; mv deep d2; echo x > deep/home/x; ls -A deep/home", sandbox=sandbox)
    assert SECRET not in done.stdout
    assert (home / "quintet.db").read_text() == SECRET
    assert not (home / "x").exists()


async def test_a_workspace_inside_a_credential_directory_is_seen_and_its_neighbours_are_not(stage: Stage) -> None:
    inside = stage.user / ".codex" / "worktrees" / "w"
    inside.mkdir(parents=True)
    (stage.user / ".codex" / "auth.json").write_text(SECRET)
    done = await stage.run(f"echo x > made; cat {stage.user}/.codex/auth.json", Profile(str(inside)), cwd=inside)
    assert (inside / "made").exists()
    assert SECRET not in done.stdout


@pytest.mark.req("security:S28")
async def test_where_the_workspace_is_the_users_directory_absent_credentials_cannot_be_made(stage: Stage) -> None:
    script = "mkdir .aws; echo x > .aws/credentials; echo x > .ssh/authorized_keys; echo x > .bashrc; echo x > plain"
    await stage.run(script, Profile(str(stage.user)), cwd=stage.user)
    assert sorted(p.name for p in stage.user.iterdir()) == [".config", ".netrc", ".ssh", "plain"]
    assert [p.name for p in (stage.user / ".ssh").iterdir()] == ["id_ed25519"]


@pytest.mark.req("security:S27b")
async def test_further_directories_of_ours_are_hidden(stage: Stage) -> None:
    (stage.outside / "s.sock").touch()
    sandbox = Sandbox(stage.environment, home=str(stage.home), hidden=[str(stage.outside)])
    done = await stage.run(f"ls -A {stage.outside}", sandbox=sandbox)
    assert (done.stdout, done.returncode) == ("", 0)


# --- protected names --------------------------------------------------------------------------------------------------
@pytest.mark.req("security:S28")
async def test_protected_names_are_unwritable_present_or_absent_and_nothing_is_left(stage: Stage) -> None:
    (stage.workspace / ".mcp.json").write_text("{}")
    names = ".mcp.json .claude .bashrc .vscode .git/hooks/x .git/config .quintet"
    done = await stage.run(f"for n in {names}; do echo x > $n && echo wrote $n; mkdir $n/x && echo made $n; done")
    assert done.stdout == ""
    assert sorted(p.name for p in stage.workspace.iterdir()) == [".git", ".mcp.json"]
    assert (stage.workspace / ".mcp.json").read_text() == "{}"


@pytest.mark.req("security:S28")
async def test_commands_at_once_keep_each_others_covers_and_leave_nothing(stage: Stage) -> None:
    """The short ones end, and tidy up, while the long ones still try to write."""
    attempt = "for i in $(seq 150); do echo x > .claude/x || mkdir .claude || mkdir .claude/y; done 2>/dev/null"
    runs = [stage.run(script) for script in [f"{attempt}; ls -A .claude"] * 3 + ["true"] * 9]
    done = await asyncio.gather(*runs)
    assert {one.stdout for one in done} == {""}
    assert [p.name for p in stage.workspace.iterdir()] == [".git"]


@pytest.mark.req("security:S28")
async def test_the_host_sees_a_clean_tree_while_a_command_runs(stage: Stage) -> None:
    async with stage.sandbox.confined(("true",), str(stage.workspace), {}, stage.profile()):
        assert host_status(stage.workspace) == ""
        assert (stage.workspace / ".claude").is_dir()
    assert not (stage.workspace / ".claude").exists()


@pytest.mark.req("security:S28")
async def test_git_works_inside(stage: Stage) -> None:
    script = (
        "echo x > a && git add a && git -c user.name=a -c user.email=a@b commit -qm one && git log --oneline | wc -l"
    )
    done = await stage.run(f"{script} && git status --short && git gc -q && git stash list && git worktree prune")
    assert (done.stdout, done.stderr, done.returncode) == ("1\n", "", 0)


@pytest.mark.req("security:S28")
@pytest.mark.parametrize("name", [".git/commondir", ".git/config.worktree"])
async def test_a_name_that_cannot_be_covered_is_put_back(stage: Stage, name: str) -> None:
    async with stage.sandbox.confined(("true",), str(stage.workspace), {}, stage.profile()) as inside:
        (stage.workspace / name).write_text("/evil")
    assert not (stage.workspace / name).exists()
    assert inside.put_back == [PutBack(str(stage.workspace / name), str(stage.workspace / f"{name}.from-command"))]


@pytest.mark.req("security:S28")
async def test_the_git_directory_cannot_be_moved_aside_nor_replaced(stage: Stage) -> None:
    config = (stage.workspace / ".git" / "config").read_text()
    done = await stage.run("mv .git g2 || echo kept; mkdir .git; echo evil > .git/config")
    assert done.stdout == "kept\n"
    assert (stage.workspace / ".git" / "config").read_text() == config
    assert [p.name for p in stage.workspace.iterdir()] == [".git"]


@pytest.mark.req("security:S28")
async def test_no_name_that_a_star_matches_stands_in_a_commands_way(stage: Stage) -> None:
    (stage.workspace / "a.json").write_text("{}")
    done = await stage.run("cat *.json && ls && rm -f * && rm -rf ./* && ls")
    assert (done.stdout, done.stderr, done.returncode) == ("{}a.json\n", "", 0)


@pytest.mark.req("security:S28")
@pytest.mark.parametrize("name", ["opencode.json", "openclaw.json", ".bash_logout", ".zlogin"])
async def test_a_protected_name_without_a_cover_that_a_command_makes_is_moved_aside(stage: Stage, name: str) -> None:
    (stage.workspace / f"{name}.from-command").write_text("of an earlier one")
    async with stage.sandbox.confined(("true",), str(stage.workspace), {}, stage.profile()) as inside:
        assert not (stage.workspace / name).exists()
        (stage.workspace / name).write_text("made")
    assert not (stage.workspace / name).exists()
    aside = stage.workspace / f"{name}.from-command-2"
    assert aside.read_text() == "made"
    assert (stage.workspace / f"{name}.from-command").read_text() == "of an earlier one"
    assert inside.put_back == [PutBack(str(stage.workspace / name), str(aside))]


@pytest.mark.req("security:S28")
async def test_a_name_without_a_cover_that_was_there_is_read_only(stage: Stage) -> None:
    (stage.workspace / "opencode.json").write_text("{}")
    await stage.run("echo x > opencode.json; rm -f opencode.json; mv opencode.json o")
    assert [p.name for p in stage.workspace.iterdir() if p.name != ".git"] == ["opencode.json"]
    assert (stage.workspace / "opencode.json").read_text() == "{}"


@pytest.mark.req("security:S28")
async def test_what_shells_read_at_login_and_logout_is_covered_in_a_home_only(stage: Stage) -> None:
    script = "ls -dA .bash_login .bash_logout .zlogin .zlogout .bashrc .zshenv 2>/dev/null"
    assert (await stage.run(script)).stdout.split() == [".bashrc", ".zshenv"]
    at_home = await stage.run(script, Profile(str(stage.user)), cwd=stage.user)
    assert len(at_home.stdout.split()) == 6


@pytest.mark.req("security:S28")
async def test_a_protected_name_that_is_a_link_is_put_back_and_what_it_leads_to_is_guarded(stage: Stage) -> None:
    (stage.workspace / "settings").mkdir()
    (stage.workspace / "settings" / "s.json").write_text("{}")
    (stage.workspace / ".claude").symlink_to("settings")
    done = await stage.run("echo x > .claude/s.json; rm .claude; mkdir .claude; echo x > .claude/hook; echo end")
    assert done.stdout == "end\n"
    assert os.readlink(stage.workspace / ".claude") == "settings"
    assert (stage.workspace / ".claude.from-command" / "hook").read_text() == "x\n"
    assert [p.name for p in (stage.workspace / "settings").iterdir()] == ["s.json"]
    assert (stage.workspace / "settings" / "s.json").read_text() == "{}"


@pytest.mark.req("security:S28")
async def test_a_link_as_a_parent_does_not_lead_the_cover_elsewhere(stage: Stage) -> None:
    (stage.outside / "vs").mkdir()
    (stage.workspace / ".vscode").symlink_to(stage.outside / "vs")
    await stage.run("echo x > .vscode/tasks.json")
    assert list((stage.outside / "vs").iterdir()) == []


@pytest.mark.req("security:S28")
async def test_what_a_killed_quintet_left_in_a_workspace_goes_with_the_next_command(stage: Stage) -> None:
    context = stage.sandbox.confined(("true",), str(stage.workspace), {}, stage.profile())
    await context.__aenter__()  # as if it never came to its end: another process's locks fall with its death
    again = Sandbox(stage.environment, home=str(stage.home))
    await stage.run("true", sandbox=again)
    assert (stage.workspace / ".claude").is_dir()  # still held
    await context.__aexit__(None, None, None)
    assert [p.name for p in stage.workspace.iterdir()] == [".git"]


@pytest.mark.req("security:S28")
async def test_a_cancel_while_the_wall_is_prepared_leaves_nothing(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, go_on = threading.Event(), threading.Event()
    real = stage.sandbox._set_up

    def slow(profile: Profile) -> object:
        result = real(profile)
        made.set()
        go_on.wait(10)
        return result

    monkeypatch.setattr(stage.sandbox, "_set_up", slow)
    context = stage.sandbox.confined(("true",), str(stage.workspace), {}, stage.profile())
    entering = asyncio.ensure_future(context.__aenter__())
    assert await asyncio.to_thread(made.wait, 10)
    entering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await entering
    assert (stage.workspace / ".claude").is_dir()
    go_on.set()
    await until(lambda: [p.name for p in stage.workspace.iterdir()] == [".git"] and not notes(stage))


def notes(stage: Stage) -> list[Path]:
    return list((stage.home / "run" / "sandbox" / "masks").glob("*"))


@pytest.mark.req("security:S28")
async def test_what_could_not_be_prepared_is_taken_down_again(stage: Stage) -> None:
    stage.sandbox._launcher = (1,)  # type: ignore[assignment]  # no text: the words cannot be made
    with pytest.raises(TypeError):
        async with stage.sandbox.confined(("true",), str(stage.workspace), {}, stage.profile()) as inside:
            " ".join(inside.argv)
    assert [p.name for p in stage.workspace.iterdir()] == [".git"]
    assert notes(stage) == []


@pytest.mark.req("security:S28")
async def test_locks_and_notes_that_others_hold_do_not_stop_the_loop(stage: Stage) -> None:
    """A command may lock what it sees, and another process may be at the notes: only the one that waits, waits."""
    git = os.open(stage.workspace / ".git", os.O_RDONLY)
    fcntl.flock(git, fcntl.LOCK_EX)
    context = stage.sandbox.confined(("true",), str(stage.workspace), {}, stage.profile())
    await asyncio.wait_for(context.__aenter__(), 10)
    (held,) = notes(stage)
    handle = os.open(held, os.O_RDWR)
    fcntl.flock(handle, fcntl.LOCK_EX)
    leaving = asyncio.ensure_future(context.__aexit__(None, None, None))
    for _ in range(5):  # the loop goes on
        await asyncio.sleep(0.01)
        assert not leaving.done()
    os.close(handle)
    await asyncio.wait_for(leaving, 10)
    os.close(git)
    assert [p.name for p in stage.workspace.iterdir()] == [".git"]


@pytest.mark.req("security:S28")
@pytest.mark.parametrize("command", [["gc"], ["gc", "--grace", "60"], ["run", "hello", "--model", "none/none"]])
async def test_what_a_killed_quintet_left_goes_when_the_next_one_starts(stage: Stage, command: list[str]) -> None:
    home = stage.root / "fresh"
    home.mkdir(0o700)
    script = (
        "import asyncio, os, sys\n"
        "from quintet.workspace.sandbox.profile import Profile\n"
        "from quintet.workspace.sandbox.wall import Sandbox\n"
        "async def main():\n"
        "    wall = Sandbox(os.environ, home=sys.argv[1])\n"
        "    async with wall.confined(('true',), sys.argv[2], {}, Profile(sys.argv[2])): os.kill(os.getpid(), 9)\n"
        "asyncio.run(main())"
    )
    words = [sys.executable, "-c", script, str(home), str(stage.workspace)]
    died = await asyncio.to_thread(subprocess.run, words, timeout=30, check=False)
    assert died.returncode == -9
    assert (stage.workspace / ".claude").is_dir()
    await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", "from quintet.cli import main; main()", *command, "--home", str(home)],
        cwd=stage.outside,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert [p.name for p in stage.workspace.iterdir()] == [".git"]
    assert list((home / "run/sandbox/masks").iterdir()) == []


# --- linked worktrees -------------------------------------------------------------------------------------------------
def linked(stage: Stage) -> Path:
    (stage.workspace / "a").write_text("1")
    subprocess.run([*GIT, "add", "a"], cwd=stage.workspace, check=True)
    subprocess.run([*GIT, "commit", "-qm", "one"], cwd=stage.workspace, check=True)
    for name in ("linked", "other"):
        subprocess.run([*GIT, "worktree", "add", "-q", str(stage.root / name)], cwd=stage.workspace, check=True)
    return stage.root / "linked"


@pytest.mark.req("security:S28", "security:S29")
async def test_in_a_linked_worktree_git_works_and_its_settings_stay(stage: Stage) -> None:
    tree = linked(stage)
    common = stage.workspace / ".git"
    config = (common / "config").read_text()
    commit = "echo 2 > a && git -c user.name=a -c user.email=a@b commit -qam two && git log --oneline | wc -l"
    done = await stage.run(commit, Profile(str(tree)), cwd=tree)
    assert (done.stdout, done.stderr) == ("2\n", "")
    attacks = f"""
        echo x > {common}/hooks/pre-commit; echo x >> {common}/config; echo /evil > .git
        echo x > {common}/worktrees/linked/commondir; echo x > {common}/worktrees/linked/gitdir
        echo x > {common}/worktrees/other/HEAD; mv {common}/worktrees {common}/w2
        echo x > {common}/commondir; echo x > {common}/worktrees/linked/config.worktree
        echo x > {stage.workspace}/a"""
    await stage.run(attacks, Profile(str(tree)), cwd=tree)
    assert (common / "config").read_text() == config
    assert not (common / "hooks" / "pre-commit").exists()
    assert not (common / "commondir").exists()
    assert not (common / "worktrees/linked/config.worktree").exists()
    assert (stage.workspace / "a").read_text() == "1"
    assert (stage.root / "linked" / ".git").read_text().startswith("gitdir:")
    assert (common / "worktrees/other/HEAD").read_text().startswith("ref:")
    assert host_status(tree) == ""


@pytest.mark.req("security:S29")
async def test_a_file_that_only_claims_to_be_a_worktree_opens_nothing(stage: Stage) -> None:
    linked(stage)
    liar = stage.root / "liar"
    liar.mkdir()
    shutil.copy(stage.root / "linked" / ".git", liar / ".git")
    await stage.run(f"echo x > {stage.workspace}/.git/new; echo y > mine", Profile(str(liar)), cwd=liar)
    assert not (stage.workspace / ".git" / "new").exists()
    assert (liar / "mine").exists()


# --- network, limits, what the command inherits -----------------------------------------------------------------------
@pytest.mark.req("reliability:R19", "security:S27b")
async def test_the_network_is_there_when_it_is_on_and_only_then(stage: Stage) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        script = f"exec 3<>/dev/tcp/127.0.0.1/{listener.getsockname()[1]} && echo reached; cat /etc/resolv.conf | wc -l"
        on = await stage.run(script, stage.profile(network="on"))
        off = await stage.run(script, stage.profile(network="off"))
    assert on.stdout.startswith("reached")
    assert "No such file" not in on.stderr
    assert "reached" not in off.stdout


async def test_a_server_of_the_commands_own_can_be_reached_without_network(stage: Stage) -> None:
    script = """$PY -c "
import socket
l = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(l.getsockname()); print('tcp')
u = socket.socket(1, 1); u.bind('/tmp/s'); u.listen(1); socket.socket(1, 1).connect('/tmp/s'); print('unix')
n = chr(0) + 'own'; a = socket.socket(1, 1); a.bind(n); a.listen(1); socket.socket(1, 1).connect(n); print('abstract')
" """
    assert (await stage.run(script)).stdout.split() == ["tcp", "unix", "abstract"]


async def test_limits_are_set_inside(stage: Stage) -> None:
    done = await stage.run("ulimit -n; ulimit -Hn; ulimit -c", limits=[("NOFILE", 77), ("CORE", 0)])
    assert done.stdout.split() == ["77", "77", "0"]


async def test_a_limit_that_cannot_be_set_runs_nothing(stage: Stage) -> None:
    done = await stage.run("echo ran", limits=[("NO_SUCH", 1)])
    assert done.returncode == 125
    assert done.stdout == ""
    assert "sandbox could not be completed" in done.stderr


async def test_the_command_inherits_nothing_of_the_launcher(stage: Stage) -> None:
    done = await stage.run("grep SigIgn /proc/self/status; env | sort; ls /proc/self/fd | wc -l")
    lines = done.stdout.split("\n")
    assert lines[0].split()[1] == never_reset()
    assert {line.split("=")[0] for line in lines[1:-2]} == {"HOME", "PATH", "PWD", "PY", "SHLVL", "TMPDIR", "_"}
    assert int(lines[-2]) == 4  # three and the directory being read


async def test_exit_codes_and_signals_come_through(stage: Stage) -> None:
    assert (await stage.run("exit 7")).returncode == 7
    assert (await stage.run("kill -9 $$")).returncode == 137
    assert (await stage.run(f"{BARE} -c 'import sys; sys.exit(3)'")).returncode == 3


async def test_a_program_that_is_not_there_is_said(stage: Stage) -> None:
    async with stage.sandbox.confined(("/no/such",), str(stage.workspace), {}, stage.profile()) as inside:
        done = subprocess.run(inside.argv, env=dict(inside.environment), capture_output=True, timeout=30, check=False)
    assert done.returncode == 127
    assert b"/no/such: No such file" in done.stderr


async def test_the_launcher_runs_where_the_interpreter_lies_in_a_hidden_directory(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = stage.home / "python"
    (prefix / "bin").mkdir(parents=True)
    source = Path(BARE)
    shutil.copy(source, prefix / "bin" / source.name)
    (prefix / "lib").symlink_to(source.parents[1] / "lib")
    monkeypatch.setattr("sys._base_executable", str(prefix / "bin" / source.name))
    monkeypatch.setattr("sys.base_prefix", str(prefix))
    monkeypatch.setattr("sys.base_exec_prefix", str(prefix))
    done = await stage.run(f"echo ran; cat {stage.home}/server.json")
    assert done.stdout == "ran\n"


async def test_a_command_that_begins_while_another_ends_is_prepared_all_the_same(stage: Stage) -> None:
    """The other takes its empty directories along just after this one has looked at them."""

    async def come_and_go() -> None:
        for _ in range(40):
            async with stage.sandbox.confined(("/bin/true",), str(stage.workspace), {}, stage.profile()):
                await asyncio.sleep(0)

    before = sorted(os.listdir(stage.workspace))
    async with asyncio.timeout(60):
        await asyncio.gather(*(come_and_go() for _ in range(4)))
    assert sorted(os.listdir(stage.workspace)) == before


GIVES_WAY = "for i in $(seq 200); do grep -q 'nice 10$' /proc/self/autogroup && break; sleep 0.05; done; "


async def test_a_command_gives_way_to_whoever_watches_it(stage: Stage) -> None:
    done = await stage.run("nice; test -e /proc/self/autogroup || exit 0; " + GIVES_WAY + "cat /proc/self/autogroup")
    nice, _, group = done.stdout.partition("\n")
    assert int(nice) == min(os.nice(0) + 10, 19)
    assert not group or group.split()[-1] == "10"


async def test_commands_that_begin_together_all_give_way(stage: Stage) -> None:
    """Linux hears one wish in a tenth of a second; the others are repeated without the commands waiting for it."""
    if not os.path.exists("/proc/self/autogroup"):
        pytest.skip("this kernel has no groups of processes by login")
    command = GIVES_WAY + "cat /proc/self/autogroup"
    async with asyncio.timeout(60):
        everyone = await asyncio.gather(*(stage.run(command) for _ in range(6)))
    assert {done.stdout.split()[-1] for done in everyone} == {"10"}
