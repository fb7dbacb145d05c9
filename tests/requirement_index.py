"""Which test shows which requirement: read from the manifests in tests/requirements and the marks in the tests.

`python -m tests.requirement_index` prints the table kept in docs/requirements.md.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from pathlib import Path

TESTS = Path(__file__).parent
PAGES = ("first_minutes", "mechanisms", "models", "reliability", "security", "wire")


class Requirement:
    def __init__(self, identity: str, behaviour: str, deferred: str) -> None:
        self.identity = identity
        self.behaviour = behaviour
        self.deferred = deferred


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
    tests = carried()
    lines = ["# Requirements and their tests", "", "Written by `make docs`; a test fails when it is out of date.", ""]
    for page in PAGES:
        lines += [f"## {page}", "", "| id | behaviour | shown by |", "|---|---|---|"]
        for identity, requirement in requirements().items():
            if identity.startswith(f"{page}:"):
                shown = "<br>".join(f"`{t}`" for t in tests.get(identity, [])) or f"deferred: {requirement.deferred}"
                lines.append(f"| {identity.partition(':')[2]} | {requirement.behaviour} | {shown} |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(table())
