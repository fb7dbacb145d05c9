"""A home that is somebody's project or own directory: one line, and nothing is made or changed there."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from quintet.cli import main
from quintet.cli.last_resort import log
from tests.faults.processes import no_traceback, one_line, quintet

REFUSED = [
    ("run", "help"),
    ("threads", "list"),
    ("approvals", "list"),
    ("gc",),
    ("memory", "list"),
    ("models",),
    ("serve", "--knp-port", "0"),
    ("repair", "--start-anew"),
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    place = tmp_path / "project"
    (place / ".git").mkdir(parents=True)
    (place / "main.py").write_text("")
    place.chmod(0o755)
    return place


def untouched(project: Path) -> None:
    assert sorted(os.listdir(project)) == [".git", "main.py"]
    assert stat.S_IMODE(project.stat().st_mode) == 0o755


@pytest.mark.req("reliability:R10")
@pytest.mark.parametrize("words", REFUSED, ids=" ".join)
def test_every_command_refuses_a_project_as_its_home(
    project: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--home", str(project)]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert f"{project} is no home of Quintet's: it holds .git, main.py." in line
    assert "--home" in line
    untouched(project)


@pytest.mark.req("reliability:R10")
@pytest.mark.parametrize("words", [("wire",), ("kward",)], ids=" ".join)
def test_protocols_on_stdio_refuse_it_too(project: Path, words: tuple[str, ...]) -> None:
    done = quintet(*words, home=project)
    no_traceback(done)
    assert "it holds .git, main.py" in one_line(done, 2)
    untouched(project)


@pytest.mark.parametrize("fix", [(), ("--fix",)], ids=["looking", "mending"])
def test_the_doctor_says_so_and_changes_nothing_there(
    project: Path, fix: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", *fix, "--home", str(project)]) == 6
    assert "is no home of Quintet's: it holds .git, main.py" in " ".join(capsys.readouterr().out.split())
    untouched(project)


def test_the_doctor_closes_no_directory_with_a_configuration_of_another_program(project: Path) -> None:
    (project / "config.toml").write_text('baseURL = "https://example.org"')
    main(["doctor", "--fix", "--home", str(project)])
    assert stat.S_IMODE(project.stat().st_mode) == 0o755


def test_alone_it_tells_it_as_the_problem(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--home", str(project)]) == 0
    assert "is no home of Quintet's" in " ".join(capsys.readouterr().out.split())
    untouched(project)


def test_a_defect_is_not_logged_there(project: Path) -> None:
    assert log(ValueError("x"), str(project)) == ""
    untouched(project)
