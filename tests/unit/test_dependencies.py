"""What Quintet stands on is pinned, listed with its licence, installs without running anything, and calls nobody."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.dependencies import BILL, PAGE, WHY, Locked, bill, direct, installed, licence, read_lock

ROOT = Path(__file__).parents[2]
LOCKS = sorted((ROOT / "requirements").glob("*.lock"))
RUN = read_lock(ROOT / "requirements" / "run.lock")
HERE = [one for one in RUN if installed(one.name)]
# Where a person's own choice leads: their model, their search. Nothing is sent there unasked.
HOSTS = {
    "api.openai.com",
    "api.anthropic.com",
    "openrouter.ai",
    "auth.openai.com",  # only after a person began a login there
    "chatgpt.com",  # where such a login's models are
    "api.deepseek.com",
    "api.moonshot.ai",
    "dashscope-intl.aliyuncs.com",
    "api.search.brave.com",
    "api.tavily.com",
    "api.exa.ai",
}
EXAMPLES = re.compile(r"(127\.0\.0\.1|localhost(\{.*)?|\[?::1\]?|.*\.example(\.\w+)?|example\.\w+|…|\.|\{.*)$")


@pytest.mark.req("security:S55")
@pytest.mark.parametrize("lock", LOCKS, ids=lambda p: p.name)
def test_every_dependency_is_pinned_by_version_and_digest(lock: Path) -> None:
    locked = read_lock(lock)
    assert len(locked) > 10
    assert not [one.name for one in locked if not one.hashes]
    assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", digest) for one in locked for digest in one.hashes)
    assert "--index-url" not in lock.read_text()
    assert "://" not in lock.read_text()


@pytest.mark.req("security:S55")
def test_the_workshop_has_the_very_versions_that_are_shipped() -> None:
    workshop = {one.name: one for one in read_lock(ROOT / "requirements" / "dev.lock")}
    assert not [one.name for one in RUN if workshop[one.name][:2] + workshop[one.name][3:4] != one[:2] + one[3:4]]


@pytest.mark.req("security:S55")
@pytest.mark.parametrize("one", HERE, ids=lambda one: one.name)
def test_what_is_installed_is_what_is_locked(one: Locked) -> None:
    found = installed(one.name)
    assert found is not None
    assert found.version == one.version


@pytest.mark.req("security:S55")
def test_every_dependency_a_person_has_to_install_has_its_reason() -> None:
    assert direct() == set(WHY)
    wanted = {word for one in RUN for word in one.wanted_by if not word.startswith("quintet ")}
    assert wanted <= {one.name for one in RUN}, "something is locked for what is not"


@pytest.mark.req("security:S55")
def test_nothing_is_run_while_packages_are_installed() -> None:
    """Wheels only: an sdist may run code of its own when it is built."""
    calls = [line for line in (ROOT / "Makefile").read_text().splitlines() if "--require-hashes" in line]
    assert calls
    assert all("--only-binary :all:" in line for line in calls)


@pytest.mark.req("security:S55")
@pytest.mark.parametrize("one", HERE, ids=lambda one: one.name)
def test_a_dependency_brings_nothing_that_runs_unasked(one: Locked) -> None:
    """A .pth file or a sitecustomize would run at every start of Python, whether Quintet imports the package or not."""
    found = installed(one.name)
    assert found is not None
    assert found.read_text("WHEEL"), "not from a wheel"
    names = [file.name for file in found.files or ()]
    assert names
    assert not [n for n in names if n.endswith(".pth") or n in ("sitecustomize.py", "usercustomize.py", "setup.py")]


# --- the lists --------------------------------------------------------------------------------------------------------
def rows(text: str) -> dict[str, tuple[str, str]]:
    """Package -> (version, licence) of the page; sizes are of one platform and not compared."""
    found = re.findall(r"^\| ([a-z0-9-]+) \| (\S+) \| ([^|]+) \|", text, re.MULTILINE)
    return {name: (version, said.strip()) for name, version, said in found if name != "package"}


@pytest.mark.req("security:S55")
def test_the_page_lists_every_package_with_version_and_licence() -> None:
    listed = rows(PAGE.read_text())
    locked = {one.name: one for lock in LOCKS for one in read_lock(lock)}
    assert set(listed) == set(locked), "run `make docs`"
    for name, (version, said) in listed.items():
        assert version == locked[name].version, f"{name}: run `make docs`"
        if installed(name):
            assert said == licence(name), f"{name}: run `make docs`"
            assert said not in ("", "UNKNOWN")


def without_licences(document: dict[str, Any]) -> dict[str, Any]:
    """What is not installed on a platform has no licence to read there."""
    return document | {"components": [{k: v for k, v in c.items() if k != "licenses"} for c in document["components"]]}


@pytest.mark.req("security:S55")
def test_the_bill_of_materials_is_that_of_the_lock() -> None:
    kept, now = json.loads(BILL.read_text()), bill()
    assert without_licences(kept) == without_licences(now), "run `make docs`"
    known = {c["name"]: c.get("licenses") for c in kept["components"]}
    assert all(known[c["name"]] == c["licenses"] for c in now["components"] if "licenses" in c), "run `make docs`"


@pytest.mark.req("security:S55")
def test_the_bill_of_materials_has_what_its_format_requires() -> None:
    document = json.loads(BILL.read_text())
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    assert isinstance(document["version"], int)
    assert "timestamp" not in BILL.read_text(), "the same lock must give the same file"
    components = [document["metadata"]["component"], *document["components"]]
    references = [c["bom-ref"] for c in components]
    assert len(set(references)) == len(references)
    for component in components:
        assert component["type"] in ("application", "library")
        assert component["name"]
        for said in component.get("licenses", []):
            assert ("expression" in said) != ("license" in said)
            assert "expression" in said or len(said["license"]) == 1
    for component in document["components"]:
        assert component["purl"] == f"pkg:pypi/{component['name']}@{component['version']}"
        for reference in component["externalReferences"]:
            assert reference["type"] == "distribution"
            assert all(h["alg"] == "SHA-256" and len(h["content"]) == 64 for h in reference["hashes"])
    edges = {d["ref"]: d["dependsOn"] for d in document["dependencies"]}
    assert set(edges) == set(references)
    assert {r for on in edges.values() for r in on} == set(references) - {"quintet"}, "a package nothing needs"


# --- no telemetry -----------------------------------------------------------------------------------------------------
@pytest.mark.req("security:S55")
def test_the_program_names_no_address_but_those_a_person_chooses() -> None:
    found: dict[str, set[str]] = {}
    for path in (ROOT / "src").rglob("*.py"):
        for host in re.findall(r"https?://([^/\s\"'`)>\\:*]*)", path.read_text()):
            if host and not EXAMPLES.match(host):
                found.setdefault(host, set()).add(path.name)
    assert set(found) == HOSTS, found
    said = (ROOT / "docs" / "security.md").read_text()
    assert not {host for host in HOSTS if host not in said}
