"""Text that would drive a terminal, through every way it can come and to every place where it is shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fakes.hostile import ATTACKS, corpus, obeyed
from tests.fakes.terminals import at_pty, needs_tmux, tmux
from tests.faults.processes import QUINTET, quintet, quintet_running, wait_until, write_home

pytestmark = pytest.mark.timeout(90)


def script(tmp_path: Path) -> str:
    """The corpus as thoughts, as an answer in one piece and in single characters, as a call's title, a diff, an output,
    a list of things to do, and an error."""
    whole = corpus()
    pieces = "".join(f"text: {json.dumps(c)}\n" for c in corpus(nul=True))
    todos = json.dumps(
        {"todos": [{"text": a, "status": "pending"} for n, a in ATTACKS.items() if n != "half a character"]}
    )
    (tmp_path / "hostile.txt").write_text(whole)
    calls = (
        f"tool_call: write {json.dumps({'path': 'made.txt', 'content': whole})}\n"
        f"tool_call: shell {json.dumps({'command': 'cat hostile.txt; printf end'})}\n"
        f"tool_call: shell {json.dumps({'command': 'echo ' + whole})}\n"
        f"tool_call: todo {todos}\n"
        f"tool_call: {whole.split()[0].replace('#', '')} {{}}\n"
    )
    return (
        f"scope: turn\nthink: {json.dumps(corpus(nul=True))}\n{calls}---\ntext: {json.dumps(whole)}\n"
        f'tool_call: read {{"path": "hostile.txt"}}\n---\n{pieces}text: " ALL-SAID"\n'
    )


CONFIG = '[policy.rules]\n"shell: cat *" = "allow"\n"shell: printf *" = "allow"\n'


def shown_through_pipes(tmp_path: Path, home: Path, *words: str) -> None:
    for way in ((), ("--json",)):
        done = quintet(*words, *way, home=home, cwd=tmp_path)
        text = done.out + done.err
        assert text.strip(), words
        assert not obeyed(text), (words, way, obeyed(text)[:5])


@pytest.mark.req("security:S43a")
def test_nothing_hostile_is_obeyed_by_whoever_reads_run_threads_events_or_approvals(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home", script(tmp_path), CONFIG)
    shown_through_pipes(tmp_path, home, "run", "--mode", "allow", corpus())
    thread = quintet("threads", "list", "--json", home=home).lines[0]["id"]
    for words in (
        ("threads", "list"),
        ("threads", "show", thread),
        ("threads", "search", "owned"),
        ("threads", "diff", thread),
        ("threads", "export", thread),
        ("events",),
        ("undo", thread, "--dry-run"),
        ("stats",),
    ):
        shown_through_pipes(tmp_path, home, *words)
    with quintet_running("run", "--on-ask", "wait:60", corpus(), home=home, cwd=tmp_path):
        wait_until(lambda: len(quintet("approvals", "list", "--json", home=home).lines) >= 2, 30, 0.2)
        shown_through_pipes(tmp_path, home, "approvals", "list")


@pytest.mark.req("security:S43a")
@pytest.mark.parametrize("term", ["xterm-256color", "dumb"])
@pytest.mark.parametrize("command", ["run", "chat"])
def test_nothing_hostile_is_obeyed_by_the_terminal_of_a_turn(tmp_path: Path, command: str, term: str) -> None:
    write_home(tmp_path / "home", script(tmp_path), CONFIG)
    words = [corpus()] if command == "run" else []
    argv = [QUINTET, command, *words, "--mode", "allow", "--home", str(tmp_path / "home")]
    with at_pty(argv, tmp_path, unset=("NO_COLOR",), TERM=term) as terminal:
        if command == "chat":
            terminal.until("/help lists commands")
            terminal.type("go\r" if term != "dumb" else "go\n")
        terminal.until("ALL-SAID", 40)
        if command == "chat":
            terminal.type("/diff\r" if term != "dumb" else "/diff\n")
            terminal.until("+<<<")
            terminal.type("\x04")
        assert terminal.ended() == 0
        assert "<<<\\x1b]52;c;" in terminal.shown  # it was shown, spelled out
        found = obeyed(terminal.shown, drawing=True)
        assert not found, found[:10]


@needs_tmux
@pytest.mark.req("security:S43a")
def test_a_real_terminal_keeps_its_title_its_clipboard_and_its_screen(tmp_path: Path) -> None:
    write_home(tmp_path / "home", script(tmp_path), CONFIG)
    argv = [QUINTET, "chat", "--home", str(tmp_path / "home")]
    with tmux(argv, tmp_path) as screen:
        screen.until("/help lists commands")
        screen.enter("go")
        asked = screen.until("allow>")
        assert "<<<\\x1b]0;OWNED-TITLE\\x07>>>" in asked  # as part of what is asked about
        screen.enter("n")
        shown = screen.until("denied by local")
        assert screen.format("#{alternate_on}") == "0"
        assert "OWNED" not in screen.format("#{pane_title}")
        assert "\u202e" not in shown
