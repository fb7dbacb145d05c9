"""What Quintet stands on: read from the lock files and from the packages that are installed.

`python -m tests.dependencies` writes docs/dependencies.md (between its markers) and sbom.json anew.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "dependencies.md"
BILL = ROOT / "sbom.json"

# Why each thing a person has to install is there. One that is not in here may not be in pyproject.toml.
WHY = {
    "apsw": "the journal; brings an SQLite without the bug that loses rows when several processes write",
    "cryptography": "seals stored keys",
    "fastjsonschema": "holds a model's answer to the form that was asked for",
    "h11": "HTTP as bytes, for the proxy of the sandbox and for web_fetch",
    "httptools": "reads requests to the server, at the speed of a parser in C",
    "httpx2": "model providers over HTTP",
    "msgspec": "every event and item, to JSON and back",
    "pathspec": "the rules of .gitignore",
    "prompt-toolkit": "the line one types into in `quintet chat`",
    "tree-sitter": "reads shell commands as a shell would",
    "tree-sitter-bash": "the grammar for it",
    "uvicorn": "the server's HTTP",
}
# What the metadata says in other words than SPDX has.
_SPDX = {
    "MIT License": "MIT",
    "BSD 2-Clause License": "BSD-2-Clause",
    "Apache 2.0": "Apache-2.0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}
_NOT_SPDX = {"any-OSI"}  # whichever OSI-approved licence one likes


class Locked(NamedTuple):
    """One entry of a lock file."""

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]
    wanted_by: tuple[str, ...]


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def read_lock(path: Path) -> list[Locked]:
    found: list[Locked] = []
    for block in re.split(r"\n(?=\S)", path.read_text().strip()):
        head, *rest = block.splitlines()
        match = re.fullmatch(r"([\w.-]+)==([^\s;]+)(?: ; (.+?))? ?\\?", head)
        assert match, f"{path.name}: {head!r} is no pinned version"
        words = [line.strip().removesuffix("\\").strip() for line in rest]
        hashes = tuple(w.removeprefix("--hash=") for w in words if w.startswith("--hash="))
        above = [w.lstrip("# ").removeprefix("via").strip() for w in words if w.startswith("#")]
        found.append(Locked(canonical(match[1]), match[2], match[3] or "", hashes, tuple(filter(None, above))))
    return found


def direct() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return {canonical(re.split(r"[\s<>=!~;\[]", words)[0]) for words in project["dependencies"]}


def installed(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def licence(name: str) -> str:
    """As SPDX, as far as the package says it; empty where it is not installed."""
    found = installed(name)
    if found is None:
        return ""
    classifiers = [c.rpartition(" :: ")[2] for c in found.metadata.get_all("Classifier", []) if c.startswith("License")]
    said = found.metadata.get("License-Expression") or found.metadata.get("License") or (classifiers or [""])[-1]
    said = said if len(said.splitlines()) == 1 else classifiers[-1]
    return _SPDX.get(said, said)


def size_mib(name: str) -> str:
    """Of the installed files, in two significant digits: it differs a little from platform to platform."""
    found = installed(name)
    if found is None:
        return ""
    mib = sum(file.size or 0 for file in found.files or []) / 2**20
    return f"{mib:.0f} MiB" if mib >= 10 else f"{mib:.1f} MiB"


# --- the page ---------------------------------------------------------------------------------------------------------
def run_table() -> str:
    lines = ["| package | version | licence | installed | why |", "|---|---|---|---|---|"]
    wanted = direct()
    for one in read_lock(ROOT / "requirements" / "run.lock"):
        why = WHY[one.name] if one.name in wanted else f"for {', '.join(one.wanted_by)}"
        where = "" if installed(one.name) else " (not on this platform)"
        size = size_mib(one.name) or "–"
        lines.append(f"| {one.name} | {one.version} | {licence(one.name) or '–'} | {size} | {why}{where} |")
    return "\n".join(lines)


def dev_table() -> str:
    shipped = {one.name for one in read_lock(ROOT / "requirements" / "run.lock")}
    lines = ["| package | version | licence |", "|---|---|---|"]
    for one in read_lock(ROOT / "requirements" / "dev.lock"):
        if one.name not in shipped:
            lines.append(f"| {one.name} | {one.version} | {licence(one.name) or '–'} |")
    return "\n".join(lines)


PARTS = {"dependencies": run_table, "workshop": dev_table}


# --- the bill of materials --------------------------------------------------------------------------------------------
def bill() -> dict[str, Any]:
    """CycloneDX 1.6. No time and no serial number: the same lock gives the same file."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    locked = read_lock(ROOT / "requirements" / "run.lock")
    top = {"type": "application", "bom-ref": "quintet", "name": "quintet", "version": project["version"]}
    needs = {"quintet": sorted(direct())} | {
        one.name: sorted(other.name for other in locked if one.name in other.wanted_by) for one in locked
    }
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**top, "licenses": [{"license": {"id": project["license"]}}]}},
        "components": [_component(one) for one in locked],
        "dependencies": [
            {"ref": _ref(name, locked), "dependsOn": [_ref(n, locked) for n in on]} for name, on in needs.items()
        ],
    }


def _ref(name: str, locked: list[Locked]) -> str:
    return next((f"pkg:pypi/{one.name}@{one.version}" for one in locked if one.name == name), name)


def _component(one: Locked) -> dict[str, Any]:
    purl = f"pkg:pypi/{one.name}@{one.version}"
    # A version is published as several files; the lock has the digest of each.
    digests = [{"alg": "SHA-256", "content": digest.removeprefix("sha256:")} for digest in one.hashes]
    made: dict[str, Any] = {
        "type": "library",
        "bom-ref": purl,
        "name": one.name,
        "version": one.version,
        "purl": purl,
        "externalReferences": [{"type": "distribution", "url": purl, "hashes": digests}],
    }
    if said := licence(one.name):
        made["licenses"] = [_licence(said)]
    if one.marker:
        made["properties"] = [{"name": "quintet:marker", "value": one.marker}]
    return made


def _licence(said: str) -> dict[str, Any]:
    if " OR " in said or " AND " in said:
        return {"expression": said}
    return {"license": {"name" if said in _NOT_SPDX else "id": said}}


def main() -> None:
    from quintet.cli.docs import renewed

    PAGE.write_text(renewed(PAGE.read_text(), PARTS))
    BILL.write_text(json.dumps(bill(), indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
