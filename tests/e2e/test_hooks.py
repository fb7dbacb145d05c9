"""Hooks as a person meets them: the page's example as it stands there, and a checkout that brings one along."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

from quintet.domain.hook import HookEvent
from quintet.workspace.environment import find_program
from tests.faults.processes import no_traceback, quintet, write_home

pytestmark = pytest.mark.skipif(find_program("bwrap", os.environ) is None, reason="bubblewrap is not installed")
PAGE = Path(__file__).parents[2] / "docs" / "hooks.md"
LOOKS = 'scope: turn\ntool_call: list {}\n---\ntext: "end"\n'


@pytest.mark.req("models:H6")
def test_the_pages_example_works_as_typed(tmp_path: Path) -> None:
    example = PAGE.read_text().partition("## An example")[2].partition("\n## ")[0]
    (rows,) = re.findall(r"^```toml\n(.*?)^```", example, re.DOTALL | re.MULTILINE)
    (typed,) = re.findall(r"^```sh\nquintet (.*?)\n```", example, re.DOTALL | re.MULTILINE)
    work = tmp_path / "work"
    work.mkdir()
    (work / "notes.txt").write_text("keep me\n")
    words = shlex.split(typed)
    done = quintet(*words, home=write_home(tmp_path / "home", config=rows), cwd=work)
    no_traceback(done)
    assert (work / "notes.txt").exists(), done
    assert "hook PreToolUse shell: blocked by config.toml hooks[0]: Nothing is deleted here" in done.err
    allowed = quintet(*words, home=write_home(tmp_path / "plain"), cwd=work)
    assert not (work / "notes.txt").exists(), allowed  # so it was the hook


@pytest.mark.req("models:H1")
def test_the_page_lists_every_moment() -> None:
    table = PAGE.read_text().partition("## The moments")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == [event.value for event in HookEvent]


@pytest.mark.req("models:H15", "security:S21", "security:S23-hooks")
def test_a_hook_that_came_with_a_checkout_does_not_run_by_itself(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / ".quintet").mkdir(parents=True)
    rows = "".join(f'[[hooks]]\nevent = "{event.value}"\ncommand = "touch ran"\n' for event in HookEvent)
    (work / ".quintet" / "config.toml").write_text(rows)
    home = write_home(tmp_path / "home", LOOKS)
    done = quintet("run", "--mode", "allow", "--on-ask", "deny", "go", home=home, cwd=work)
    no_traceback(done)
    assert done.code == 0, done
    assert not (work / "ran").exists()
    assert "nobody agreed to this hook of the project" in done.err
    assert "run a command of the project at every PreToolUse" in done.err
    assert "nobody agreed to this hook" in (home / "quintet.log").read_text()


@pytest.mark.req("models:H10")
def test_a_process_that_ends_tells_the_hooks_of_its_threads(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    row = '[[hooks]]\nevent = "SessionEnd"\ncommand = "cat >ended.json"\n'
    done = quintet("run", "go", home=write_home(tmp_path / "home", LOOKS, row), cwd=work)
    assert done.code == 0, done
    assert '"reason":"exit"' in (work / "ended.json").read_text()


@pytest.mark.req("models:H2")
def test_a_matcher_that_is_wrong_is_one_line_before_anything_is_begun(tmp_path: Path) -> None:
    row = '[[hooks]]\nevent = "Stop"\nmatcher = "(a+)+"\ncommand = "true"\n'
    done = quintet("run", "go", home=write_home(tmp_path / "home", LOOKS, row), cwd=tmp_path)
    no_traceback(done)
    assert done.code == 2
    assert "config.toml: `hooks[0].matcher`: the matcher '(a+)+' could take very long" in done.err
