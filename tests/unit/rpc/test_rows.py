from typing import Any

import msgspec
import pytest

from quintet.rpc.rows import Family, LateTable, NoParams, Row, Table


class Params(msgspec.Struct):
    sessionId: str


async def handler(call: Any, params: Any) -> None: ...


def test_a_row_says_everything_about_its_method_in_one_place() -> None:
    family = Family("turns", form="either", who=["owner"])
    family.method("turns/start", summary="Start.", params=Params, result=dict, scope=lambda p: p.sessionId)(handler)
    (row,) = Table(family)
    assert isinstance(row, Row)
    assert (row.name, row.family, row.params, row.result) == ("turns/start", "turns", Params, dict)
    assert (row.summary, row.who, row.form, row.urgent) == ("Start.", {"owner"}, "either", False)
    assert row.handler is handler
    assert row.scope is not None
    assert row.scope(Params("s1")) == "s1"


def test_a_row_may_differ_from_its_family() -> None:
    family = Family("x", who=["owner"])
    family.method("open", summary="For all.", who=(), form="notification")(handler)
    (row,) = Table(family)
    assert (row.who, row.form, row.params) == (frozenset(), "notification", NoParams)


def test_a_table_lists_its_rows_in_the_order_given_and_finds_them_by_name() -> None:
    first, second = Family("one"), Family("two")
    first.method("b", summary="B.")(handler)
    first.method("a", summary="A.")(handler)
    second.method("c", summary="C.")(handler)
    table = Table(first, second)
    assert [row.name for row in table] == ["b", "a", "c"]
    assert len(table) == 3
    assert "a" in table
    assert table.get("nope") is None


def test_two_rows_of_one_name_are_refused_and_both_places_named() -> None:
    first, second = Family("one"), Family("two")
    first.method("same", summary="A.")(handler)
    second.method("same", summary="B.")(handler)
    with pytest.raises(ValueError, match="same is defined twice: in one and in two"):
        Table(first, second)


@pytest.mark.parametrize(("name", "summary"), [("", "A."), ("m", ""), ("m", "two\nlines")])
def test_a_row_without_name_or_one_line_summary_is_refused(name: str, summary: str) -> None:
    family = Family("x")
    family.method(name, summary=summary)(handler)
    with pytest.raises(ValueError):
        Table(family)


def test_rows_that_are_imported_late_come_in_the_order_given_whichever_was_called_first() -> None:
    def made(*names: str) -> Family:
        family = Family(names[0])
        for name in names:
            family.method(name, summary="Something.")(handler)
        return family

    orders = []
    for first in ("a/three", "b/x", "own"):
        shared, alone = made("c/one", "a/three", "c/two"), made("b/x")
        table = LateTable(
            made("own"), late={"b": lambda f=alone: [f], "c": lambda f=shared: [f], "a": lambda f=shared: [f]}
        )
        assert table.get(first) is not None
        orders.append([row.name for row in table])
    assert orders == [["own", "b/x", "c/one", "c/two", "a/three"]] * 3
