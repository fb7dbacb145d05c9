"""Bad homes and bad configuration: one clear line naming the next step, the right exit code, no traceback."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.faults.disks import as_an_ordinary_user
from tests.faults.processes import QUINTET, Done, environment, no_traceback, one_line, quintet, write_home

EVERY = [
    ("run", "help"),
    ("threads", "list"),
    ("approvals", "list"),
    ("events",),
    ("gc",),
    ("serve", "--knp-port", "0"),
]
every_command = pytest.mark.parametrize("words", EVERY, ids=" ".join)


def ordinary(*words: str, home: Path) -> Done:
    begun = time.monotonic()
    argv = [*as_an_ordinary_user(), QUINTET, *words, "--home", str(home)]
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=20, env=environment(), check=False
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode(), time.monotonic() - begun)


@pytest.mark.req("reliability:R10")
@every_command
def test_a_home_that_is_a_file_is_one_line(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "home").write_text("not a directory")
    done = quintet(*words, home=tmp_path / "home")
    no_traceback(done)
    assert done.code in (2, 5, 6), done
    assert "--home" in one_line(done, done.code)


@pytest.mark.req("reliability:R10")
def test_a_home_under_a_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "--home" in one_line(quintet("run", "help", home=tmp_path / "file" / "home"), 2)


@pytest.mark.req("reliability:R10")
@every_command
def test_a_home_that_cannot_be_made_is_one_line(tmp_path: Path, words: tuple[str, ...]) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    assert "--home" in one_line(ordinary(*words, home=locked / "home"), 6)


@pytest.mark.req("reliability:R10")
def test_a_home_that_cannot_be_written_is_still_read(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home")
    assert quintet("run", "echo kept", home=home).code == 0
    _protect(home)
    try:
        for words in (("threads", "list"), ("events",), ("threads", "search", "kept")):
            done = ordinary(*words, "--json", home=home)
            no_traceback(done)
            assert done.code == 0, (words, done)
            assert done.lines, (words, done)
        refused = ordinary("run", "echo more", home=home)
        no_traceback(refused)
        assert refused.code == 6, refused
        assert "--home" in refused.err.strip().splitlines()[-1], refused
    finally:
        home.chmod(0o700)
        (home / "run").chmod(0o700)


def _protect(home: Path) -> None:
    for path in home.rglob("*"):
        path.chmod(0o500 if path.is_dir() else 0o400)
    home.chmod(0o500)


@pytest.mark.req("reliability:R10")
def test_an_empty_home_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o500)
    assert "--home" in one_line(ordinary("run", "help", home=home), 6)


@pytest.mark.req("reliability:R10")
def test_a_missing_home_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    assert quintet("run", "help", home=tmp_path / "a" / "b" / "home").code == 0


@pytest.mark.req("security:S19")
@pytest.mark.parametrize("umask", [0o022, 0o000, 0o077])
def test_every_file_of_a_home_is_private_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    home = tmp_path / "home"
    before = os.umask(umask)
    try:
        assert quintet("run", "--mode", "allow", "run echo hi", home=home).code == 0
    finally:
        os.umask(before)
    modes = {p.relative_to(tmp_path).as_posix(): p.stat().st_mode & 0o777 for p in [home, *home.rglob("*")]}
    wrong = {n: oct(m) for n, m in modes.items() if m != (0o700 if (tmp_path / n).is_dir() else 0o600)}
    assert not wrong


CONFIGS = {
    "unknown key": ("modle = 'x'\n", "modle"),
    "unknown key in a table": ("[policy]\nmood = 'ask'\n", "mood"),
    "bad TOML": ("default_model = \n", "config.toml"),
    "wrong type": ("default_model = 3\n", "default_model"),
    "wrong word": ("[policy]\nmode = 'perhaps'\n", "read-only"),
    "bad rule": ("[policy.rules]\n'shell: ls' = 'maybe'\n", "allow"),
    "provider without kind": ("[providers.x]\nbase_url = 'http://127.0.0.1'\n", "kind"),
    "not text": (b"\xff\xfe\x00", "config.toml"),
}


@pytest.mark.req("reliability:R10")
@pytest.mark.parametrize("case", CONFIGS)
def test_a_broken_configuration_is_one_line_naming_file_and_key_and_nothing_starts(tmp_path: Path, case: str) -> None:
    text, word = CONFIGS[case]
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    line = one_line(quintet("run", "help", home=home), 2)
    assert "config.toml" in line
    assert word in line
    assert not (home / "quintet.db").exists()


@pytest.mark.req("reliability:R10")
def test_a_directory_that_is_missing_is_one_line(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home")
    assert "--cwd" in one_line(quintet("run", "--cwd", str(tmp_path / "nowhere"), "help", home=home), 2)


@pytest.mark.req("reliability:R10")
def test_a_missing_script_of_a_model_is_one_line(tmp_path: Path) -> None:
    home = write_home(tmp_path / "home", "text: hi\n")
    (home / "model.script").unlink()
    assert "model.script" in one_line(quintet("run", "help", home=home), 5)
