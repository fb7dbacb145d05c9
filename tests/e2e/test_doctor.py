"""`quintet doctor` as a real process: each thing that can be wrong is made wrong, told with its remedy, and mended."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from quintet.workspace.credentials import Credentials
from quintet.workspace.key_store import KeyStore
from tests.e2e.test_prompt import Terminal
from tests.faults.disks import as_an_ordinary_user, fill, small_disk
from tests.faults.processes import QUINTET, Done, Process, environment, no_traceback, quintet, write_home

CANARIES = ("canary-env-5f0c1d2e3a4b", "canary-stored-9a8b7c6d5e", "canary-config-1029384756")
NEEDED = ["python", "home", "writing", "file system", "disk", "config", "journal", "sandbox", "port 4096", "model"]
NEEDED += ["keys", "git", "ripgrep", "clock"]


def doctor(home: Path, *flags: str, **env: str) -> tuple[Done, dict[str, dict[str, Any]]]:
    """The call, and its rows by name. Every row that is not well must say what mends it."""
    done = quintet("doctor", "--json", *flags, home=home, **env)
    no_traceback(done)
    [told] = done.lines
    assert told["v"] == 1
    assert all(row["fix"] for row in told["rows"] if row["health"] != "ok"), told
    assert told["ok"] == all(row["health"] != "fail" for row in told["rows"])
    return done, {row["name"]: row for row in told["rows"]}


def used(home: Path) -> Path:
    write_home(home)
    assert quintet("run", "echo something", home=home).code == 0
    return home


@pytest.mark.req("first_minutes:F5", "first_minutes:F7")
def test_a_healthy_home_has_every_row_and_exit_0(tmp_path: Path) -> None:
    done, rows = doctor(used(tmp_path / "home"))
    assert done.code == 0, done
    assert done.err == ""
    assert [name for name in NEEDED if name not in rows] == []
    assert {rows[name]["health"] for name in ("python", "home", "writing", "journal", "config", "clock")} == {"ok"}
    assert rows.keys() & {"local models", "Ollama", "LM Studio", "llama.cpp", "vLLM"}


@pytest.mark.req("first_minutes:F5")
def test_for_people_each_row_is_a_line_and_the_last_line_sums_up(tmp_path: Path) -> None:
    home = used(tmp_path / "home")
    home.chmod(0o755)
    done = quintet("doctor", home=home)
    no_traceback(done)
    assert done.code == 6, done
    assert "fail   home" in done.out
    assert "fix: quintet doctor --fix" in done.out
    assert done.out.splitlines()[-1].endswith("each says how.")
    assert "\x1b" not in done.out


@pytest.mark.req("first_minutes:F5")
def test_before_the_first_use_it_makes_nothing(tmp_path: Path) -> None:
    done, rows = doctor(tmp_path / "home")
    assert done.code == 0, done
    assert "not there yet" in rows["home"]["detail"]
    assert not (tmp_path / "home").exists()


@pytest.mark.req("first_minutes:F8")
def test_fix_makes_the_home_closes_it_to_others_and_clears_what_the_dead_left(tmp_path: Path) -> None:
    home = tmp_path / "deep" / "home"
    done, _ = doctor(home, "--fix")
    assert home.stat().st_mode & 0o777 == 0o700
    assert any("made" in words for words in done.lines[0]["fixed"])
    used(home)
    home.chmod(0o755)
    (home / "quintet.db").chmod(0o644)
    (home / "server.json").write_text('{"pid": 4711, "token": "canary-token-0123456789"}')
    broken, rows = doctor(home)
    assert broken.code == 6
    assert (rows["home"]["health"], rows["leftovers"]["health"]) == ("fail", "warn")
    mended, rows = doctor(home, "--fix")
    assert mended.code == 0, mended
    assert len(mended.lines[0]["fixed"]) >= 3
    assert (rows["home"]["health"], "leftovers" in rows) == ("ok", False)
    assert not (home / "server.json").exists()
    assert (home / "quintet.db").stat().st_mode & 0o777 == 0o600
    again, _ = doctor(home, "--fix")
    assert again.lines[0]["fixed"] == []
    assert quintet("threads", "list", "--json", home=home).lines


@pytest.mark.req("first_minutes:F6", "first_minutes:F7")
def test_a_home_that_cannot_be_written_fails_with_exit_6(tmp_path: Path) -> None:
    home = used(tmp_path / "home")
    for path in home.rglob("*"):
        path.chmod(0o500 if path.is_dir() else 0o400)
    home.chmod(0o500)
    try:
        for flags in ((), ("--deep",), ("--fix",)):
            argv = [*as_an_ordinary_user(), QUINTET, "doctor", "--json", *flags, "--home", str(home)]
            done = subprocess.run(argv, capture_output=True, timeout=30, env=environment(), check=False)
            assert b"Traceback" not in done.stderr, done
            assert done.returncode == 6, done
            rows = {row["name"]: row for row in json.loads(done.stdout)["rows"]}
            assert rows["writing"]["health"] == "fail"
            assert "chmod" in rows["writing"]["fix"]
            assert rows["journal"]["health"] == "ok", "it can still be read"
    finally:
        for path in [home, *home.rglob("*")]:
            path.chmod(0o700 if path.is_dir() else 0o600)


@pytest.mark.req("first_minutes:F6", "first_minutes:F8")
def test_a_damaged_journal_fails_with_repair_as_the_fix_and_fix_leaves_it_alone(tmp_path: Path) -> None:
    home = used(tmp_path / "home")
    data = bytearray((home / "quintet.db").read_bytes())
    data[:4096] = bytes(4096)
    (home / "quintet.db").write_bytes(data)
    done, rows = doctor(home)
    assert done.code == 6
    assert "quintet repair" in rows["journal"]["fix"]
    done, rows = doctor(home, "--fix")
    assert (done.code, rows["journal"]["health"]) == (6, "fail")
    assert (home / "quintet.db").read_bytes() == bytes(data)
    assert quintet("repair", home=home).code == 0
    done, rows = doctor(home, "--deep")
    assert (done.code, rows["journal"]["health"]) == (0, "ok"), done


@pytest.mark.req("first_minutes:F9")
def test_a_deep_look_finds_a_content_that_undo_would_miss(tmp_path: Path) -> None:
    home, work = write_home(tmp_path / "home"), tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("first\n")
    done = quintet("run", "--mode", "allow", "replace first with second in a.txt", home=home, cwd=work)
    assert done.code == 0, done
    done, rows = doctor(home, "--deep")
    assert (done.code, rows["kept contents"]["health"]) == (0, "ok"), done
    kept = [p for p in (home / "blobs").glob("??/*") if p.is_file()]
    assert kept, "something was put aside"
    for path in kept:
        path.unlink()
    done, rows = doctor(home, "--deep")
    assert (done.code, rows["kept contents"]["health"]) == (6, "fail")


@pytest.mark.req("first_minutes:F6", "first_minutes:F7")
@pytest.mark.parametrize("text", ["modle = 'x'\n", "default_model = \n", "[policy.rules]\n'shell:' = 'allow'\n"])
def test_a_mistake_in_the_configuration_fails_with_exit_2_and_says_what_to_edit(tmp_path: Path, text: str) -> None:
    home = used(tmp_path / "home")
    (home / "config.toml").write_text(text)
    done, rows = doctor(home)
    assert done.code == 2, done
    assert rows["config"]["fix"].startswith("Edit ")
    assert rows["journal"]["health"] == "ok", "the rest is looked at all the same"


@pytest.mark.req("first_minutes:F6", "first_minutes:F7")
def test_without_bubblewrap_it_warns_and_where_a_sandbox_is_required_it_fails(tmp_path: Path) -> None:
    """The real program is hidden by an empty directory laid over its place, in a mount namespace of its own."""
    home, empty = used(tmp_path / "home"), tmp_path / "empty"
    empty.write_text("")
    script = f'mount --bind {empty} /usr/bin/bwrap && exec "$0" doctor --json --home {home}'
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode:
        pytest.skip("mount namespaces cannot be made here")
    for config, health, code in (("", "warn", 0), ("[sandbox]\nrequired = true\n", "fail", 1)):
        (home / "config.toml").write_text(config)
        argv = ["unshare", "-m", "sh", "-c", script, QUINTET]
        done = subprocess.run(argv, capture_output=True, timeout=30, env=environment(), check=False)
        rows = {row["name"]: row for row in json.loads(done.stdout)["rows"]}
        assert (rows["sandbox"]["health"], done.returncode) == (health, code), done
        assert "bubblewrap is not installed" in rows["sandbox"]["detail"]
        assert "bubblewrap" in rows["sandbox"]["fix"]


@pytest.mark.req("first_minutes:F6")
def test_a_sandbox_that_is_switched_off_warns(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home", config='[sandbox]\nmode = "off"\n')
    done, rows = doctor(home)
    assert (done.code, rows["sandbox"]["health"]) == (0, "warn")


@pytest.mark.req("first_minutes:F6")
def test_a_taken_port_warns_and_the_homes_own_server_does_not(tmp_path: Path) -> None:
    home = used(tmp_path / "home")
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", 4096))
            taken.listen()
        except OSError:
            pass  # somebody else has it, which is as good
        _, rows = doctor(home)
    assert (rows["port 4096"]["health"], rows["port 4096"]["fix"]) == ("warn", "quintet serve --knp-port 0")
    server = Process([QUINTET, "serve", "--knp-port", "off", "--socket", str(tmp_path / "s"), "--home", str(home)])
    try:
        server.until(lambda line: "listens" in line)
        done, rows = doctor(home, "--fix")
        assert (rows["server"]["health"], rows["server"]["detail"]) == (
            "ok",
            f"answers at {tmp_path / 's'} (pid {server.pid})",
        )
        assert str(tmp_path / "s") in quintet(home=home).out, "a server without a port is one, too"
        assert "leftovers" not in rows
        assert (home / "server.json").exists(), "what a living server needs is left alone"
        assert rows["journal"]["health"] == "ok"
        assert done.code == 0
    finally:
        server.close()


@pytest.mark.req("first_minutes:F6", "first_minutes:F7")
def test_a_full_disk_fails_with_exit_6(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        home = used(disk / "home")
        fill(disk)
        done, rows = doctor(home)
        assert done.code == 6, done
        assert (rows["disk"]["health"], rows["writing"]["health"]) == ("fail", "fail")
        assert rows["journal"]["health"] == "ok"


@pytest.mark.req("first_minutes:F10")
def test_nothing_it_prints_holds_a_key_or_a_name(tmp_path: Path) -> None:
    user = tmp_path / "people" / "wilhelmina"
    home = write_home(user / ".local" / "share" / "quintet")
    (home / "config.toml").write_text(
        f'default_model = "x/{CANARIES[2]}"\n[providers.x]\nkind = "openai-chat"\n'
        f'base_url = "http://u:{CANARIES[0]}@127.0.0.1:9/v1"\napi_key = "{CANARIES[2]}"\n'
    )
    Credentials(str(home), KeyStore({})).set("openai", CANARIES[1])
    given = {"HOME": str(user), "USER": "wilhelmina", "LOGNAME": "wilhelmina", "MY_SERVICE_TOKEN": CANARIES[0]}
    home.chmod(0o755)
    for flags in ((), ("--json",), ("--deep",), ("--fix",)):
        done = quintet("doctor", *flags, home=home, **given)
        no_traceback(done)
        said = done.out + done.err
        assert "~/.local/share/quintet" in said
        assert [word for word in (*CANARIES, "wilhelmina", str(user)) if word in said] == []
    for canary in CANARIES[:2]:
        (home / "config.toml").write_text(f"'{canary}' = 3\n")
        said = quintet("doctor", home=home, **given).out
        assert "unknown key `[redacted]`" in said
        assert canary not in said


@pytest.mark.req("first_minutes:F11")
def test_what_takes_long_is_told_on_a_terminal_and_only_there(tmp_path: Path) -> None:
    """A local server that accepts and never answers keeps the doctor waiting for two seconds."""
    home = used(tmp_path / "home")
    with socket.socket() as silent:
        try:
            silent.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            silent.bind(("127.0.0.1", 1234))
        except OSError:
            pytest.skip("somebody has the port that has to be silent")
        silent.listen()
        screen = Terminal(home, tmp_path, ("doctor",))
        try:
            screen.until("Everything works", 30)
            # Which of the two is still waited for after a second depends on the machine.
            assert re.search("^quintet: (trying the sandbox|asking local model servers) …$", screen.shown, re.MULTILINE)
        finally:
            screen.close()
        done, _ = doctor(home)
        assert done.err == ""


@pytest.mark.req("first_minutes:F5")
def test_without_any_network_not_even_loopback_it_still_looks_at_everything(tmp_path: Path) -> None:
    if os.geteuid() or subprocess.run(["unshare", "-n", "true"], capture_output=True, check=False).returncode:
        pytest.skip("network namespaces cannot be made here")
    home = used(tmp_path / "home")
    argv = ["unshare", "-n", QUINTET, "doctor", "--json", "--home", str(home)]
    done = subprocess.run(argv, capture_output=True, timeout=30, env=environment(), check=False)
    assert done.returncode == 0, done
    rows = {row["name"]: row for row in json.loads(done.stdout)["rows"]}
    assert rows["local models"]["health"] == "ok"
