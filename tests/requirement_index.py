"""Which test shows which requirement: read from the manifests in tests/requirements and the marks in the tests.

`python -m tests.requirement_index` writes docs/requirements.md and the tables in docs/reliability.md and
docs/security.md anew.
"""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache, partial
from pathlib import Path

TESTS = Path(__file__).parent
PAGES = ("first_minutes", "knp", "kward", "mechanisms", "models", "reliability", "security", "wire")


class Requirement:
    def __init__(self, identity: str, behaviour: str, deferred: str) -> None:
        self.identity = identity
        self.behaviour = behaviour
        self.deferred = deferred


@cache
def requirements() -> dict[str, Requirement]:
    found: dict[str, Requirement] = {}
    for page in PAGES:
        document = tomllib.loads((TESTS / "requirements" / f"{page}.toml").read_text())
        for key, table in document.items():
            if "behaviour" in table:
                entries = {key: table["behaviour"]}
            else:
                entries = {name: text for name, text in table.items() if name not in ("title", "deferred")}
            for name, behaviour in entries.items():
                identity = f"{page}:{name}"
                deferred = (
                    table.get("deferred", "") if "behaviour" in table else table.get("deferred", {}).get(name, "")
                )
                found[identity] = Requirement(identity, behaviour, deferred)
    return found


@cache
def carried() -> dict[str, list[str]]:
    """Requirement id -> tests that carry it, by the `req` marks on functions, classes and modules."""
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        tree = ast.parse(path.read_text())
        where = path.relative_to(TESTS.parent).as_posix()
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                for identity in _marks(node.decorator_list):
                    found.setdefault(identity, []).append(f"{where}::{node.name}")
    return found


def _marks(decorators: list[ast.expr]) -> list[str]:
    return [
        argument.value
        for decorator in decorators
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith("mark.req")
        for argument in decorator.args
        if isinstance(argument, ast.Constant)
    ]


def table() -> str:
    lines = ["# Requirements and their tests", "", "Written by `make docs`; a test fails when it is out of date.", ""]
    for page in PAGES:
        lines += [f"## {page}", "", "| id | behaviour | shown by |", "|---|---|---|"]
        for requirement in of_page(page):
            shown = _tests(requirement) or f"deferred: {requirement.deferred}"
            lines.append(f"| {_id(requirement)} | {requirement.behaviour} | {shown} |")
        lines.append("")
    return "\n".join(lines)


def of_page(page: str) -> list[Requirement]:
    return [r for identity, r in requirements().items() if identity.startswith(f"{page}:")]


def _id(requirement: Requirement) -> str:
    return requirement.identity.partition(":")[2]


def _tests(requirement: Requirement) -> str:
    return "<br>".join(f"`{test}`" for test in carried().get(requirement.identity, []))


# --- parts of pages for people ----------------------------------------------------------------------------------------
def shown(page: str) -> str:
    lines = ["| id | promise | shown by |", "|---|---|---|"]
    for one in _by_number(page):
        if not one.deferred:
            lines.append(f"| {_id(one)} | {one.behaviour} | {_tests(one)} |")
    return "\n".join(lines)


def not_shown(page: str) -> str:
    lines = ["| id | promise | why not |", "|---|---|---|"]
    lines += [f"| {_id(one)} | {one.behaviour} | {one.deferred} |" for one in _by_number(page) if one.deferred]
    return "\n".join(lines)


def _by_number(page: str) -> list[Requirement]:
    def place(one: Requirement) -> tuple[int, str]:
        number = re.search(r"\d+", _id(one))
        return (int(number[0]) if number else 0, _id(one))

    return sorted(of_page(page), key=place)


PARTS = {
    "reliability_shown": partial(shown, "reliability"),
    "reliability_not_shown": partial(not_shown, "reliability"),
    "security_shown": partial(shown, "security"),
    "security_not_shown": partial(not_shown, "security"),
}


def main() -> None:
    from quintet.cli.docs import renewed

    docs = TESTS.parent / "docs"
    (docs / "requirements.md").write_text(table())
    for name in ("reliability.md", "security.md"):
        (docs / name).write_text(renewed((docs / name).read_text(), PARTS))


if __name__ == "__main__":
    main()
