"""Tools that really write: an exact file tool, and a command that may do anything in its directory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec

from quintet.domain.ports import ToolContext
from quintet.domain.tool import CallScope, Effect, Prepared, ToolOutcome, ToolSpec
from tests.fakes.providers import GatedProvider, Line, call, text
from tests.fakes.waiting import soon


class WriteTool:
    """Writes one file, named beforehand."""

    spec = ToolSpec("write", "writes one file", {"type": "object"}, Effect.WRITE)

    async def prepare(self, arguments: dict[str, str], scope: CallScope) -> Prepared:
        path = Path(scope.cwd, arguments["path"])
        return Prepared(f"write {path}", arguments, cwd=scope.cwd, paths=(str(path),), digest="d")

    async def run(self, prepared: Prepared, context: ToolContext) -> ToolOutcome:
        path = Path(prepared.paths[0])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(prepared.arguments["text"])
        return ToolOutcome("written", changed_files=prepared.paths, diff="its own diff")


class CommandTool:
    """Does whatever the test says, anywhere; `hold` stops it in the middle until the test lets it go."""

    spec = ToolSpec("shell", "runs a command", {"type": "object"}, Effect.EXECUTE)

    def __init__(self, *acts: Callable[[Path], None], hold: bool = False, fail: Exception | None = None) -> None:
        self._acts = acts
        self._hold = hold
        self._fail = fail
        self.begun = asyncio.Event()
        self.go = asyncio.Event()

    async def prepare(self, arguments: dict[str, object], scope: CallScope) -> Prepared:
        return Prepared("run it", arguments, command="make", cwd=scope.cwd, digest="d")

    async def run(self, prepared: Prepared, context: ToolContext) -> ToolOutcome:
        self._acts[0](Path(prepared.cwd))
        self.begun.set()
        if self._hold:
            await self.go.wait()
        for act in self._acts[1:]:
            act(Path(prepared.cwd))
        if self._fail is not None:
            raise self._fail
        return ToolOutcome("done", display=({"type": "shell"},))

    async def started(self) -> None:
        await soon(self.begun.wait())


def says(name: str, given: str) -> Callable[[Path], None]:
    """An act that writes text to a file of the directory."""

    def act(directory: Path) -> None:
        (directory / name).write_text(given)

    return act


def writes(*files: tuple[str, str]) -> GatedProvider:
    """A model that has these files written, one call after the other in one step, and ends."""
    lines: list[Line] = []
    for number, (path, words) in enumerate(files, 1):
        lines += call("write", msgspec.json.encode({"path": path, "text": words}).decode(), f"c{number}")
    return GatedProvider(lines, text("ok"))


def runs(given: str = "{}") -> GatedProvider:
    return GatedProvider(call("shell", given), text("ok"))


def tree(directory: Path) -> dict[str, str]:
    """Every file and what is in it, but git's own."""
    found = {str(p.relative_to(directory)): p for p in sorted(directory.rglob("*")) if p.is_file()}
    return {name: path.read_text() for name, path in found.items() if not name.startswith(".git/")}
