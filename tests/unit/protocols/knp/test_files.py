"""Files over HTTP: inside the project's root and nowhere else."""

from __future__ import annotations

import base64
import os
from urllib.parse import quote

import pytest

from quintet.workspace import search
from tests.fakes.knp_project import Knp

OUTSIDE = (
    "..",
    "../",
    "/..",
    "/../..",
    "src/../..",
    "/src/../../home",
    "./../x",
    "/./../../etc",
    "out",
    "/out/passwd",
    "far",
    "/src/up/home",
    "\0",
    "src/\0/x",
    "a\nb",
    "x" * 5000,
    "/" + "y" * 300,
)


@pytest.fixture(autouse=True)
def links(knp: Knp) -> None:
    """Links that lead out of the project, and one that stays in it."""
    for name, target in (("out", "/etc"), ("far", "/etc/passwd"), ("src/up", "../.."), ("in", "src")):
        if not (knp.project / name).is_symlink():
            os.symlink(target, knp.project / name)


@pytest.mark.req("knp:K33")
def test_a_directory_has_its_directories_first_and_says_what_is_ignored(knp: Knp) -> None:
    listed = knp.get("/files?path=/")["entries"]
    assert listed == knp.get("/files")["entries"]
    shown = {e["name"]: (e["path"], e["type"], e["ignored"]) for e in listed}
    assert shown["src"] == ("/src", "directory", False)
    assert shown["dist"] == ("/dist", "directory", True)
    assert shown["README.md"] == ("/README.md", "file", False)
    types = [e["type"] for e in listed]
    assert types == sorted(types)  # directory, file
    assert {"name": "index.ts", "path": "/src/index.ts", "type": "file", "ignored": False} in knp.get(
        "/files?path=/src"
    )["entries"]
    assert (shown["in"][1], shown["out"][1]) == ("directory", "file")  # a link that leads out is only a name
    assert knp.refused("GET", "/files?path=/nothing") == (404, "not_found")
    assert knp.refused("GET", "/files?path=/README.md") == (400, "invalid_request")


@pytest.mark.req("knp:K33")
def test_a_file_is_read_as_text_or_base64_and_cut_where_it_is_too_long(knp: Knp) -> None:
    assert knp.get("/files/content?path=/src/index.ts") == {
        "path": "/src/index.ts",
        "content": "export function main() {}\n// TODO: auth\n",
        "mimeType": "text/typescript",
        "encoding": "utf-8",
        "truncated": False,
    }
    assert knp.get("/files/content?path=README.md")["mimeType"] == "text/markdown"
    raw = bytes(range(256))
    (knp.project / "raw.bin").write_bytes(raw)
    found = knp.get("/files/content?path=/raw.bin")
    assert (base64.b64decode(found["content"]), found["encoding"]) == (raw, "base64")
    (knp.project / "long.txt").write_text("ä" * 524_288 + "more")
    (knp.project / "odd.txt").write_text("a" + "ä" * 524_288)
    for name, cut in (("long.txt", "ä" * 524_288), ("odd.txt", "a" + "ä" * 524_287)):
        found = knp.get(f"/files/content?path={name}")
        assert (found["content"] == cut, found["truncated"], found["encoding"]) == (True, True, "utf-8")
    assert knp.refused("GET", "/files/content?path=/src") == (400, "invalid_request")
    assert knp.refused("GET", "/files/content?path=/nothing.ts") == (404, "not_found")


@pytest.mark.req("knp:K32", "security:S16")
@pytest.mark.parametrize("route", ["/files", "/files/content"])
def test_no_spelling_leads_out_of_the_root_and_none_is_repeated(knp: Knp, route: str) -> None:
    for path in OUTSIDE:
        for spelled in (quote(path, safe="/."), quote(path, safe="").replace(".", "%2e")):
            reply = knp.ask("GET", f"{route}?path={spelled}")
            assert reply.status in (400, 404), (path, reply)
            said = reply.json["error"]["message"]
            assert path.strip("/.") == "" or path not in said, (path, said)
            assert str(knp.project.parent) not in said
    assert knp.refused("GET", f"{route}?path=/out/passwd") == (400, "invalid_request")


@pytest.mark.req("knp:K32")
def test_a_leading_slash_means_the_root(knp: Knp) -> None:
    for path in (
        "src/index.ts",
        "/src/index.ts",
        "//src/index.ts",
        "./src/index.ts",
        "in/index.ts",
        "src/../src/index.ts",
    ):
        assert knp.get(f"/files/content?path={path}")["path"] == "/src/index.ts"


@pytest.mark.req("knp:K33")
def test_files_are_found_by_their_path(knp: Knp) -> None:
    found = knp.get("/files/search?query=INDEX&type=file&limit=20")["results"]
    assert found == [{"path": "/src/index.ts", "type": "file"}]
    assert knp.get("/files/search?query=src&type=directory")["results"] == [{"path": "/src", "type": "directory"}]
    both = knp.get("/files/search?query=src")["results"]
    assert [e["path"] for e in both[:2]] == ["/src", "/src/up"]
    assert knp.get("/files/search?query=out.js") == {"results": []}  # ignored
    assert len(knp.get("/files/search?query=&limit=2")["results"]) == 2
    for query in ("limit=0", "type=song"):
        assert knp.refused("GET", f"/files/search?query=a&{query}") == (400, "invalid_request")


@pytest.mark.req("knp:K33")
def test_a_name_that_is_no_text_is_shown_as_far_as_it_is(knp: Knp) -> None:
    with open(os.fsencode(knp.project) + b"/\xff weird.txt", "wb") as file:
        file.write(b"strange\n")
    shown = "/\ufffd weird.txt"
    assert shown in [e["path"] for e in knp.get("/files")["entries"]]
    assert knp.get("/files/search?query=weird")["results"] == [{"path": shown, "type": "file", "readable": False}]
    assert knp.get("/files/grep?pattern=strange")["matches"][0]["path"] == shown


@pytest.mark.req("knp:K33")
@pytest.mark.parametrize("name", [b"two\nlines", b"bell\x07", b"no\xfftext"])
def test_a_name_that_cannot_be_asked_for_is_listed_and_says_so(knp: Knp, name: bytes) -> None:
    made = os.path.join(os.fsencode(knp.project), b"odd", name)
    os.makedirs(os.path.dirname(made), exist_ok=True)
    with open(made, "w") as file:
        file.write("x")
    try:
        (listed,) = knp.get("/files?path=/odd")["entries"]
        assert listed == {
            "name": name.decode(errors="replace"),
            "path": f"/odd/{name.decode(errors='replace')}",
            "type": "file",
            "ignored": False,
            "readable": False,
        }
        (found,) = knp.get("/files/search?query=odd/&type=file")["results"]
        assert found["readable"] is False
        status, _ = knp.refused("GET", f"/files/content?path={quote(listed['path'])}")
        assert status in (400, 404)
    finally:
        os.unlink(made)


@pytest.mark.req("knp:K34")
def test_a_search_that_takes_too_long_says_that_there_may_be_more(knp: Knp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "TIMEOUT_S", 0.0)
    assert knp.get("/files/grep?pattern=TODO")["truncated"] is True


@pytest.mark.req("knp:K34")
def test_lines_are_found_by_an_expression(knp: Knp) -> None:
    found = knp.get(f"/files/grep?pattern=TODO&glob={quote('**/*.ts')}")
    assert found == {
        "matches": [{"path": "/src/index.ts", "line": 2, "column": 4, "text": "// TODO: auth"}],
        "truncated": False,
    }
    assert knp.get("/files/grep?pattern=TODO") == found  # what is ignored is not searched
    (knp.project / "many.txt").write_text("äx needle\n" * 150)
    many = knp.get("/files/grep?pattern=needle")
    assert (len(many["matches"]), many["truncated"], many["matches"][0]["column"]) == (100, True, 4)
    assert len(knp.get("/files/grep?pattern=needle&limit=7")["matches"]) == 7
    for query in ("pattern=(", "pattern=", "", "pattern=a&limit=0", f"pattern=a&glob={quote('{a')}", "pattern=a%0ab"):
        assert knp.refused("GET", f"/files/grep?{query}") == (400, "invalid_request")
