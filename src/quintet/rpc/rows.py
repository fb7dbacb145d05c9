"""A method is one row next to its handler; a table is all rows of a protocol. Knows no method by name.

Dispatch, method tables in the docs, `quintet methods` and coverage tests all read the rows; there is no
second list.
"""

from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from msgspec import Struct

if TYPE_CHECKING:
    from quintet.rpc.call import Call

Handler = Callable[["Call[Any]", Any], Awaitable[Any]]
Scope = Callable[[Any], Hashable | None]
# How it may be called: with an id, without one, or both. A call in the other form is not run (a request is
# answered as unknown, a notification is dropped).
Form = Literal["request", "notification", "either"]
H = TypeVar("H", bound=Callable[..., Awaitable[Any]])


class NoParams(Struct, frozen=True):
    """For methods without params: absent, null and any object fit."""


class Row(Struct, frozen=True, kw_only=True):
    name: str
    params: Any  # a type msgspec can decode
    result: Any  # a type; None for notifications
    handler: Handler
    summary: str
    scope: Scope | None = None  # params -> what it must wait behind, or None
    who: frozenset[str] = frozenset()  # role words, opaque here; empty: everyone
    form: Form = "request"
    urgent: bool = False  # runs even when the connection has all the calls it may have: cancels, answers
    family: str = ""


class Family:
    """Collects the rows of one file: `@family.method("name", ...)` above each handler."""

    def __init__(self, name: str, *, form: Form = "request", who: Iterable[str] = ()) -> None:
        self.name = name
        self.rows: list[Row] = []
        self._form: Form = form
        self._who = frozenset(who)

    def method(
        self,
        name: str,
        *,
        summary: str,
        params: Any = NoParams,
        result: Any = None,
        scope: Scope | None = None,
        who: Iterable[str] | None = None,
        form: Form | None = None,
        urgent: bool = False,
    ) -> Callable[[H], H]:
        def add(handler: H) -> H:
            self.rows.append(
                Row(
                    name=name,
                    params=params,
                    result=result,
                    handler=handler,
                    summary=summary,
                    scope=scope,
                    who=self._who if who is None else frozenset(who),
                    form=form or self._form,
                    urgent=urgent,
                    family=self.name,
                )
            )
            return handler

        return add


class Table:
    """Every row of a protocol by wire name, in the order given. Two rows of one name are refused."""

    def __init__(self, *families: Family | Iterable[Row]) -> None:
        self._rows: dict[str, Row] = {}
        for family in families:
            for row in family.rows if isinstance(family, Family) else family:
                self._add(row)

    def _add(self, row: Row) -> None:
        if not row.name:
            raise ValueError("a row needs a wire name")
        if not row.summary or "\n" in row.summary:
            raise ValueError(f"{row.name}: a row needs a summary of one line")
        other = self._rows.get(row.name)
        if other is not None:
            raise ValueError(f"{row.name} is defined twice: in {other.family or '?'} and in {row.family or '?'}")
        self._rows[row.name] = row

    def get(self, name: str) -> Row | None:
        return self._rows.get(name)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows.values())

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, name: object) -> bool:
        return name in self._rows


class LateTable(Table):
    """Rows that are imported when one of them is first called: nobody waits at the start for what may never be asked.

    `late` says by the beginning of a wire name, up to its first slash, which families have it.
    """

    def __init__(self, *families: Family, late: Mapping[str, Callable[[], Iterable[Family]]]) -> None:
        super().__init__(*families)
        self._late = dict(late)
        self._order = tuple(late)
        self._loaded: dict[str, Family] = {}

    def get(self, name: str) -> Row | None:
        self._load(name.partition("/")[0])
        return super().get(name)

    def __iter__(self) -> Iterator[Row]:
        """In the order given, whichever was called first."""
        for beginning in list(self._late):
            self._load(beginning)
        late = {row.name for family in self._loaded.values() for row in family.rows}
        own = [row for row in super().__iter__() if row.name not in late]
        named = [row for family in self._loaded.values() for row in family.rows]
        return iter([*own, *sorted(named, key=lambda row: self._order.index(row.name.partition("/")[0]))])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    def _load(self, beginning: str) -> None:
        load = self._late.pop(beginning, None)
        for family in load() if load is not None else ():
            if family.name not in self._loaded:
                self._loaded[family.name] = family
                for row in family.rows:
                    self._add(row)
