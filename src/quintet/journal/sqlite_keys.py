"""Ids and the integer keys that stand for them inside SQLite's rows, remembered per connection."""

from __future__ import annotations

from typing import Any

import apsw

from quintet.domain.errors import NotFound
from quintet.domain.event import KIND_BY_NAME
from quintet.journal import columns
from quintet.journal.statements import SQL

_MOST = 20_000  # remembered per table; then it starts anew


class Keys:
    def __init__(self, connection: apsw.Connection) -> None:
        self._run = connection.execute
        self.kinds: dict[str, int] = {}  # what is known so far, for whoever asks for many
        self._kind_names: dict[int, str] = {}
        self.threads: dict[str, int] = {}
        self._thread_ids: dict[int, str] = {}
        self.turns: dict[str, int] = {}
        self._turn_ids: dict[int, str] = {}

    def forget(self) -> None:
        """After a rollback: a key learnt from a row that never came to be would be wrong."""
        for known in (self.kinds, self.threads, self.turns):
            known.clear()
        for named in (self._kind_names, self._thread_ids, self._turn_ids):
            named.clear()

    def _ask(self, name: str, key: Any) -> Any:
        for row in self._run(SQL[name], (key,)):
            return row[0]
        return None

    def kind_code(self, name: str) -> int:
        """A kind that was never written before gets its code now."""
        code = self.kinds.get(name)
        if code is None:
            self._learn_kinds()
            code = self.kinds.get(name)
        if code is None:
            for row in self._run(SQL["insert_kind"], (name, KIND_BY_NAME[name].durability.value)):
                code = self.kinds[name] = int(row[0])
        assert code is not None
        return code

    def kind_name(self, code: int) -> str:
        name = self._kind_names.get(code)
        if name is None:
            self._learn_kinds()
            name = self._kind_names.get(code, "")
        return name

    def _learn_kinds(self) -> None:
        for code, name in self._run(SQL["kinds"]):
            self.kinds[name] = code
            self._kind_names[code] = name

    def thread_key(self, thread: str) -> int | None:
        return self._key(self.threads, "thread", thread)

    def turn_key(self, turn: str) -> int | None:
        return self._key(self.turns, "turn", turn)

    def _key(self, known: dict[str, int], noun: str, name: str) -> int | None:
        key = known.get(name)
        if key is None and name:
            key = self._ask(f"{noun}_key", name)
            if key is None:
                raise NotFound(f"There is no {noun} {name}.", **{noun: name})
            if len(known) >= _MOST:
                known.clear()
            known[name] = key
        return key

    def thread_id(self, key: int | None) -> str:
        return self._id(self._thread_ids, "thread_id", key)

    def turn_id(self, key: int | None) -> str:
        return self._id(self._turn_ids, "turn_id", key)

    def _id(self, known: dict[int, str], asking: str, key: int | None) -> str:
        if key is None:
            return ""
        name = known.get(key)
        if name is None:
            if len(known) >= _MOST:
                known.clear()
            name = known[key] = columns.text(self._ask(asking, key))
        return name
