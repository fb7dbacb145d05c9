"""Schema versions: a new file, an older one brought forward step by step after a backup, a newer one refused."""

from __future__ import annotations

import apsw
import msgspec

from quintet.domain.errors import StorageDamaged, VersionMismatch
from quintet.domain.ids import new_id
from quintet.journal.backup import back_up
from quintet.journal.commit import CEILING_STEP
from quintet.journal.home import Home
from quintet.journal.owners import Owner
from quintet.journal.statements import SQL, number, text

APPLICATION_ID = 0x51_4E_54_54  # "QNTT"


class Step(msgspec.Struct, frozen=True):
    version: int
    sql: str


class Schema(msgspec.Struct, frozen=True):
    """The version this Quintet writes, and how to come to it from each one before."""

    version: int
    steps: tuple[Step, ...]


CURRENT = Schema(
    4, (Step(2, text("step_2") + SQL["find_checkpoints"]), Step(3, text("step_3")), Step(4, text("step_4")))
)


def bring_up(
    connection: apsw.Connection, home: Home, schema: Schema, living: list[Owner], boot_id: str
) -> tuple[int, str]:
    """Make the file what this version needs. (version it came from if it was migrated, path of the backup)."""
    version = number(connection, "PRAGMA user_version")
    if version == 0 and not connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall():
        _create(connection, schema, boot_id)
        return 0, ""
    if number(connection, "PRAGMA application_id") != APPLICATION_ID:
        raise StorageDamaged(f"{home.database} is a database, but not Quintet's journal.", path=home.database)
    if version > schema.version:
        raise VersionMismatch(
            f"The journal was written by a newer Quintet (format {version}, this one knows {schema.version}).",
            found=version,
            known=schema.version,
        )
    if version == schema.version:
        return 0, ""
    if living:
        who = ", ".join(f"{o.protocol or 'quintet'} (pid {o.pid})" for o in living)
        raise VersionMismatch(
            f"The journal must be brought to a new format, but other processes use it: {who}.",
            next_step="End them, then start Quintet again.",
            owners=[o.id for o in living],
        )
    backup = back_up(connection, home, f"before-format-{schema.version}")
    _migrate(connection, schema, version)
    return version, backup


def _create(connection: apsw.Connection, schema: Schema, boot_id: str) -> None:
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(text("schema"))
    connection.execute(SQL["first_counter"], (1 + CEILING_STEP, boot_id, new_id("own")))
    for step in schema.steps:
        connection.execute(step.sql)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {schema.version}")
    connection.execute("COMMIT")


def _migrate(connection: apsw.Connection, schema: Schema, version: int) -> None:
    """All steps in one transaction: after a crash the file is wholly old or wholly new."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in schema.steps:
            if step.version > version:
                connection.execute(step.sql)
        connection.execute(f"PRAGMA user_version = {schema.version}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
