"""The interface as it is described: the same as the routes, and whatever fits the description is answered sanely."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from quintet.protocols.knp.errors import ErrorAnswer
from quintet.protocols.knp.server import TABLE
from quintet.rpc.http.openapi import document
from quintet.rpc.http.routes import PUBLIC
from quintet.serving.server import Wish
from tests.fakes.knp_server import Running, knp_server
from tests.faults.processes import write_home

DOCUMENT = document(TABLE, title="Popcorn KNP", version="0.1", error=ErrorAnswer)
# A stream has no end to wait for; its own tests are next door.
CALLED = sorted(route.name for route in TABLE if route.streams != "always")
EXAMPLES = 8


@pytest.fixture(scope="module")
def operations() -> dict[str, Any]:
    """By name. Imported here: it takes its time, and whoever collects tests should not wait for it."""
    import schemathesis

    schema = schemathesis.openapi.from_dict(DOCUMENT)
    return {found.ok().label: found.ok() for found in schema.get_all_operations()}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    place = tmp_path_factory.mktemp("openapi")
    home = write_home(place / "home", "scope: turn\ntext: hi\n")
    (place / "work").mkdir()
    (place / "work" / "a.txt").write_text("TODO\n")
    with knp_server(home, Wish(knp_port=0, roots=(str(place / "work"),))) as running:
        yield running


def test_the_description_has_every_route_and_no_other(operations: dict[str, Any]) -> None:
    described = {f"{verb.upper()} {path}" for path, verbs in DOCUMENT["paths"].items() for verb in verbs}
    assert described == {route.name for route in TABLE} == set(operations)


def test_what_is_described_is_what_is_served(server: Running) -> None:
    assert server.ask("GET", "/openapi.json").json == json.loads(msgspec.json.encode(DOCUMENT))


def test_the_description_says_what_needs_a_credential_and_what_takes_a_body() -> None:
    for route in TABLE:
        said: dict[str, Any] = DOCUMENT["paths"][route.path][route.verb.lower()]
        assert (said.get("security") == []) == (route.who == PUBLIC), route.name
        assert ("requestBody" in said) == (route.body is not None), route.name
        assert {p["name"] for p in said["parameters"] if p["in"] == "path"} == set(route.in_path), route.name
        assert ("text/event-stream" in said["responses"]["200"]["content"]) == (route.streams != "never"), route.name


def _schemas(part: Any) -> Iterator[dict[str, Any]]:
    if isinstance(part, dict):
        yield part
    for inner in part.values() if isinstance(part, dict) else part:
        if isinstance(inner, dict | list):
            yield from _schemas(inner)


def test_the_description_is_one_that_generators_of_clients_understand() -> None:
    components = DOCUMENT["components"]["schemas"]
    assert all(name.isidentifier() for name in components)  # no module's name, and no two objects of one name
    for schema in _schemas(DOCUMENT):
        if schema.get("type") == "array":
            assert "items" in schema, schema
        if schema.get("type") == "object":
            assert "properties" in schema or "additionalProperties" in schema, schema
    for route in TABLE:
        if route.body is not None:
            fields = components[route.body.__name__]["properties"]
            assert not [name for name, field in fields.items() if "default" in field], route.name


def test_what_a_run_is_begun_with_and_that_it_may_be_let_go_are_described() -> None:
    said = DOCUMENT["paths"]["/threads/{tid}/runs"]["post"]
    kinds = DOCUMENT["components"]["schemas"]["NewRun"]["properties"]["input"]["items"]["discriminator"]["mapping"]
    assert set(kinds) == {"text", "file", "data"}
    assert set(said["responses"]) == {"200", "202", "default"}
    assert set(said["responses"]["202"]["content"]) == {"application/json"}


@pytest.mark.req("reliability:R7")
@pytest.mark.parametrize("label", CALLED)
def test_whatever_fits_the_description_is_answered_without_a_failure_of_ours(
    server: Running, operations: dict[str, Any], label: str
) -> None:
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance

    tid = server.ask("POST", "/threads", {"title": "to be called"}).json["tid"]
    operation = operations[label]
    turn = iter(range(1_000_000))

    @seed(20)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def call(case: Any) -> None:
        if "tid" in (case.path_parameters or {}) and next(turn) % 2:
            case.path_parameters["tid"] = tid  # nobody makes the name of a real one up
        answer = case.call(base_url=server.server.url, headers={"Authorization": f"Bearer {server.token}"}, timeout=20)
        case.validate_response(
            answer, checks=[not_a_server_error, response_schema_conformance, content_type_conformance]
        )

    call()
