"""`quintet threads compact` as a person meets it: real processes, a scripted model."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.processes import no_traceback, quintet, write_home

SCRIPT = "scope: turn\nrepeat: 100 text: words that go on \nusage: in=10 out=5"


@pytest.mark.req("models:C6")
def test_a_thread_is_compacted_from_the_command_line_and_goes_on(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home", SCRIPT)
    assert quintet("run", "a first request " * 500, home=home, cwd=tmp_path).code == 0
    assert quintet("run", "-c", "and another", home=home, cwd=tmp_path).code == 0
    thread = quintet("threads", "list", "--json", home=home).lines[0]["id"]
    (home / "model.script").write_text("scope: turn\ntext: all in short")
    done = quintet("threads", "compact", thread, "--instructions", "mind the names", home=home)
    no_traceback(done)
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith("Compacted: about ")
    (shown,) = quintet("threads", "show", thread, "--json", home=home).lines
    assert shown["items"][-1]["body"] == {"type": "summary", "text": "all in short"}
    assert quintet("run", "-c", "go on", home=home, cwd=tmp_path).code == 0


@pytest.mark.req("models:C6", "models:C7")
def test_a_compaction_that_fails_says_why_and_exits_like_any_failed_model(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home", SCRIPT)
    assert quintet("run", "hello", home=home, cwd=tmp_path).code == 0
    thread = quintet("threads", "list", "--json", home=home).lines[0]["id"]
    (home / "model.script").write_text("scope: turn\nerror: 529 overloaded")
    done = quintet("threads", "compact", thread, home=home)
    no_traceback(done)
    assert done.code == 5
    assert "overloaded" in done.err
    (told,) = quintet("threads", "compact", thread, "--json", home=home).lines
    assert told["compaction"]["error"]["code"] == "provider_failed"
    assert told["turn"]["state"] == "failed"


def test_the_offline_model_says_that_it_cannot_summarise_and_how_to_connect_one_that_can(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert quintet("run", "echo hello", home=home, cwd=tmp_path).code == 0
    assert quintet("run", "-c", "echo again", home=home, cwd=tmp_path).code == 0
    thread = quintet("threads", "list", "--json", home=home).lines[0]["id"]
    done = quintet("threads", "compact", thread, home=home)
    no_traceback(done)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("quintet: offline/offline is no language model and cannot summarise")
    assert "docs/howto/connect-a-model.md" in done.err
