"""The documents say what is true: generated parts, links, commands, flags, exit codes, keys, words, and the tour."""

from __future__ import annotations

import argparse
import ast
import importlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from quintet import config
from quintet.cli import COMMANDS, exits
from quintet.cli.docs import renewed
from quintet.cli.parser import actions_of, common_flags
from quintet.providers.settings import ModelSettings, ProviderSettings
from quintet.serving.protocols import PROTOCOLS, method_rows

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]
AVOIDED = {"session", "sessions", "conversation", "conversations", "chat", "chats"}
MESSAGES = {"message", "UserMessage", "AssistantMessage"}


def prose(page: Path) -> str:
    """Without code blocks, where brackets and hashes mean other things."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.replace("`", "")).strip().lower().replace(" ", "-") for h in headings}


@pytest.mark.parametrize("name", NAMES)
def test_the_generated_parts_are_up_to_date(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert renewed(text) == text, "run `make docs`"


def test_each_reference_page_has_its_generated_part() -> None:
    for name, part in (("events", "kinds"), ("errors", "errors"), ("errors", "exits"), ("commands", "commands")):
        assert f"<!-- generated: {part} -->\n\n|" in (text := (ROOT / "docs" / f"{name}.md").read_text()) or (
            (part == "commands" and "## quintet run" in text) or (part == "errors" and "### `busy`" in text)
        )


@pytest.mark.parametrize("name", NAMES)
def test_every_relative_link_leads_somewhere(name: str) -> None:
    page = ROOT / name
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        if not found.exists() or (anchor and anchor not in anchors(found)):
            broken.append(target)
    assert not broken


def test_the_index_of_the_documentation_names_every_page() -> None:
    index = ROOT / "docs" / "README.md"
    named = {(index.parent / t).resolve() for t in re.findall(r"\]\(([^)\s#]+\.md)[^)]*\)", prose(index))}
    pages = {p for p in PAGES if p.is_relative_to(index.parent) and p.parent.name != "decisions"} - {index}
    assert pages <= named, "docs/README.md lists all pages but the decisions, which have an index of their own"


def test_every_page_can_be_reached_from_the_readme() -> None:
    seen, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in seen:
            seen.add(page)
            targets = re.findall(r"\]\(([^)\s#]+\.md)[^)]*\)", prose(page))
            waiting += [(page.parent / t).resolve() for t in targets if ":" not in t]
    assert set(PAGES) <= seen


# --- commands ---------------------------------------------------------------------------------------------------------
def parser_of(command: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(parents=[common_flags()])
    importlib.import_module(f"quintet.cli.{command}").add_flags(parser, common_flags())
    return parser


def code_of(page: Path) -> Iterator[str]:
    text = page.read_text(encoding="utf-8")
    for block in re.findall(r"^```(?:sh)?\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        yield from block.splitlines()
    yield from re.findall(r"`([^`\n]+)`", prose(page))


def calls_in(page: Path) -> Iterator[list[str]]:
    for code in code_of(page):
        for call in re.findall(r"(?:^|[\s(])quintet ([^|)#]+)", code):
            yield re.sub(r"\"[^\"]*\"", "TEXT", call).split()


@pytest.mark.parametrize("name", NAMES)
def test_every_command_and_flag_that_is_named_exists(name: str) -> None:
    for words in calls_in(ROOT / name):
        command = words[0]
        if command in ("COMMAND", "--version", "--help"):
            continue
        assert command in COMMANDS, words
        parser = parser_of(command)
        actions = actions_of(parser)
        if actions and len(words) > 1 and not words[1].startswith("-"):
            assert words[1] in actions, words
            parser = actions[words[1]]
        flags = {w.partition("=")[0] for w in words[1:] if re.match(r"--?[a-z]", w)}
        assert flags <= set(parser._option_string_actions), words


def test_every_command_of_make_that_is_named_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {n for page in PAGES for code in code_of(page) for n in re.findall(r"^make ([a-z-]+)", code)}
    assert named <= targets


def test_the_readme_lists_the_exit_codes() -> None:
    table = (ROOT / "README.md").read_text().partition("## Exit codes")[2].partition("##")[0]
    listed = {int(n) for n in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)}
    assert listed == {v for n, v in vars(exits).items() if n.isupper() and isinstance(v, int)}


def test_the_readme_and_the_index_say_of_each_protocol_whether_it_is_served() -> None:
    """The adapter has its word in the row of the protocol it adapts to."""
    readme, index = (ROOT / "README.md").read_text(), (ROOT / "docs" / "README.md").read_text()
    table = readme.partition("## Protocols")[2].partition("\n\n|")[2].partition("\n\n")[0]
    for protocol, title in PROTOCOLS.items():
        if protocol == "opencode":
            assert ("the adapter not yet" in table) is not bool(method_rows(protocol))
            continue
        (row,) = [line for line in table.splitlines() if line.startswith(f"| {title}")]
        served = bool(method_rows(protocol))
        assert (f"(docs/protocols/{protocol}.md)" in row, "not served yet" in row) == (served, not served), row
        assert (title in readme.partition("Of the protocols")[2].partition(";")[0]) is served
        assert (f"[{title}](protocols/{protocol}.md)" in index) is served


def test_no_command_pays_for_the_generator() -> None:
    sources = [p for p in (ROOT / "src").rglob("*.py") if p.name != "docs.py"]
    assert not [p for p in sources if "cli.docs" in p.read_text() or "cli import docs" in p.read_text()]


def test_the_tour_works_as_typed(tmp_path: Path) -> None:
    tour = (ROOT / "README.md").read_text().partition("## Two minutes")[2].partition("\n## ")[0]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("QUINTET_")}
    environment |= {"QUINTET_HOME": str(tmp_path / "home"), "NO_COLOR": "1"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    waiting: subprocess.Popen[str] | None = None
    for block in re.findall(r"^```sh\n(.*?)^```", tour, re.DOTALL | re.MULTILINE):
        script = "".join(f"{x}\n" for x in block.splitlines() if not x.startswith(("export ", "make ")))
        whole = ["bash", "-euc", script]
        if "--on-ask wait" in script:
            waiting = subprocess.Popen(
                whole, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
            assert waiting.stderr is not None
            assert any("answer with:" in line for line in waiting.stderr)
            continue
        done = subprocess.run(
            whole, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        if "approvals allow" in script:
            assert waiting is not None
            out, err = waiting.communicate(timeout=30)
            assert waiting.returncode == 0, err
            assert "git log" in out
    assert waiting is not None


# --- words ------------------------------------------------------------------------------------------------------------
def test_every_configuration_key_is_documented() -> None:
    text = (ROOT / "docs" / "config.md").read_text()
    structs = (config.Policy, config.Projects, config.Sandbox, config.Limits, config.McpServer, config.Hook)
    structs += (config.Agent, config.Retention, config.Server, ProviderSettings, ModelSettings)
    keys = {f.name for s in structs for f in msgspec.structs.fields(s)}
    tables = {f.name for f in msgspec.structs.fields(config.Config)} - {"warnings"}
    assert not {k for k in keys if f"`{k}`" not in text}
    assert not {t for t in tables if not re.search(rf"`\[*{t}[\].`]", text)}


@pytest.mark.parametrize("floor", ["domain", "engine"])
def test_the_core_does_not_use_the_words_to_avoid(floor: str) -> None:
    found = []
    for path in sorted((ROOT / "src" / "quintet" / floor).rglob("*.py")):
        for name in names_in(ast.parse(path.read_text())):
            words = {w.lower() for w in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}
            if words & AVOIDED or ("message" in words and name not in MESSAGES):
                found.append(f"{path.name}: {name}")
    assert not found


def names_in(tree: ast.AST) -> Iterator[str]:
    """What the code calls things: not its prose, not the strings a wire or a person reads."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Name(id=name) | ast.arg(arg=name) | ast.Attribute(attr=name):
                yield name


def test_the_glossary_names_what_the_test_keeps_out() -> None:
    avoid = (ROOT / "docs" / "glossary.md").read_text().partition("## Avoid")[2]
    assert all(word in avoid for word in ("session", "message", "run", "conversation", "chat"))
