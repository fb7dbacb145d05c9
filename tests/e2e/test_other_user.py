"""`quintet run` by somebody who is not root, with a number nobody has a name for: the sandbox works for them too, and
where it cannot, that is said and nothing runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.stage import Stage, needs_bubblewrap, staged
from tests.faults.processes import ROOT, Done, environment, one_line, write_home

pytestmark = needs_bubblewrap
USER = 54_321
COMMAND = (
    "id -u; echo x > made && echo wrote; echo x > ../outside/new; cat ../user/.ssh/id_ed25519; ls -A ../quintet; "
    "grep CapEff /proc/self/status; ls /proc | grep -c '^[0-9]*$'"
)
SCRIPT = f'scope: turn\ntool_call: shell {{"command": "{COMMAND}"}}\n---\ntext: "end"\n'
FORBIDDING = (
    "bwrap",
    "--unshare-user",
    "--disable-userns",
    "--bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
    "--",
)


class Somebody:
    """Somebody else with a workspace, a home of Quintet's and a directory with secrets, all their own."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.python = _interpreter()
        self.home = write_home(stage.root / "quintet", SCRIPT)
        for place, directories, files in os.walk(stage.root):
            for name in (*directories, *files, ""):
                os.chown(os.path.join(place, name), USER, USER, follow_symlinks=False)
        stage.root.chmod(0o755)

    def does(self, argv: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
        packages = next(path for path in sys.path if path.endswith("site-packages"))
        variables = environment(HOME=str(self.stage.user), PYTHONPATH=f"{ROOT / 'src'}:{packages}")
        return subprocess.run(
            argv,
            cwd=self.stage.workspace,
            env=variables | {"PATH": "/usr/local/bin:/usr/bin:/bin"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=False,
            user=USER,
            group=USER,
            extra_groups=[],
        )

    def quintet(self, *words: str, within: Sequence[str] = ()) -> Done:
        start = (self.python, "-c", "import sys; from quintet.cli import main; sys.exit(main())")
        done = self.does((*within, *start, *words, "--home", str(self.home)))
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode(), 0.0)


def _interpreter() -> str:
    """One of ours that somebody else may start: a person's own lies where nobody else looks."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    found = [os.path.realpath(sys.executable), *filter(None, map(shutil.which, (version,))), f"/usr/bin/{version}"]
    for path in filter(_may, found):
        if (
            subprocess.run([path, "-c", ""], user=USER, group=USER, extra_groups=[], check=False, cwd="/").returncode
            == 0
        ):
            return path
    pytest.skip(f"no {version} that another user may start")


def _may(path: str) -> bool:
    return os.path.exists(path) and all(
        os.stat(place).st_mode & 0o001 for place in [path, *map(str, Path(path).parents)]
    )


@pytest.fixture
def somebody() -> Iterator[Somebody]:
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    with staged() as stage:
        if not _may(str(stage.root.parent)) or not os.access(ROOT / "src", os.R_OK):
            pytest.skip("this clone cannot be read by others")
        yield Somebody(stage)


def result(done: Done) -> dict[str, Any]:
    """Of the one call in it."""
    (body,) = (
        line["payload"]["item"]["body"]
        for line in done.lines
        if line["kind"] == "item.added" and line["payload"]["item"]["body"]["type"] == "tool_result"
    )
    return dict(body)


@pytest.mark.req("reliability:R19", "security:S26")
def test_another_user_has_the_same_sandbox(somebody: Somebody) -> None:
    if somebody.does(["bwrap", "--unshare-user", "--ro-bind", "/", "/", "true"]).returncode:
        pytest.skip("other users may make no user namespace here")
    done = somebody.quintet("run", "--mode", "allow", "--json", "go")
    assert done.code == 0, done
    lines = result(done)["text"].splitlines()
    assert lines[:2] == [str(USER), "wrote"], lines
    assert "Read-only file system" in lines[2]
    assert "No such file" in lines[3]
    assert lines[4] == "CapEff:\t0000000000000000"  # and of the home nothing is listed
    assert int(lines[5]) < 10  # processes: only its own
    assert (somebody.stage.workspace / "made").stat().st_uid == USER
    assert sorted(path.name for path in somebody.stage.workspace.iterdir()) == [".git", "made"]
    assert [path.name for path in somebody.stage.outside.iterdir()] == ["canary"]


@pytest.mark.req("reliability:R19", "security:S26")
@pytest.mark.parametrize("mode", ["allow", "ask"])
def test_where_another_user_can_have_no_sandbox_that_is_said_and_nothing_runs(somebody: Somebody, mode: str) -> None:
    if somebody.does([*FORBIDDING, "true"]).returncode:
        pytest.skip("user namespaces cannot be forbidden to a process here")
    done = somebody.quintet("run", "--mode", mode, "--json", "go", within=FORBIDDING)
    told = result(done)
    assert told["status"] == "denied", done
    assert "Namespaces cannot be made" in done.out
    assert ("NOT SANDBOXED" if mode == "ask" else "[sandbox] required = false") in done.out
    assert not (somebody.stage.workspace / "made").exists()
    assert [path.name for path in somebody.stage.outside.iterdir()] == ["canary"]


@pytest.mark.parametrize("words", [("run", "echo hi"), ("threads", "list")])
def test_a_home_that_somebody_else_has_closed_is_theirs_and_another_is_asked_for(
    somebody: Somebody, words: tuple[str, ...]
) -> None:
    for place, directories, files in os.walk(somebody.home):
        for name in (*directories, *files, ""):
            os.chown(os.path.join(place, name), 0, 0, follow_symlinks=False)
    somebody.home.chmod(0o700)
    line = one_line(somebody.quintet(*words), 6)
    assert "belongs to another user" in line
    assert "one of your own" in line
    alone = somebody.quintet()
    assert alone.code == 0, alone
    assert "belongs to another user" in alone.out
    assert "model    not known" in alone.out
    assert "explain this repository" not in alone.out
