"""The tools every turn has. One line per tool; each lives in its own file."""

from __future__ import annotations

from collections.abc import Mapping

from quintet.domain.ports import Tool
from quintet.tools.ask_user import AskUserTool
from quintet.tools.edit import EditTool
from quintet.tools.grep import GrepTool
from quintet.tools.list import ListTool
from quintet.tools.read import ReadTool
from quintet.tools.read_skill import ReadSkillTool
from quintet.tools.shell import ShellTool
from quintet.tools.todo import TodoTool
from quintet.tools.write import WriteTool
from quintet.workspace.paths import PathGuard
from quintet.workspace.sandbox.wall import Sandbox
from quintet.workspace.seen import Seen


def builtin_tools(
    *, home: str = "", environment: Mapping[str, str] | None = None, sandbox: Sandbox | None = None
) -> tuple[Tool, ...]:
    """`home` is Quintet's own directory, which no tool may touch; `environment` is ours, of which children get part."""
    guard, seen = PathGuard(home), Seen()
    return (
        ReadTool(guard, seen),
        WriteTool(guard, seen),
        EditTool(guard, seen),
        ShellTool(environment, sandbox=sandbox, guard=guard),
        ListTool(guard),
        GrepTool(guard, environment),
        ReadSkillTool(guard, home),
        TodoTool(),
        AskUserTool(),
    )
