"""The README's tour, typed in a real terminal of a fresh clone, by somebody with an empty home and no network."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.dependencies import ROOT
from tests.e2e.installation import bare_environment, build_wheel, cut_off, install
from tests.e2e.shell_window import ShellWindow, shell_window
from tests.fakes.terminals import needs_tmux

pytestmark = [
    pytest.mark.skipif(not cut_off(), reason="a network cannot be cut off here (unshare -n)"),
    needs_tmux,
    pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this is no clone"),
]
ALLOWED = "say yes there"  # the words before the block for the second terminal
# What has to be on the screen after each line of the tour; a line that is not in here only has to end well.
SHOWN = {
    "quintet": ("one coding-agent server", "quintet demo"),
    "quintet doctor": ("sandbox", "git", "model"),
    "quintet run help": ("read", "search"),
    'quintet run "read CHANGELOG.md"': ("> read CHANGELOG.md", "Changelog"),
    'quintet run "search acknowledged in *.md"': ("> search acknowledged", "CHANGELOG.md:"),
    "quintet approvals list": ("git log --oneline -3",),
    "quintet threads list": ("run git log --oneline -3", "idle"),
    "quintet threads search git": ("git log",),
    "quintet events": ("interaction.resolved", "turn.finished"),
}


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all tests here, which leave it as it is: with what is changed here and not committed yet, set up as
    `make setup` leaves it, without the downloads."""
    place = tmp_path_factory.mktemp("tour") / "clone"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(place)], check=True, timeout=60)
    changed = subprocess.run(
        ["git", "ls-files", "-mo", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in changed.stdout.splitlines():
        if (ROOT / name).exists():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, place / name)
    install(build_wheel(place, place.with_name("wheel")), bare_environment(place / ".venv"))
    (place / ".venv" / ".ready").touch()
    later = time.time() + 5  # no file of the clone is newer, as after a set-up
    os.utime(place / ".venv" / ".ready", (later, later))
    return place


def blocks(tour: str) -> list[tuple[str, list[str]]]:
    """(the words before it, its lines) of each block to type."""
    parts = re.split(r"^```sh\n(.*?)^```\n", tour, flags=re.DOTALL | re.MULTILINE)
    return [(before, code.splitlines()) for before, code in zip(parts[::2], parts[1::2], strict=False)]


def typed(window: ShellWindow, line: str) -> None:
    if line == "quintet demo":
        window.begin(line)
        said = window.shown("allow? [y]es")
        assert "unittest" in said, "the request does not show what would run"
        window.answer("y")
        code, said = window.ended()
        assert code == 0, said
        assert "-    return price * count - discount" in said
        return
    said = window.type(line)
    for words in SHOWN.get(line, ()):
        assert words in said, f"after {line!r} there is no {words!r} on the screen:\n{said}"


@pytest.mark.req("first_minutes:F31")
@pytest.mark.timeout(240)
def test_the_tour_of_the_readme_shows_what_it_says(clone: Path, tmp_path: Path) -> None:
    tour = (clone / "README.md").read_text().partition("## Two minutes")[2].partition("\n## ")[0]
    assert "/tmp/quintet-tour" in tour
    tour = tour.replace("/tmp/quintet-tour", str(tmp_path / "tour"))
    known = {line for _, lines in blocks(tour) for line in lines}
    assert set(SHOWN) <= known, "the tour has changed: say what its lines show"
    (tmp_path / "person").mkdir()
    with shell_window(clone, tmp_path / "person") as first, shell_window(clone, tmp_path / "person") as second:
        waited = False
        for before, lines in blocks(tour):
            if ALLOWED in before:
                for line in lines:
                    typed(second, line)
                code, said = first.ended()
                assert code == 0, said
                assert len(re.findall(r"^\s*[0-9a-f]{7,} ", said, re.MULTILINE)) == 3, f"no log on the screen:\n{said}"
                waited = True
                continue
            for line in lines:
                if "--on-ask wait" in line:
                    first.begin(line)
                    assert "git log --oneline -3" in first.shown("answer with:")
                else:
                    typed(first, line)
        assert waited, "the tour has no second terminal any more"
    assert not list((tmp_path / "person").iterdir()), "something was left in the person's home"


@pytest.mark.req("first_minutes:F31")
@pytest.mark.timeout(120)
def test_make_run_starts_the_server_and_control_c_ends_it(clone: Path, tmp_path: Path) -> None:
    (tmp_path / "person").mkdir()
    with shell_window(clone, tmp_path / "person") as window:
        window.begin("make run")
        said = window.shown("Ctrl-C stops the server")
        assert "http://127.0.0.1:4096" in said
        window.interrupt()
        code, said = window.ended()
        assert "Traceback" not in said
        assert not list(tmp_path.glob("person/.local/share/quintet/server.json"))
        assert code in (0, 2, 130), said  # make's own, when its recipe was interrupted
