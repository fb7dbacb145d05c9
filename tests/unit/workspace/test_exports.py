"""Files made for somebody outside: where they may go, and that they come whole, for their owner's eyes only."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from quintet.domain.errors import Invalid
from quintet.workspace.exports import write_export
from quintet.workspace.paths import PathGuard
from tests.unit.tools.test_path_corpus import INSIDE, REFUSED, filled_in, name_of, snapshot
from tests.unit.workspace.corpus_paths import CASES, Case, build

LINES = [b"one\n", b"two\n"]
WHOLE = b"one\ntwo\n"


def export(base: Path, path: str, *, cwd: Path | None = None, root: str = "", force: bool = False) -> Path:
    """As from a shell in the directory; Quintet's home is the `home` in it."""
    guard = PathGuard(str(base / "home"))
    return Path(write_export(guard, path, LINES, cwd=str(cwd or base), root=root, force=force).path)


@pytest.fixture(scope="module")
def unchanging(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One tree for all refused paths: refusing leaves it as it is, or the test fails."""
    return build(tmp_path_factory.mktemp("corpus"))


def try_to_export(ws: Path, path: str, cwd: str, root: str = "") -> None:
    """By force. A path that leads out of the test's own directory is only judged, never written: a guard that is broken
    must fail the test, not replace the machine's files."""
    here = str(ws / cwd)
    try:
        leads = os.path.realpath(os.path.dirname(os.path.join(here, path)))
    except (OSError, ValueError):
        leads = ""  # no path, or none that can be followed
    if leads.startswith(f"{ws.parent}/"):
        export(ws, path, cwd=ws / cwd, root=root, force=True)
    else:
        PathGuard(str(ws / "home")).exporting(path, here, root)


@pytest.mark.req("security:S16")
@pytest.mark.parametrize("case", REFUSED, ids=name_of)
def test_a_client_s_export_goes_nowhere_that_a_file_tool_may_not_write(unchanging: Path, case: Case) -> None:
    before = snapshot(unchanging.parent)
    with filled_in(unchanging, case.path) as path, pytest.raises(Invalid):
        try_to_export(unchanging, path, case.cwd, str(unchanging))
    assert snapshot(unchanging.parent) == before


@pytest.mark.req("security:S16")
@pytest.mark.parametrize("case", INSIDE, ids=name_of)
def test_an_export_inside_the_workspace_lands_where_its_name_stands_or_nowhere(tmp_path: Path, case: Case) -> None:
    ws = build(tmp_path)
    before = snapshot(tmp_path)
    with filled_in(ws, case.path) as path:
        asked = os.path.join(ws, case.cwd, path)
        above = Path(os.path.realpath(os.path.dirname(asked)))
        # A link of that name, a directory, or no directory to hold it: nothing is written.
        fits = above.is_dir() and not os.path.islink(asked.rstrip("/")) and not os.path.isdir(asked)
        if not fits or path.endswith("/"):
            with pytest.raises(Invalid):
                export(ws, path, cwd=ws / case.cwd, root=str(ws), force=True)
            assert snapshot(tmp_path) == before
            return
        landed = export(ws, path, cwd=ws / case.cwd, root=str(ws), force=True)
    assert landed == Path(os.path.normpath(ws / case.lands))
    assert stat.S_IMODE(landed.stat().st_mode) == 0o600
    assert snapshot(tmp_path) == {**before, str(landed): WHOLE}


@pytest.mark.req("security:S16")
@pytest.mark.parametrize("case", [case for case in CASES if case.judged in ("hidden", "wrong")], ids=name_of)
def test_a_person_s_own_export_never_reaches_quintet_s_home(unchanging: Path, case: Case) -> None:
    before = snapshot(unchanging.parent)
    with filled_in(unchanging, case.path) as path, pytest.raises(Invalid):
        try_to_export(unchanging, path, case.cwd)
    assert snapshot(unchanging.parent) == before


def test_a_person_may_export_anywhere_else(tmp_path: Path) -> None:
    ws = build(tmp_path)
    for path in ("../out/new.txt", "out/linked.txt", str(tmp_path / "wsx/x"), ".git/x"):
        landed = export(ws, path)
        assert landed == Path(os.path.realpath(ws / path))
        assert landed.read_bytes() == WHOLE


def test_what_is_there_is_replaced_by_force_alone_and_its_other_names_keep_what_they_had(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("mine")
    (tmp_path / "f").chmod(0o644)
    os.link(tmp_path / "f", tmp_path / "other")
    with pytest.raises(Invalid, match="exists already"):
        export(tmp_path, "f")
    assert (tmp_path / "f").read_text() == "mine"
    export(tmp_path, "f", force=True)
    assert (tmp_path / "f").read_bytes() == WHOLE
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o600
    assert (tmp_path / "other").read_text() == "mine"
    assert sorted(os.listdir(tmp_path)) == ["f", "other"], "nothing is left beside it"


@pytest.mark.req("security:S17")
@pytest.mark.parametrize("target", ["there", "missing", "home/quintet.db"])
def test_a_link_planted_at_the_last_name_is_not_followed(tmp_path: Path, target: str) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/quintet.db").write_text("journal")
    (tmp_path / "there").write_text("mine")
    (tmp_path / "f").symlink_to(target)
    before = snapshot(tmp_path)
    for force in (False, True):
        with pytest.raises(Invalid, match="is a link"):
            export(tmp_path, "f", force=force)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("kind", ["pipe", "socket", "directory"])
def test_a_pipe_a_socket_and_a_directory_are_refused_in_plain_words(tmp_path: Path, kind: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    os.mknod(tmp_path / "socket", stat.S_IFSOCK | 0o600)
    (tmp_path / "directory").mkdir()
    before = {name: stat.S_IFMT((tmp_path / name).stat().st_mode) for name in os.listdir(tmp_path)}
    for force in (False, True):
        with pytest.raises(Invalid, match="is a directory" if kind == "directory" else "a pipe, a socket or a device"):
            export(tmp_path, kind, force=force)
    assert {name: stat.S_IFMT((tmp_path / name).stat().st_mode) for name in os.listdir(tmp_path)} == before


def test_what_comes_while_it_is_written_is_not_overwritten(tmp_path: Path) -> None:
    def lines() -> Iterator[bytes]:
        (tmp_path / "f").write_text("somebody was faster")
        yield b"one"

    with pytest.raises(Invalid, match="exists already"):
        write_export(PathGuard(), "f", lines(), cwd=str(tmp_path))
    assert (tmp_path / "f").read_text() == "somebody was faster"
    assert os.listdir(tmp_path) == ["f"]


def test_no_directory_is_made_for_it(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="There is no directory"):
        export(tmp_path, "new/f")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("force", [False, True])
def test_a_disk_that_is_full_leaves_what_stood_there_and_nothing_beside_it(tmp_path: Path, force: bool) -> None:
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "quintet-test", str(tmp_path)], check=False)
    if mounted.returncode:
        pytest.skip("nothing can be mounted here")
    try:
        if force:
            (tmp_path / "f").write_text("mine")
        with pytest.raises(Invalid, match="No space left"):
            write_export(PathGuard(), "f", [b"x" * 100_000], cwd=str(tmp_path), force=force)
        assert os.listdir(tmp_path) == (["f"] if force else [])
        assert not force or (tmp_path / "f").read_text() == "mine"
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)
