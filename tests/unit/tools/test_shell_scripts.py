"""Scripts between the last look from outside and the command's first step: what runs is what was agreed to."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from quintet.domain.errors import Drifted
from quintet.domain.tool import CallScope, ToolOutcome
from quintet.tools.shell import ShellTool
from quintet.workspace.background import Background
from quintet.workspace.sandbox.mounts import Kind, Mount, seen
from quintet.workspace.sandbox.wall import Sandbox
from tests.fakes.stage import needs_bubblewrap
from tests.fakes.tool_context import FakeToolContext

pytestmark = [needs_bubblewrap, pytest.mark.req("security:S26a")]


class Shelf:
    """A shell tool, and something that happens while the wall is being built: after the last look from outside."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.background = Background()
        self._sandbox = Sandbox(os.environ)
        self._tool = ShellTool(os.environ, sandbox=self._sandbox, background=self.background)
        self._patch = monkeypatch
        self.script = root / "x.sh"
        self.script.write_text("#!/bin/sh\necho shown\n")
        self.script.chmod(0o755)

    def meanwhile(self, happens: Callable[[], object]) -> None:
        real = self._sandbox._set_up

        def set_up(profile: object) -> object:
            happens()
            return real(profile)  # type: ignore[arg-type]

        self._patch.setattr(self._sandbox, "_set_up", set_up)

    async def run(self, command: str, *, added: Path | None = None, **more: object) -> ToolOutcome:
        directories = (str(added),) if added else ()
        scope, context = CallScope(str(self.root), directories=directories), FakeToolContext(str(self.root))
        context.directories = directories
        prepared = await self._tool.prepare({"command": command, **more}, scope)
        return await asyncio.wait_for(self._tool.run(prepared, context), 30)


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    return Shelf(tmp_path, monkeypatch)


COMMANDS = ["./x.sh; touch ran", "sh x.sh; touch ran", "true && bash ./x.sh; touch ran"]


@pytest.mark.parametrize("command", COMMANDS)
async def test_a_script_that_is_swapped_while_the_wall_is_built_does_not_run(shelf: Shelf, command: str) -> None:
    shelf.meanwhile(lambda: shelf.script.write_text("#!/bin/sh\ntouch evil\n"))
    with pytest.raises(Drifted):
        await shelf.run(command)
    assert sorted(path.name for path in shelf.root.iterdir()) == ["x.sh"]  # nothing at all has run


async def test_a_script_in_a_directory_added_to_the_workspace_is_bound_in_the_same_way(
    shelf: Shelf, tmp_path_factory: pytest.TempPathFactory
) -> None:
    beside = tmp_path_factory.mktemp("beside")
    script = beside / "y.sh"
    script.write_text("echo shown\n")
    assert "shown" in (await shelf.run(f"sh {script}", added=beside)).text
    shelf.meanwhile(lambda: script.write_text(f"touch {beside}/evil\n"))
    with pytest.raises(Drifted):
        await shelf.run(f"sh {script}", added=beside)
    assert not (beside / "evil").exists()


@pytest.mark.parametrize("how", ["another file", "link", "pipe", "gone"])
async def test_whatever_stands_in_its_place_is_not_run(shelf: Shelf, how: str) -> None:
    def swap() -> None:
        (shelf.root / "other").write_bytes(shelf.script.read_bytes() + b"touch evil\n")
        shelf.script.unlink(missing_ok=True)
        if how == "another file":
            (shelf.root / "other").rename(shelf.script)
        elif how == "link":
            shelf.script.symlink_to("other")
        elif how == "pipe":
            os.mkfifo(shelf.script)

    shelf.meanwhile(swap)
    with pytest.raises(Drifted):
        await shelf.run("sh x.sh; touch ran")
    assert not (shelf.root / "ran").exists()
    assert not (shelf.root / "evil").exists()


async def test_in_the_background_it_does_not_run_either_and_that_is_told(shelf: Shelf) -> None:
    shelf.meanwhile(lambda: shelf.script.write_text("#!/bin/sh\ntouch evil\n"))
    text = (await shelf.run("./x.sh", background=True)).text
    look = await shelf.background.look("thr_test", text.split()[5].rstrip(","), 20)
    assert look.failure == "A script that this command runs, or its environment, was changed."
    assert not (shelf.root / "evil").exists()


async def test_one_that_stayed_as_it_was_runs_and_may_change_itself(shelf: Shelf) -> None:
    shelf.script.write_text("#!/bin/sh\nsed -i s/old/new/ x.sh\necho old\n")
    done = await shelf.run("./x.sh && tail -n 1 x.sh")
    assert done.text.endswith("echo new\n"), done.text


async def test_what_the_command_cannot_see_is_not_looked_at(shelf: Shelf) -> None:
    """It could not run it either; its own failure is told, not a change."""
    (shelf.root / "hidden").mkdir()
    (shelf.root / "hidden" / "y.sh").write_text("echo y\n")
    shelf._sandbox._hidden = [str(shelf.root / "hidden")]
    assert "No such file" in (await shelf.run("sh hidden/y.sh")).text


def test_a_path_is_seen_where_the_innermost_mount_around_it_shows_it() -> None:
    mounts = [Mount("/a", Kind.HIDE), Mount("/a/b", Kind.WRITE), Mount("/a/b/c", Kind.BLANK), Mount("/d", Kind.READ)]
    paths = ["/a", "/a/x", "/a/b", "/a/b/x", "/a/b/c", "/d/e", "/f"]
    assert [seen(mounts, path) for path in paths] == [False, False, True, True, False, True, True]
