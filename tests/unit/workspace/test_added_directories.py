"""A directory beside the workspace: contained and guarded as the workspace is, and none once it is another one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from quintet.domain.errors import Invalid, OutOfBounds
from quintet.workspace.files import read_text, replace_bytes
from quintet.workspace.paths import PathGuard


class Stage:
    """A workspace, a directory beside it, somewhere else, Quintet's home and a person's, with secrets."""

    def __init__(self, top: Path) -> None:
        self.top = top
        for name in ("work", "beside/sub", "else", "quintet", "person/.ssh", "person/proj", "person/.config/git"):
            (top / name).mkdir(parents=True)
        (top / "beside" / "a").write_text("a")
        (top / "else" / "secret").write_text("no")
        self.cwd = str(top / "work")
        self.guard = PathGuard(str(top / "quintet"), [str(top / "person" / ".ssh")])

    def path(self, name: str) -> str:
        return str(self.top / name)

    def add(self, name: str, added: tuple[str, ...] = ()) -> tuple[str, ...]:
        return self.guard.adding(self.path(name), self.cwd, added)


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    return Stage(tmp_path)


@pytest.mark.req("security:S29")
def test_what_is_added_is_read_and_written_and_nothing_else_is(stage: Stage) -> None:
    added = stage.add("beside")
    assert added == (stage.path("beside"),)
    assert read_text(stage.guard.reading(stage.path("beside/a"), stage.cwd, added=added)) == "a"
    assert read_text(stage.guard.reading("../beside/a", stage.cwd, added=added)) == "a"
    place = stage.guard.writing(stage.path("beside/new/b"), stage.cwd, added=added)
    replace_bytes(place, b"b")
    assert (stage.top / "beside" / "new" / "b").read_text() == "b"
    for path in ("else/secret", "beside/../else/secret", "besides", "quintet/x", "person/.ssh/id"):
        with pytest.raises(OutOfBounds):
            stage.guard.reading(stage.path(path), stage.cwd, added=added)
    with pytest.raises(OutOfBounds):
        stage.guard.reading(stage.path("beside/a"), stage.cwd)


@pytest.mark.req("security:S28")
@pytest.mark.parametrize("path", [".git/hooks/x", ".git/config", ".vscode/tasks.json", ".bashrc", "sub/.git/config"])
def test_what_runs_by_itself_is_protected_there_too(stage: Stage, path: str) -> None:
    with pytest.raises(Invalid, match="protected"):
        stage.guard.writing(stage.path(f"beside/{path}"), stage.cwd, added=stage.add("beside"))


@pytest.mark.req("security:S16")
def test_a_link_in_it_leads_nowhere_else(stage: Stage) -> None:
    (stage.top / "beside" / "way").symlink_to(stage.top / "else")
    (stage.top / "work" / "way").symlink_to(stage.top / "beside")
    added = stage.add("beside")
    with pytest.raises(OutOfBounds):
        stage.guard.reading(stage.path("beside/way/secret"), stage.cwd, added=added)
    assert read_text(stage.guard.reading("way/a", stage.cwd, added=added)) == "a"


@pytest.mark.req("security:S16", "security:S17")
def test_a_directory_that_becomes_a_link_or_goes_away_is_none_any_more(stage: Stage) -> None:
    added = stage.add("beside")
    place = stage.guard.reading(stage.path("beside/a"), stage.cwd, added=added)
    os.rename(stage.path("beside"), stage.path("moved"))
    (stage.top / "else" / "a").write_text("no")
    os.symlink(stage.path("else"), stage.path("beside"))
    assert stage.guard.standing(added, stage.cwd) == ()
    with pytest.raises(OutOfBounds):
        stage.guard.reading(stage.path("beside/a"), stage.cwd, added=added)
    with pytest.raises(OSError):
        read_text(place)  # judged before it became a link
    os.unlink(stage.path("beside"))
    with pytest.raises(OutOfBounds):
        stage.guard.writing(stage.path("beside/new"), stage.cwd, added=added)


@pytest.mark.req("security:S29")
def test_one_that_has_come_to_hold_the_working_directory_is_none(stage: Stage) -> None:
    """A thread may be gone on with elsewhere. Who could write above its workspace could lead the workspace anywhere."""
    added, below = stage.add("beside"), stage.path("beside/sub")
    assert stage.guard.standing(added, stage.cwd) == added
    assert stage.guard.standing(added, below) == ()
    with pytest.raises(OutOfBounds):
        stage.guard.writing(stage.path("beside/a"), below, added=added)


@pytest.mark.req("security:S17")
def test_a_link_swapped_in_on_the_way_is_not_followed(stage: Stage) -> None:
    added = stage.add("beside")
    (stage.top / "beside" / "sub" / "secret").write_text("ours")
    place = stage.guard.reading(stage.path("beside/sub/secret"), stage.cwd, added=added)
    os.rename(stage.path("beside/sub"), stage.path("beside/old"))
    os.symlink(stage.path("else"), stage.path("beside/sub"))
    with pytest.raises(OSError):
        read_text(place)
    with pytest.raises(OSError):
        replace_bytes(place, b"x")
    assert (stage.top / "else" / "secret").read_text() == "no"


@pytest.mark.req("security:S16", "security:S29")
@pytest.mark.parametrize(
    "path",
    [
        *(
            "quintet",
            "quintet/sub",
            ".",
            "person",
            "person/.ssh",
            "person/.ssh/sub",
            "person/.config",
            "person/.config/git",
        ),
        *("beside/.git", "beside/.git/sub", "beside/.vscode", "beside/none", "beside/a"),
    ],
)
def test_what_is_somebodys_or_decides_what_runs_cannot_be_added(stage: Stage, path: str) -> None:
    if "none" not in path and path != "beside/a":
        (stage.top / path).mkdir(parents=True, exist_ok=True)
    with pytest.raises(Invalid):
        stage.add(path)


@pytest.mark.parametrize("path", ["/", "/etc", "/usr/share", "/proc/self", "/tmp", "/dev", "/run/user", "/home"])
@pytest.mark.req("security:S16")
def test_the_machine_itself_cannot_be_added(stage: Stage, path: str) -> None:
    with pytest.raises(Invalid):
        stage.guard.adding(path, stage.cwd)


def test_a_link_to_a_directory_is_added_as_what_it_leads_to_and_judged_as_that(stage: Stage) -> None:
    (stage.top / "way").symlink_to(stage.top / "beside")
    (stage.top / "home").symlink_to(stage.top / "quintet")
    assert stage.add("way") == (stage.path("beside"),)
    with pytest.raises(OutOfBounds):
        stage.add("home")


def test_what_is_part_of_it_already_changes_nothing_and_an_outer_one_takes_the_place_of_inner_ones(
    stage: Stage,
) -> None:
    inner = stage.add("beside/sub")
    assert stage.add("work") == ()
    assert stage.add("beside/sub", inner) == inner
    assert stage.add("person/proj", inner) == (*inner, stage.path("person/proj"))
    assert stage.add("beside", inner) == (stage.path("beside"),)
    assert stage.add("beside/sub", (stage.path("beside"),)) == (stage.path("beside"),)
