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
from quintet.tools.shell_output import ShellOutputTool
from quintet.tools.shell_profile import ShellSettings
from quintet.tools.shell_stop import ShellStopTool
from quintet.tools.todo import TodoTool
from quintet.tools.write import WriteTool
from quintet.workspace.background import Background
from quintet.workspace.paths import PathGuard
from quintet.workspace.sandbox.wall import Sandbox
from quintet.workspace.seen import Seen


def builtin_tools(
    *,
    home: str = "",
    environment: Mapping[str, str] | None = None,
    sandbox: Sandbox | None = None,
    background: Background | None = None,
    shell: ShellSettings | None = None,
) -> tuple[Tool, ...]:
    """`home` is Quintet's own directory, which no tool may touch; `environment` is ours, of which children get part."""
    guard, seen = PathGuard(home), Seen()
    background = background or Background()
    return (
        ReadTool(guard, seen),
        WriteTool(guard, seen),
        EditTool(guard, seen),
        ShellTool(environment, sandbox=sandbox, guard=guard, background=background, settings=shell),
        ShellOutputTool(background),
        ShellStopTool(background),
        ListTool(guard),
        GrepTool(guard, environment),
        ReadSkillTool(guard, home),
        TodoTool(),
        AskUserTool(),
    )
