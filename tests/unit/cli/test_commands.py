"""The command line as typed: help, versions, mistakes. Each call is the real entry point on its own home."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from quintet import __version__
from quintet.cli import COMMANDS, MEANT, exits, main
from quintet.cli.parser import actions_of
from quintet.cli.words import parser_of
from quintet.domain.errors import all_error_classes

HEAVY = ("asyncio", "msgspec", "apsw", "argparse", "uvicorn", "httpx2", "pydantic", "mcp", "yaml", "jsonschema")


def test_every_error_has_an_exit_code() -> None:
    assert {error.code for error in all_error_classes()} == set(exits.BY_CODE)


def test_version_is_one_line_and_imports_next_to_nothing() -> None:
    look = f"print([m for m in {HEAVY} if m in sys.modules])"
    script = f"import sys; from quintet.cli import main; main(['--version']); {look}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=20)
    assert done.stdout.splitlines() == [f"quintet {__version__}", "[]"]


def test_opening_the_engine_imports_no_server_no_validators_and_nothing_that_only_a_turn_needs() -> None:
    late = (*HEAVY[4:], "tree_sitter", "pathspec", "h11", "quintet.workspace.history", "quintet.tools.builtin")
    script = f"import sys, quintet.app; print([m for m in {late} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=20)
    assert done.stdout.strip() == "[]"


GREETINGS = {
    "wire": b'{"jsonrpc":"2.0","id":"1","method":"initialize","params":{"protocol_version":"1.1"}}\n',
    "kward": b'Content-Length: 46\r\n\r\n{"jsonrpc":"2.0","id":1,"method":"initialize"}',
}


@pytest.mark.parametrize("protocol", GREETINGS)
def test_a_greeting_waits_for_nothing_that_only_threads_and_turns_need(protocol: str, tmp_path: Path) -> None:
    late = ("turns", "threads", "interactions", "hooks", "checkpoints", "undo", "policy", "rules", "starter")
    look = f"print([m for m in {late} if f'quintet.engine.{{m}}' in sys.modules], file=sys.stderr)"
    script = f"import sys; from quintet.cli import main; main([{protocol!r}, '--home', sys.argv[1]]); {look}"
    places = {"KIMI_SHARE_DIR": str(tmp_path / "kimi"), "KWARD_CONFIG_PATH": str(tmp_path / "kward" / "config.json")}
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "home")],
        input=GREETINGS[protocol],
        capture_output=True,
        check=True,
        timeout=30,
        env=os.environ | places,
        cwd=tmp_path,
    )
    assert b'"result"' in done.stdout
    assert done.stderr.strip() == b"[]"


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert sorted(re.findall(r"^  quintet (\S+) ", shown, re.M)) == sorted(COMMANDS)


def test_a_mistyped_command_is_told_with_the_likely_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["thread"]) == exits.USAGE
    assert "quintet threads" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("meant", "command"),
    [
        ("restore", "quintet backup --help"),
        ("export", "quintet threads export"),
        ("login", "quintet auth set"),
        ("hlep", "quintet help"),
    ],
)
def test_a_word_of_other_programs_is_told_with_the_command_that_does_it_here(
    meant: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([meant]) == exits.USAGE
    assert f"`{command}`" in capsys.readouterr().err


def test_every_word_of_other_programs_leads_to_a_command_that_is_there() -> None:
    for meant, words in MEANT.items():
        assert meant not in COMMANDS
        name, *rest = words.split()
        known = {*actions_of(parser_of(name)), *parser_of(name)._option_string_actions, "--help"}
        assert not rest or rest[0] in known, words


def test_a_mistyped_flag_without_a_command_speaks_of_none(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--verison"])
    assert capsys.readouterr().err == (
        "quintet: unrecognized arguments: --verison. Did you mean --version? See `quintet --help`.\n"
    )
    assert main(["-V"]) == main(["--no-color", "--version"]) == 0
    assert capsys.readouterr().out == f"quintet {__version__}\n" * 2


def test_help_is_also_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help"]) == 0
    assert "quintet threads" in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        main(["help", "undo"])
    assert ended.value.code == 0
    assert "usage: quintet undo" in capsys.readouterr().out
    assert main(["help", "udno"]) == exits.USAGE
    assert "quintet undo" in capsys.readouterr().err


def test_the_package_can_be_run_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "quintet", "--version"], capture_output=True, text=True, timeout=20)
    assert (done.stdout, done.returncode) == (f"quintet {__version__}\n", 0)


@pytest.mark.parametrize("words", [["run", "--wrong", "x"], ["serve", "--port", "1"]])
def test_an_unknown_flag_names_the_help_of_its_own_command(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(words)
    assert f"See `quintet {words[0]} --help`." in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["run", "--max-steps", "0", "x"], ["run", "--wrong", "x"], ["gc", "x"], ["threads", "shw"]]
)
def test_wrong_flags_are_usage_errors_in_one_line(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == exits.USAGE
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


WITH_ACTIONS = [name for name in COMMANDS if actions_of(parser_of(name))]


@pytest.mark.req("first_minutes:F14")
@pytest.mark.parametrize("name", WITH_ACTIONS)
def test_a_command_without_its_action_lists_them_with_what_each_does(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name])
    assert ended.value.code == exits.USAGE
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(f"usage: quintet {name} ACTION")
    for action, inner in actions_of(parser_of(name)).items():
        assert re.search(rf"^  {action} +{re.escape(inner.description or '?')}$", told.err, re.M)


@pytest.mark.req("first_minutes:F14")
@pytest.mark.parametrize("name", WITH_ACTIONS)
def test_a_mistyped_action_is_told_with_the_likely_one(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    action = next(iter(actions_of(parser_of(name))))
    with pytest.raises(SystemExit) as ended:
        main([name, f"{action[:-2]}{action[-1]}"])
    assert ended.value.code == exits.USAGE
    assert f"Did you mean `quintet {name} {action}`?" in capsys.readouterr().err


@pytest.mark.req("first_minutes:F14")
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["threads", "nonsense"], "There are list, show, search"),
        (["threads", "list", "--limt", "3"], "Did you mean --limit? See `quintet threads list --help`."),
        (["run", "--mode", "alow", "x"], "--mode cannot be 'alow', only read-only, ask, allow. Did you mean allow?"),
        (["gc", "x"], "unrecognized arguments: x. See `quintet gc --help`."),
        (["run", "hello", "--json", "-"], "unrecognized arguments: -. Words stand together, before the flags"),
        (["completion", "powershell"], "shell cannot be 'powershell', only bash, zsh, fish. See"),
        (["threads", "show\x1b[31m"], "there is no action 'show\\\\x1b[31m'"),
    ],
)
def test_a_mistyped_word_is_told_with_what_there_is(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == exits.USAGE
    told = capsys.readouterr().err
    assert says in told
    assert len(told.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "expected", "says"),
    [
        (["run", "--on-ask", "maybe", "echo a"], exits.USAGE, "wait:SECONDS"),
        (["run", "--cwd", "/nowhere/at/all", "echo a"], exits.USAGE, "--cwd"),
        (["run", "@/nowhere/at/all"], exits.USAGE, "readable file"),
        (["run", "-m", "nobody/nothing", "echo a"], exits.PROVIDER, "offline"),
        (["run", "-c", "echo a"], exits.FAILED, "-c"),
        (["threads", "show", "thr_01m7f7gypvs9bbacva78sx0h54"], exits.FAILED, "threads list"),
        (["threads", "show", "abc"], exits.USAGE, "threads list"),
        (["threads", "import", "/nowhere"], exits.USAGE, "export"),
        (["events", "--after", "yesterday"], exits.USAGE, "number"),
        (["approvals", "allow", "int_x"], exits.FAILED, ""),
        (["approvals", "revoke", "nope"], exits.FAILED, "approvals rules"),
        (["methods", "smoke"], exits.FAILED, "wire"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_next_step(
    words: list[str], expected: int, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--home", str(tmp_path / "home"), *words]) == expected
    err = capsys.readouterr().err.strip()
    assert err.startswith("quintet: ")
    assert len(err.splitlines()) == 1
    assert says in err


def test_the_common_flags_stand_before_or_after_the_command(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    home = str(tmp_path / "home")
    assert main(["--home", home, "run", "--json", "echo one"]) == 0
    assert main(["threads", "list", "--home", home, "--json"]) == 0
    last = json.loads(capfdbinary.readouterr().out.splitlines()[-1])
    assert last["title"] == "echo one"
    assert last["state"] == "idle"


def test_an_imported_thread_works_where_the_importer_stands_not_where_the_file_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    home, there, here = str(tmp_path / "home"), tmp_path / "there", tmp_path / "here"
    there.mkdir()
    here.mkdir()
    monkeypatch.chdir(there)
    assert main(["--home", home, "run", "--json", "echo one"]) == 0
    thread = json.loads(capfd.readouterr().out.splitlines()[-1])["thread"]
    assert main(["--home", home, "threads", "export", thread, "-o", str(tmp_path / "file")]) == 0
    monkeypatch.chdir(here)
    for words, expected in (([], here), (["--cwd", str(there)], there)):
        assert main(["--home", home, "--json", "threads", "import", str(tmp_path / "file"), *words]) == 0
        assert json.loads(capfd.readouterr().out.splitlines()[-1])["settings"]["cwd"] == str(expected)
    assert main(["--home", home, "threads", "import", str(tmp_path / "file"), "--cwd", "/nowhere"]) == exits.USAGE


@pytest.mark.req("security:S16")
def test_an_export_overwrites_only_by_force_and_never_quintet_s_own_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    home = str(tmp_path / "home")
    monkeypatch.chdir(tmp_path)
    assert main(["--home", home, "run", "--json", "echo one"]) == 0
    thread = json.loads(capfd.readouterr().out.splitlines()[-1])["thread"]
    export = ["--home", home, "threads", "export", thread, "-o"]
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "link").symlink_to("home/config.toml")
    assert main([*export, "mine"]) == exits.USAGE
    assert (tmp_path / "mine").read_text() == "mine"
    assert main([*export, "mine", "--force"]) == 0
    assert main([*export, "new"]) == 0
    assert (tmp_path / "mine").read_bytes() == (tmp_path / "new").read_bytes()
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o600
    for path in ("home/quintet.db", "home/new", "link", "HOME/../home/x"):
        assert main([*export, path, "--force"]) == exits.USAGE
    assert "Traceback" not in capfd.readouterr().err
    assert main(["--home", home, "threads", "show", thread]) == 0


def test_an_idempotency_key_counts_for_a_day_then_a_new_thread_is_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def thread_after(hours: float) -> str:
        later = int(hours * 3_600_000)
        with monkeypatch.context() as patch:
            patch.setattr("quintet.app.SystemClock.now_ms", lambda _: time.time_ns() // 1_000_000 + later)
            words = ["run", "--json", "--idempotency-key", "k", "echo one"]
            assert main(["--home", str(tmp_path / "home"), *words]) == 0
        return str(json.loads(capfd.readouterr().out.splitlines()[-1])["thread"])

    hours = (0, 23, 25, 48, 50, 73)
    threads = [thread_after(h) for h in hours]
    first, second, third = threads[0], threads[2], threads[4]
    assert threads == [first, first, second, second, third, third]
    assert len({first, second, third}) == 3


def test_a_mistake_in_the_configuration_keeps_nobody_from_looking(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text('default_modle = "x"\n')
    assert main(["--home", str(home), "run", "echo a"]) == exits.USAGE
    for words in (["threads", "list"], ["approvals", "list"], ["events"]):
        assert main(["--home", str(home), *words]) == 0
        assert "default_modle" in capsys.readouterr().err


def test_a_named_directory_becomes_the_threads_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home, other = str(tmp_path / "home"), tmp_path / "other"
    other.mkdir()
    (other / "here.txt").write_text("found")
    assert main(["--home", home, "run", "echo a"]) == 0
    assert main(["--home", home, "run", "-c", "--cwd", str(Path.cwd()), "echo b"]) == 0
    thread = capsys.readouterr().err.split()[1]
    assert main(["--home", home, "run", "--thread", thread, "--cwd", str(other), "read here.txt"]) == 0
    assert "found" in capsys.readouterr().out


def test_a_prompt_that_is_no_text_makes_no_thread(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = str(tmp_path / "home")
    assert main(["--home", home, "run", "echo caf\udce9"]) == exits.USAGE
    assert main(["--home", home, "threads", "list", "--json"]) == 0
    assert capsys.readouterr().out == ""


def test_in_a_directory_that_is_gone_one_line_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert main(["--home", str(tmp_path / "home"), "run", "echo a"]) == exits.USAGE
    assert "directory is gone" in capsys.readouterr().err
