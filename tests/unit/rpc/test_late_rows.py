"""Rows that are imported with the first call of one of them."""

from __future__ import annotations

from typing import Any

from quintet.rpc.rows import Family, LateTable


def family(*names: str) -> Family:
    made = Family(names[0])

    async def handler(call: Any, params: Any) -> None: ...

    for name in names:
        made.method(name, summary="Something.")(handler)
    return made


def test_a_family_is_loaded_by_the_beginning_of_a_name_and_once() -> None:
    loaded: list[str] = []
    shared = family("c/one", "d/two")

    def loading(name: str, made: Family) -> Any:
        def load() -> list[Family]:
            loaded.append(name)
            return [made]

        return load

    table = LateTable(
        family("a"), late={"b": loading("b", family("b/x")), "c": loading("c", shared), "d": loading("d", shared)}
    )
    assert table.get("a") is not None
    assert table.get("e/nothing") is None
    assert loaded == []
    assert table.get("b/y") is None
    assert table.get("b/x") is not None
    assert "b/x" in table
    assert loaded == ["b"]
    assert [row.name for row in table] == ["a", "b/x", "c/one", "d/two"]
    assert len(table) == 4
    assert loaded == ["b", "c", "d"]
