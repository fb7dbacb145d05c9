"""`quintet chat` in a real terminal: typed at, and what stands on the screen."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes.terminals import Tmux, needs_tmux, tmux
from tests.faults.processes import QUINTET, python_running, quintet, quintet_running, wait_until, write_home

pytestmark = [needs_tmux, pytest.mark.timeout(90)]

READY = "/help lists commands"
CALL = 'scope: turn\ntool_call: shell {"command": "echo one > first"}\n---\ntext: "the end"\n'


@contextlib.contextmanager
def chat(tmp_path: Path, *words: str, size: tuple[int, int] = (80, 30), **env: str) -> Iterator[Tmux]:
    argv = [QUINTET, "chat", *words, "--home", str(tmp_path / "home")]
    with tmux(argv, tmp_path, size=size, **env) as screen:
        screen.until(READY.partition(" ")[0])
        yield screen


def rests(text: str) -> bool:
    """Nothing runs: the state line offers help, the input is empty."""
    return bool(re.search(r"\n>\n\S+ · /help$", text.rstrip()))


def and_rests(*words: str, times: int = 1) -> Callable[[str], bool]:
    """All of these were said, and nothing runs any more."""
    return lambda text: all(text.count(word) >= times for word in words) and rests(text)


def thread(tmp_path: Path) -> str:
    return str(quintet("threads", "list", "--json", home=tmp_path / "home").lines[0]["id"])


def test_an_answer_is_shown_while_it_streams_and_as_markdown_when_its_line_is_whole(tmp_path: Path) -> None:
    """Against a model server over real HTTP."""
    script = tmp_path / "server.script"
    script.write_text(
        f'text: "# Title\\n\\nsome **bo"\nuntil: {tmp_path}/half\ntext: "ld** words\\n\\n- see [here](https://a.example/b)\\n"\n'
        'text: "```py\\nx = 1\\n```\\n| a | b |\\n|---|---|\\n| 1 | 2 |\\n> quoted"\n'
    )
    with python_running("tests.fakes.model_server", "--port", "0", "--script", str(script)) as server:
        url = json.loads(server.until(lambda line: "url" in line)[2])["url"]
        config = (
            'default_model = "fake/m"\n[providers.fake]\nkind = "openai-chat"\n'
            f'base_url = "{url}"\napi_key_env = "FAKE_KEY"\n'
        )
        write_home(tmp_path / "home", "", config)
        with chat(tmp_path, FAKE_KEY="not-a-real-key", NO_PROXY="127.0.0.1") as screen:
            screen.enter("hello")
            growing = screen.until("some **bo")  # the line that still grows, above the input
            assert "# Title" in growing
            (tmp_path / "half").touch()
            shown = screen.until(and_rests("quoted"))
            for row in ("> hello", "# Title", "some bold words", "• see here (https://a.example/b)", "x = 1"):
                assert re.search(rf"^{re.escape(row)} *$", shown, re.M), (row, shown)
            assert re.search(r"^1 │ 2$", shown, re.M), shown
            assert re.search(r"^│ quoted$", shown, re.M), shown
            screen.key("C-d")
            assert screen.ended() == 0


@pytest.mark.parametrize(("typed", "made", "says"), [("y", True, "allowed by"), ("n not now", False, "not now")])
def test_an_approval_shows_the_whole_command_and_is_answered_in_place(
    tmp_path: Path, typed: str, made: bool, says: str
) -> None:
    write_home(tmp_path / "home", CALL)
    with chat(tmp_path) as screen:
        screen.enter("go")
        asked = screen.until("allow>")
        assert "$ echo one > first" in asked
        assert "allow? [y]es, [n]o" in asked
        screen.enter("perhaps")
        screen.until("please answer y")
        assert not (tmp_path / "first").exists()
        screen.enter(typed)
        assert says in screen.until(and_rests("the end"))
        assert (tmp_path / "first").exists() == made
    items = quintet("threads", "show", thread(tmp_path), "--json", home=tmp_path / "home").lines[0]["items"]
    assert ("not now" in json.dumps(items)) != made  # the model is told the reason


@pytest.mark.parametrize(
    ("typed", "chosen"), [("2", "right"), ("LEFT", "left"), ("straight on", "straight on"), ("//etc", "/etc")]
)
def test_a_question_is_answered_by_number_label_or_words_of_ones_own(tmp_path: Path, typed: str, chosen: str) -> None:
    question = '{"question": "Which way?", "options": [{"label": "left"}, {"label": "right"}]}'
    write_home(tmp_path / "home", f'scope: turn\ntool_call: ask_user {{"questions": [{question}]}}\n---\ntext: end\n')
    with chat(tmp_path) as screen:
        screen.enter("go")
        assert "2) right" in screen.until("answer>")
        screen.enter("7")
        screen.until("'7' is not one of the answers")
        screen.enter(typed)
        screen.until(and_rests("answered by", "end"))
    shown = quintet("threads", "show", thread(tmp_path), home=tmp_path / "home").out
    assert f"Which way? -> {chosen}" in shown


def test_what_is_typed_while_a_turn_runs_goes_into_that_turn(tmp_path: Path) -> None:
    script = 'scope: turn\ntext: "first step"\nuntil: go\n---\ntext: "second step"\n'
    home = write_home(tmp_path / "home", script)
    with chat(tmp_path) as screen:
        screen.enter("begin")
        screen.until("first step")
        screen.until("Enter steers")
        screen.enter("turn left")
        shown = screen.until("steer accepted")
        assert "↳ turn left" in shown
        screen.enter("/queue and then this")
        screen.until("1 queued")
        (home / "go").touch()
        shown = screen.until(and_rests("first step", "second step", times=1))
        shown = screen.until(lambda text: text.count("first step") == 2 and rests(text))
        assert shown.index("the model has it now") < shown.index("second step")
        assert shown.count("first step") == 2  # the queued one was a turn of its own
    told = quintet("threads", "show", thread(tmp_path), "--json", home=home).lines[0]["items"]
    said = [(i["body"]["parts"][0]["text"], i["body"].get("steered", False)) for i in told if "parts" in i["body"]]
    assert said == [("begin", False), ("turn left", True), ("and then this", False)]


def test_ctrl_c_stops_the_turn_and_at_an_empty_prompt_leaves_when_pressed_twice(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home", 'scope: turn\ntext: "before"\nuntil: never\n')
    with chat(tmp_path) as screen:
        screen.enter("go")
        screen.until("before")
        screen.key("C-c")
        assert "ended as" not in screen.until("The turn was cancelled")
        screen.until(rests)
        screen.type("half a thought")
        screen.until("> half a thought")
        screen.key("C-c")  # takes back what was typed, nothing else
        screen.until(rests)
        screen.key("C-c")
        screen.until("Ctrl-C again, or Ctrl-D, leaves")
        screen.key("C-c")
        assert screen.ended() == 0
    assert quintet("threads", "list", "--json", home=home).lines[0]["state"] == "idle"


def test_a_second_ctrl_c_leaves_while_a_turn_runs(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home", 'scope: turn\ntext: "before"\nuntil: never\n')
    with chat(tmp_path) as screen:
        screen.enter("go")
        screen.until("before")
        screen.key("C-c", "C-c")
        assert screen.ended() == 0
    assert quintet("threads", "list", "--json", home=home).lines[0]["state"] == "idle"


def test_undo_redo_and_diff_are_the_command_lines_own(tmp_path: Path) -> None:
    write_home(tmp_path / "home", "", '[policy]\nmode = "allow"\n')
    note = tmp_path / "note.txt"
    note.write_text("old words\n")
    with chat(tmp_path, "--mode", "allow") as screen:
        screen.enter("/undo")
        screen.until("Nothing was said yet")
        screen.enter("replace old with new in note.txt")
        shown = screen.until(and_rests("1 replacement"))
        assert re.search(r"^note.txt  \+1 -1$", shown, re.M), shown
        assert note.read_text() == "new words\n"
        screen.enter("/undo")
        assert "`/redo` takes it back" in screen.until(and_rests("restored"))
        wait_until(lambda: note.read_text() == "old words\n", 10)
        screen.enter("/redo")
        wait_until(lambda: note.read_text() == "new words\n", 10)
        screen.enter("/diff")
        screen.until(lambda text: text.count("+new words") >= 2)  # in the call, and now
        screen.enter("/undoo")
        screen.until("Did you mean /undo?")
        screen.enter("/undo --nonsense")
        screen.until("quintet: /undo: unrecognized arguments: --nonsense.\n")
        screen.enter("/resume zzz")
        screen.until("`/threads`")
        screen.enter("/export out.jsonl")
        screen.until("Wrote out.jsonl")
        assert (tmp_path / "out.jsonl").stat().st_mode & 0o777 == 0o600


@pytest.mark.req("first_minutes:F12", "first_minutes:F13")
def test_an_edit_shows_its_diff_once_and_a_compaction_without_a_language_model_says_why(tmp_path: Path) -> None:
    note = tmp_path / "note.txt"
    note.write_text("old words\n")
    with chat(tmp_path) as screen:
        screen.enter("replace old with new in note.txt")
        screen.until("allow>")
        screen.enter("y")
        assert screen.until(and_rests("1 replacement")).count("+new words") == 1
        screen.enter("/compact")
        shown = screen.until(and_rests("Not compacted."))
        assert "offline/offline is no language model" in " ".join(shown.split())


def test_what_was_typed_comes_back_masked_and_private_and_the_thread_goes_on(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home")
    secret = "sk-test-0123456789abcdef"
    with chat(tmp_path, OPENAI_API_KEY=secret, QUINTET_MODEL="offline") as screen:
        screen.enter(f"echo {secret}")
        screen.until(and_rests("> echo [redacted]\n[redacted]"))
        screen.paste("echo two\nlines\n")
        screen.until("lines")
        assert "echo two lines" not in screen.screen()
        screen.key("Enter")
        screen.until(and_rests("> echo two\n  lines"))
        screen.key("C-d")
        assert screen.ended() == 0
    kept = home / "chat-history"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert [json.loads(line) for line in kept.read_text().splitlines()] == ["echo [redacted]", "echo two\nlines\n"]
    with chat(tmp_path, "--continue", OPENAI_API_KEY=secret, QUINTET_MODEL="offline") as screen:
        screen.until(and_rests("> echo [redacted]", "> echo two\n  lines"))
        screen.key("C-r")
        screen.type("redac")
        screen.until(
            lambda text: re.search(r"^> echo \[redacted\]$", text.rstrip().rpartition("/help")[0][-200:], re.M)
        )
        screen.key("Enter", "Enter")
        screen.until(lambda text: text.count("> echo [redacted]") >= 2 and rests(text))
    assert len(quintet("threads", "list", "--json", home=home).lines) == 1


def test_a_request_answered_by_another_process_leaves_the_prompt_and_says_so(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home", CALL)
    with chat(tmp_path) as screen:
        screen.enter("go")
        screen.until("allow>")
        screen.type("y")  # not sent
        (pending,) = quintet("approvals", "list", "--json", home=home).lines
        assert quintet("approvals", "deny", pending["id"], "--reason", "too late", home=home).code == 0
        shown = screen.until(rests)
        assert "denied by local through cli: too late (answered elsewhere)" in shown
        assert not (tmp_path / "first").exists()


def test_a_half_typed_text_survives_a_request_and_does_not_answer_it(tmp_path: Path) -> None:
    script = 'scope: turn\ntext: "wait"\nuntil: go\ntool_call: shell {"command": "echo one > first"}\n---\ntext: end\n'
    home = write_home(tmp_path / "home", script)
    with chat(tmp_path) as screen:
        screen.enter("begin")
        screen.until("wait")
        screen.type("y")
        screen.until(lambda text: re.search(r"^> y$", text, re.M))
        (home / "go").touch()
        screen.until(lambda text: re.search(r"^allow>$", text, re.M))
        screen.key("Enter")
        screen.until("please answer y or n")
        screen.enter("n")
        screen.until(lambda text: re.search(r"^> y\n\S+ · /help", text.rstrip(), re.M))
        assert not (tmp_path / "first").exists()


def test_a_turn_of_another_process_is_shown_as_it_happens_and_its_request_can_be_answered(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home", CALL)
    quintet("run", "--on-ask", "deny", "first words", home=home, cwd=tmp_path)
    with chat(tmp_path, "--thread", thread(tmp_path)) as screen:
        screen.until("> first words")
        words = ("run", "--thread", thread(tmp_path), "--on-ask", "wait:60", "from elsewhere")
        with quintet_running(*words, home=home, cwd=tmp_path) as other:
            shown = screen.until("allow>")
            assert "> from elsewhere" in shown
            assert "from another process: local through cli" in shown
            screen.enter("y")
            assert other.wait() == 0
        screen.until(rests)
        assert (tmp_path / "first").exists()


def test_what_a_killed_process_left_running_is_ended_while_it_is_watched(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home", 'scope: turn\ntext: "before"\nuntil: never\n')
    with quintet_running("run", "--json", "go", home=home, cwd=tmp_path) as other:
        other.event("text.delta")
        with chat(tmp_path, "--continue") as screen:
            screen.until("Enter steers")
            other.kill()
            screen.until("ended as interrupted")
            screen.until(rests)


def test_a_request_that_waits_when_one_comes_in_is_asked_at_once(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home", CALL)
    with quintet_running("run", "--on-ask", "wait:60", "go", home=home, cwd=tmp_path) as other:
        wait_until(lambda: quintet("approvals", "list", "--json", home=home).lines, 20)
        with chat(tmp_path, "--continue") as screen:
            assert "$ echo one > first" in screen.until("allow>")
            screen.enter("y")
            assert other.wait() == 0


def test_model_agent_plan_threads_and_new_are_settings_of_the_thread(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home")
    with chat(tmp_path) as screen:
        screen.enter("/model nobody/nothing")
        screen.until("The model 'nobody/nothing' cannot be used")
        screen.enter("/plan")
        screen.until("plan mode is on")
        screen.enter("echo hello")
        screen.until(lambda text: "plan mode · /help" in text and "hello" in text)
        screen.enter("/plan off")
        screen.until("plan mode is off")
        first = thread(tmp_path)
        screen.enter("/new")
        screen.until("A new thread begins")
        screen.enter("echo other")
        screen.until(lambda text: text.count("other") >= 2 and rests(text))
        screen.enter("/threads")
        screen.until(lambda text: first in text)
        screen.enter(f"/resume {first}")
        screen.until(lambda text: text.count("> echo hello") == 2)
        screen.enter("/stats")
        screen.until("model calls")
        screen.enter("/compact mind the names")
        screen.until("Not compacted.")
        screen.enter("/exit")
        assert screen.ended() == 0
    assert len(quintet("threads", "list", "--json", home=home).lines) == 2


def test_a_narrow_terminal_and_one_that_changes_its_size_show_everything(tmp_path: Path) -> None:
    words = " ".join(f"word{n:02}" for n in range(30))
    write_home(
        tmp_path / "home", f'scope: turn\ntext: "{words}\\n\\n漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字"\n'
    )
    with chat(tmp_path, size=(40, 20)) as screen:
        screen.enter("go")
        shown = screen.until(and_rests("word29"))
        assert shown.split().count("word29") == 1
        assert re.search(rf"^{' '.join(words.split()[:5])}$", shown, re.M), shown
        assert shown.count("漢") == 12
        screen.resize(100, 30)
        screen.enter("again")
        screen.until(lambda text: re.search(r"word0\d.* word1[0-3]$", text, re.M) and rests(text))


def test_being_told_to_end_restores_the_terminal(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home", 'scope: turn\ntext: "before"\nuntil: never\n')
    with chat(tmp_path) as screen:
        screen.enter("go")
        screen.until("before")
        shell = int(screen.format("#{pane_pid}"))
        children = Path(f"/proc/{shell}/task/{shell}/children").read_text().split()
        os.kill(int(children[0]), signal.SIGTERM)
        assert screen.ended() == 130
    (turn,) = [i for i in quintet("events", "--json", home=home).lines if i["kind"] == "turn.finished"]
    assert turn["payload"]["state"] == "interrupted"


@pytest.mark.req("mechanisms:M5.aside", "mechanisms:M2.notices")
def test_a_question_beside_the_thread_and_the_end_of_a_command_in_the_background_are_shown(tmp_path: Path) -> None:
    started = '{"command": "until [ -e go ]; do sleep 0.02; done", "background": true}'
    script = f'tool_call: shell {started}\n---\ntext: "it runs"\n---\ntext: "because so"\n'
    write_home(tmp_path / "home", script)
    with chat(tmp_path, "--mode", "allow") as screen:
        screen.enter("start it")
        screen.until(and_rests("it runs"))
        screen.enter("/btw why?")
        screen.until(and_rests("> /btw why?", "because so"))
        (tmp_path / "go").touch()
        screen.until("Background command is done: until")
        screen.key("C-d")
        assert screen.ended() == 0
    shown = quintet("threads", "show", thread(tmp_path), home=tmp_path / "home").out
    assert "because so" not in shown
