"""A route is one row next to its handler; a table is all routes of a face. Knows no route by name.

Dispatch, OpenAPI, the docs' tables, `quintet methods` and the sweeps over all routes read the rows; there is no second
list. Who may call and whether a body is taken have no default: a route that does not say so cannot be written.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator
from typing import Any, Literal, TypeVar

from msgspec import Struct

PUBLIC = "public"  # needs no credential and may tell nothing of anybody's work
HOLDER = "holder"  # somebody who has the server's credential
WHO = (PUBLIC, HOLDER)
USUAL = 200
Verb = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
# never; always Server-Sent Events; or only where the client's Accept asks for them.
Streams = Literal["never", "always", "asked"]
Handler = Callable[..., Awaitable[Any]]  # (call, params, body)
Scope = Callable[[Any, Any], Hashable | None]
H = TypeVar("H", bound=Callable[..., Awaitable[Any]])
_PART = re.compile(r"\{([a-zA-Z_]+)\}|[a-z0-9._-]+")


class NoParams(Struct, frozen=True):
    """For routes that read nothing from path and query; what a client sends besides is ignored."""


class Route(Struct, frozen=True, kw_only=True):
    verb: Verb
    path: str  # /threads/{tid}
    handler: Handler
    summary: str
    who: str  # PUBLIC or HOLDER
    body: Any  # a type msgspec can decode from JSON, or None: no body is taken
    result: Any  # what is answered as JSON; of a stream, one of its envelopes
    params: Any = NoParams  # a Struct, its fields named as in path and query
    streams: Streams = "never"
    scope: Scope | None = None  # (params, body) -> what it must wait behind, or None
    keyed: bool = False  # honours Idempotency-Key: `call.key` and `call.digest`
    optional_body: bool = False  # none at all is as good as {}
    statuses: tuple[int, ...] = (USUAL,)  # with which it answers where nothing is wrong
    since: str = ""  # the protocol's version that brought it
    family: str = ""

    @property
    def name(self) -> str:
        return f"{self.verb} {self.path}"

    @property
    def in_path(self) -> tuple[str, ...]:
        """The names of the path's own parameters."""
        return tuple(re.findall(r"\{([a-zA-Z_]+)\}", self.path))


class Routes:
    """Collects the rows of one file: `@THREADS.get("/threads/{tid}", ...)` above each handler."""

    def __init__(self, family: str, *, who: str = "", since: str = "") -> None:
        self.family = family
        self.rows: list[Route] = []
        self._who, self._since = who, since

    def route(self, verb: Verb, path: str, *, summary: str, body: Any = None, **more: Any) -> Callable[[H], H]:
        def add(handler: H) -> H:
            given = {"who": self._who, "since": self._since, "result": None, **more}
            self.rows.append(
                Route(verb=verb, path=path, handler=handler, summary=summary, body=body, family=self.family, **given)
            )
            return handler

        return add

    def get(self, path: str, **more: Any) -> Callable[[H], H]:
        return self.route("GET", path, **more)

    def post(self, path: str, **more: Any) -> Callable[[H], H]:
        return self.route("POST", path, **more)

    def put(self, path: str, **more: Any) -> Callable[[H], H]:
        return self.route("PUT", path, **more)

    def patch(self, path: str, **more: Any) -> Callable[[H], H]:
        return self.route("PATCH", path, **more)

    def delete(self, path: str, **more: Any) -> Callable[[H], H]:
        return self.route("DELETE", path, **more)


class RouteTable:
    """Every route of a face. Two rows of one verb and path are refused, as is one that is not classified.

    A literal part goes before a parameter: /files/content is never taken for /files/{name}.
    """

    def __init__(self, *families: Routes | Iterable[Route]) -> None:
        self._rows: dict[str, Route] = {}
        self._plain: dict[str, dict[str, Route]] = {}  # path -> verb -> route, for paths without parameters
        self._shaped: dict[int, list[tuple[tuple[str, ...], dict[str, Route]]]] = {}  # by number of parts
        for family in families:
            for row in family.rows if isinstance(family, Routes) else family:
                self._add(row)
        for shapes in self._shaped.values():
            shapes.sort(key=lambda shape: [part.startswith("{") for part in shape[0]])

    def _add(self, row: Route) -> None:
        parts = tuple(row.path.split("/")[1:])
        if not row.path.startswith("/") or not all(_PART.fullmatch(part) for part in parts):
            raise ValueError(f"{row.name}: not a path")
        if not row.summary or "\n" in row.summary:
            raise ValueError(f"{row.name}: a route needs a summary of one line")
        if row.who not in WHO:
            raise ValueError(f"{row.name}: a route must say who may call it: one of {', '.join(WHO)}")
        if row.verb in ("GET", "DELETE") and row.body is not None:
            raise ValueError(f"{row.name}: a {row.verb} takes no body")
        if missing := set(row.in_path) - set(row.params.__struct_fields__):
            raise ValueError(f"{row.name}: its params do not name {', '.join(sorted(missing))}")
        if row.name in self._rows:
            raise ValueError(f"{row.name} is defined twice")
        self._rows[row.name] = row
        self._verbs(parts, row.path)[row.verb] = row

    def _verbs(self, parts: tuple[str, ...], path: str) -> dict[str, Route]:
        if "{" not in path:
            return self._plain.setdefault(path, {})
        shapes = self._shaped.setdefault(len(parts), [])
        for known, verbs in shapes:
            if known == parts:
                return verbs
        shapes.append((parts, verbs := {}))
        return verbs

    def find(self, path: str) -> tuple[dict[str, Route], dict[str, str]] | None:
        """What the path offers, by verb, and the path's own parameters; None where there is nothing."""
        if (plain := self._plain.get(path)) is not None:
            return plain, {}
        parts = path.split("/")[1:]
        for shape, verbs in self._shaped.get(len(parts), ()):
            values: dict[str, str] = {}
            for wanted, part in zip(shape, parts, strict=True):
                if wanted.startswith("{") and part:
                    values[wanted[1:-1]] = part
                elif wanted != part:
                    break
            else:
                return verbs, values
        return None

    def __iter__(self) -> Iterator[Route]:
        return iter(self._rows.values())

    def __len__(self) -> int:
        return len(self._rows)
