"""SQL by name: statements live in .sql files, each under a line `-- name: …`. Knows nothing of what they mean."""

from __future__ import annotations

import os

import apsw

_FOLDER = os.path.join(os.path.dirname(__file__), "sql")


def text(name: str) -> str:
    """The whole of one .sql file."""
    with open(os.path.join(_FOLDER, f"{name}.sql"), encoding="utf-8") as file:
        return file.read()


def named(source: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in ("\n" + source).split("\n-- name: ")[1:]:
        name, _, sql = part.partition("\n")
        if name.strip() in found:
            raise ValueError(f"two statements are named {name.strip()}")
        found[name.strip()] = sql.strip()
    return found


SQL = named(text("queries"))


def number(connection: apsw.Connection, sql: str) -> int:
    """The one number a statement answers with."""
    for row in connection.execute(sql):
        if not isinstance(row[0], int | None):
            raise apsw.CorruptError(f"not a number: {row[0]!r:.40}")
        return row[0] or 0
    return 0
