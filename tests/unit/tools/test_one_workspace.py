"""File tools and commands stand under one policy: the same workspace, the same protected names, nothing from the model
that widens either.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from quintet.domain.errors import Invalid
from quintet.domain.tool import CallScope
from quintet.tools.builtin import builtin_tools
from quintet.workspace.paths import PathGuard
from quintet.workspace.protected import protected_places
from tests.fakes.tool_context import FakeToolContext

CALLS: dict[str, dict[str, Any]] = {
    "read": {},
    "list": {},
    "write": {"content": "x"},
    "edit": {"edits": [{"old": "a", "new": "b"}]},
}


@pytest.fixture
def project(workspace: Path) -> Path:
    for repository in (".git", "nested/.git"):
        (workspace / repository).mkdir(parents=True)
        (workspace / repository / "HEAD").touch()
    (workspace / ".vscode").mkdir()
    (workspace / "src").mkdir()
    return workspace


@pytest.mark.req("security:S29")
async def test_every_place_a_command_may_not_write_no_file_tool_writes(tools, project):
    places = protected_places(str(project))
    assert len(places) > 20
    for place in places:
        for path in (place, os.path.join(place, "below"), os.path.relpath(place, project / "src")):
            for tool in ("write", "edit"):
                with pytest.raises(Invalid, match="protected"):
                    await tools[tool].prepare({"path": path, **CALLS[tool]}, CallScope(str(project / "src")))


@pytest.mark.req("security:S29")
@pytest.mark.parametrize("path", ["x", "nested/x", "nested/.git/../x", "./src/../nested/x"])
@pytest.mark.parametrize("cwd", [".", "src"])
def test_a_path_never_chooses_the_workspace(project, path, cwd):
    given = path if cwd == "." else f"../{path}"
    place = PathGuard().writing(given, str(project / cwd))
    assert place.root == PathGuard().workspace(str(project / cwd)) == str(project)


@pytest.mark.req("security:S29")
@pytest.mark.parametrize("tool", CALLS)
async def test_a_thread_in_a_nested_repository_stays_in_it(tools, project, tool):
    scope = CallScope(str(project / "nested"))
    for path in ("../src/x", str(project / "src/x"), "..", "../.git/HEAD"):
        with pytest.raises(Invalid, match="outside the workspace"):
            await tools[tool].prepare({"path": path, **CALLS[tool]}, scope)


@pytest.mark.req("security:S29")
@pytest.mark.parametrize("argument", ["cwd", "root", "workspace", "writable_roots", "mode", "thread"])
@pytest.mark.parametrize("tool", CALLS)
async def test_no_argument_says_where_a_call_may_go(tools, project, tool, argument):
    with pytest.raises(Invalid, match=f"unknown field `{argument}`"):
        await tools[tool].prepare({"path": "x", argument: "/", **CALLS[tool]}, CallScope(str(project)))


@pytest.mark.req("security:S29")
@pytest.mark.parametrize(
    "path", [".ssh/id_rsa", ".aws/credentials", ".netrc", ".config/gh/hosts.yml", "here/.ssh/id_rsa"]
)
async def test_where_the_workspace_is_the_persons_directory_their_secrets_stay_closed(tmp_path, path):
    """No command sees them in any mode, so no file tool does."""
    home = tmp_path / "person"
    (home / path).parent.mkdir(parents=True)
    (home / path).write_text("canary")
    (home / "here").mkdir(exist_ok=True)
    if path.startswith("here"):
        (home / ".ssh").symlink_to(home / "here/.ssh")
    environment = {**os.environ, "HOME": str(home)}
    tools = {tool.spec.name: tool for tool in builtin_tools(home=str(tmp_path / "quintet"), environment=environment)}
    scope, context = CallScope(str(home)), FakeToolContext(str(home))
    for tool in CALLS:
        with pytest.raises(Invalid, match="secrets"):
            await tools[tool].prepare({"path": path, **CALLS[tool]}, scope)
    for tool, arguments in (("grep", {"pattern": "canary"}), ("glob", {"pattern": "**"})):
        done = await tools[tool].run(await tools[tool].prepare(arguments, scope), context)
        assert os.path.basename(path) not in done.text
    if (home / path).parent != home:  # whoever starts a thread in such a place means to work on it
        inside = CallScope(str((home / path).parent))
        assert (await tools["read"].prepare({"path": os.path.basename(path)}, inside)).paths
