"""OpenAPI 3.1 from the rows of a face: what is written is what is served. Knows no route by name."""

from __future__ import annotations

from typing import Any

import msgspec

from quintet.rpc.http.routes import PUBLIC, USUAL, Route, RouteTable

VERSION = "3.1.0"
_REF = "#/components/schemas/{name}"
_SECURITY = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "basic": {"type": "http", "scheme": "basic"},
}


def document(table: RouteTable, *, title: str, version: str, error: Any) -> dict[str, Any]:
    """`error` is the type of every answer that is not a success."""
    types = [error]
    for route in table:
        types += [t for t in (route.body, route.result) if t is not None]
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF)
    known = dict(zip(map(repr, types), schemas, strict=True))
    for route in table:
        if route.body is not None:
            _leave_out_defaults(known[repr(route.body)], components)
    _open_objects([*schemas, components])
    paths: dict[str, Any] = {}
    for route in table:
        paths.setdefault(route.path, {})[route.verb.lower()] = _operation(route, known, known[repr(error)])
    return {
        "openapi": VERSION,
        "info": {"title": title, "version": version},
        "security": [{name: []} for name in _SECURITY],
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": _SECURITY},
    }


def _leave_out_defaults(body: dict[str, Any], components: dict[str, Any]) -> None:
    """Generators take a field with a default for one that is always there, and so demand it of whoever sends it."""
    shape = components[body["$ref"].rpartition("/")[2]] if "$ref" in body else body
    for field in shape.get("properties", {}).values():
        field.pop("default", None)


def _open_objects(schema: Any) -> None:
    """An object without named fields may have any, which generators believe only where it is said."""
    for inner in schema.values() if isinstance(schema, dict) else schema:
        if isinstance(inner, dict | list):
            _open_objects(inner)
    if isinstance(schema, dict) and schema.get("type") == "object" and "properties" not in schema:
        schema.setdefault("additionalProperties", {})


def _operation(route: Route, known: dict[str, Any], error: Any) -> dict[str, Any]:
    # Described apart from what is sent and answered: a route's params are no object of the interface.
    [_], own = msgspec.json.schema_components([route.params], ref_template=_REF)
    params = own[route.params.__name__]
    properties: dict[str, Any] = params.get("properties", {})
    required = set(params.get("required", ()))
    said: dict[str, Any] = {
        "operationId": _operation_id(route),
        "summary": route.summary,
        "tags": [route.family],
        "parameters": [
            {
                "name": name,
                "in": "path" if name in route.in_path else "query",
                "required": name in route.in_path or name in required,
                "schema": schema,
            }
            for name, schema in properties.items()
        ],
        "responses": {
            **{str(s): {"description": "done", "content": _content(route, known, s)} for s in route.statuses},
            "default": {"description": "refused or failed", "content": {"application/json": {"schema": error}}},
        },
    }
    if route.keyed:
        said["parameters"].append(
            {
                "name": "Idempotency-Key",
                "in": "header",
                "required": False,
                "schema": {"type": "string", "maxLength": 255},
            }
        )
    if route.body is not None:
        said["requestBody"] = {
            "required": not route.optional_body,
            "content": {"application/json": {"schema": known[repr(route.body)]}},
        }
    if route.who == PUBLIC:
        said["security"] = []
    return said


def _content(route: Route, known: dict[str, Any], status: int) -> dict[str, Any]:
    schema = known[repr(route.result)] if route.result is not None else {}
    if status != USUAL:
        return {"application/json": {"schema": schema}}  # only what is answered as usual is streamed
    kinds = {"never": ["application/json"], "always": ["text/event-stream"]}
    asked = ["application/json", "text/event-stream"]
    return {kind: {"schema": schema} for kind in kinds.get(route.streams, asked)}


def _operation_id(route: Route) -> str:
    words = [part.strip("{}") for part in route.path.split("/") if part]
    return "_".join([route.verb.lower(), *words])
