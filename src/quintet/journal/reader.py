"""Reader threads: look-ups on connections of their own, beside the event loop and the writer."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any

import apsw

from quintet.journal.faults import as_storage_error
from quintet.journal.sqlite_rows import SqliteRows

Asked = tuple[Callable[[SqliteRows], Any], "asyncio.Future[Any]"]


class Reader(threading.Thread):
    def __init__(
        self,
        connect: Callable[[], apsw.Connection],
        waiting: queue.SimpleQueue[Asked | None],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        super().__init__(name="quintet-journal-reader", daemon=True)
        self._connect = connect
        self._waiting = waiting
        self._loop = loop

    def run(self) -> None:
        connection: apsw.Connection | None = None
        rows: SqliteRows | None = None
        while (asked := self._waiting.get()) is not None:
            work, future = asked
            result, error = None, None
            try:
                if rows is None:
                    connection = self._connect()
                    rows = SqliteRows(connection)
                result = self._look(connection, rows, work)
            except Exception as failure:
                error = as_storage_error(failure)
            self._answer(future, result, error)
        if connection is not None:
            connection.close()

    @staticmethod
    def _look(connection: apsw.Connection | None, rows: SqliteRows, work: Callable[[SqliteRows], Any]) -> Any:
        """One read transaction around it, so that all its statements see one picture."""
        assert connection is not None
        connection.execute("BEGIN")
        try:
            return work(rows)
        finally:
            connection.execute("COMMIT")

    def _answer(self, future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
        try:
            self._loop.call_soon_threadsafe(settle_future, future, result, error)
        except RuntimeError:
            return  # the loop is gone


def settle_future(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    """The caller may have been cancelled meanwhile."""
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
