"""Rows of HTTP: found by path and verb, refused where they do not say who may call them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from quintet.rpc.http.routes import HOLDER, PUBLIC, NoParams, Routes, RouteTable


class One(msgspec.Struct):
    name: str


async def handler(call: Any, params: Any, body: Any) -> None: ...


def rows(*paths: str, verb: str = "GET", **more: Any) -> Routes:
    routes = Routes("x", who=HOLDER)
    for path in paths:
        given = {"params": One if "{" in path else NoParams, **more}
        routes.route(verb, path, summary="x", **given)(handler)  # type: ignore[arg-type]
    return routes


def test_a_literal_part_goes_before_a_parameter_whatever_was_written_first() -> None:
    table = RouteTable(rows("/files/{name}", "/files/content", "/files"))
    found = table.find("/files/content")
    assert found is not None
    assert found[0]["GET"].path == "/files/content"
    named = table.find("/files/other")
    assert named is not None
    assert (named[0]["GET"].path, named[1]) == ("/files/{name}", {"name": "other"})


@pytest.mark.parametrize("path", ["/", "", "/file", "/files/", "/files/a/b", "//files", "/files//"])
def test_what_is_not_written_is_not_found(path: str) -> None:
    assert RouteTable(rows("/files/{name}", "/files")).find(path) is None


def test_two_rows_of_one_verb_and_path_are_refused() -> None:
    with pytest.raises(ValueError, match="twice"):
        RouteTable(rows("/a", "/a"))


@pytest.mark.req("security:S3")
def test_a_row_that_does_not_say_who_may_call_it_is_refused() -> None:
    unclassified = Routes("x")
    unclassified.get("/a", summary="x")(handler)
    with pytest.raises(ValueError, match="who may call"):
        RouteTable(unclassified)


def test_rows_that_cannot_work_are_refused() -> None:
    for wrong, why in (
        (rows("/a", body=One), "no body"),
        (rows("a"), "not a path"),
        (rows("/a/{Name-}"), "not a path"),
        (rows("/a/{other}"), "do not name other"),
    ):
        with pytest.raises(ValueError, match=why):
            RouteTable(wrong)


def test_a_row_knows_its_own_parameters() -> None:
    routes = Routes("x", who=PUBLIC)
    routes.post("/a/{name}", summary="x", params=One, body=One)(handler)
    [row] = RouteTable(routes)
    assert (row.name, row.in_path, row.who) == ("POST /a/{name}", ("name",), PUBLIC)
