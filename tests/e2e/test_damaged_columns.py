"""Damage that changes a value's type or range: whatever a column says, every command answers or refuses in one line."""

from __future__ import annotations

import shutil
from pathlib import Path

import apsw
import pytest

from quintet.cli import main
from tests.faults.processes import quintet, write_home

WRONG = ("NULL", "'noon'", "x'ff00'", "-76859855000000", "9000000000000000000", "1.5", "CAST(x'fffe' AS TEXT)")
LOOKS = (("events", "--json"), ("events",), ("threads", "list"), ("stats",), ("repair", "--dry-run"))
COLUMNS = {
    "events": ("kind", "at_ms", "root", "thread", "turn", "sum", "body"),
    "items": ("id", "turn", "at_ms", "origin", "sum", "body"),
    "turns": ("id", "thread", "state", "started_seq", "finished_ms", "body"),
    "threads": ("id", "root", "updated_ms", "owner", "body"),
    "counter": ("next", "boot_id", "pruned_through", "store_id"),
    "projects": ("id", "root", "name"),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = write_home(tmp_path_factory.mktemp("columns") / "home")
    for word in ("alpha", "beta"):
        assert quintet("run", f"echo {word}", home=home).code == 0
    return home


def spoil(home: Path, table: str, column: str, value: str) -> None:
    """The schema's own rules stand aside, as they do for a flipped bit."""
    connection = apsw.Connection(str(home / "quintet.db"))
    try:
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_schema SET sql = replace(sql, ' NOT NULL', '') WHERE type = 'table'")
        connection.execute("PRAGMA writable_schema = RESET")
        connection.execute(f"UPDATE {table} SET {column} = {value} WHERE rowid IN (SELECT max(rowid) FROM {table})")
    finally:
        connection.close()


@pytest.mark.req("reliability:R3")
@pytest.mark.parametrize(("table", "column"), [(t, c) for t, columns in COLUMNS.items() for c in columns])
def test_a_value_of_another_type_is_shown_as_damaged_or_refused_in_one_line(
    whole: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], table: str, column: str
) -> None:
    for number, value in enumerate(WRONG):
        home = tmp_path / f"home{number}"
        shutil.copytree(whole, home)
        spoil(home, table, column, value)
        for words in LOOKS:
            code = main([*words, "--home", str(home)])
            said = capfd.readouterr().err
            case = f"{table}.{column} = {value}: {words}: exit {code}\n{said}"
            assert code in (0, 6), case
            assert "Traceback" not in said, case
            assert not code or len(said.strip().splitlines()) == 1, case
