"""The tools every turn has. One line per tool; each lives in its own file."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from quintet.domain.ports import Results, Tool
from quintet.tools.ask_user import AskUserTool
from quintet.tools.background_list import BackgroundListTool
from quintet.tools.edit import EditTool
from quintet.tools.glob import GlobTool
from quintet.tools.grep import GrepTool
from quintet.tools.list import ListTool
from quintet.tools.plan_mode import EnterPlanModeTool, ExitPlanModeTool
from quintet.tools.read import ReadTool
from quintet.tools.read_result import ReadResultTool
from quintet.tools.read_skill import ReadSkillTool
from quintet.tools.shell import ShellTool
from quintet.tools.shell_output import ShellOutputTool
from quintet.tools.shell_profile import ShellSettings
from quintet.tools.shell_stop import ShellStopTool
from quintet.tools.task import TaskTool
from quintet.tools.todo import TodoTool
from quintet.tools.web_fetch import WebFetchTool
from quintet.tools.write import WriteTool
from quintet.workspace.background import Background
from quintet.workspace.paths import PathGuard
from quintet.workspace.sandbox.hidden import credential_places
from quintet.workspace.sandbox.wall import Sandbox
from quintet.workspace.seen import Seen
from quintet.workspace.web.search_settings import SearchSettings


def builtin_tools(
    *,
    home: str = "",
    environment: Mapping[str, str] | None = None,
    sandbox: Sandbox | None = None,
    background: Background | None = None,
    shell: ShellSettings | None = None,
    web_search: SearchSettings | None = None,
    search_key: Callable[[], str] = str,
    results: Results | None = None,
    skills_dirs: Sequence[str] = (),
    seen: Seen | None = None,
) -> tuple[Tool, ...]:
    """`home` is Quintet's own directory, which no tool may touch; `environment` is ours, of which children get part;
    `web_search` is where the person lets us search, with a key that is looked up when it is needed;
    `seen` is what threads know of files."""
    secrets = credential_places(os.environ if environment is None else environment)
    guard = PathGuard(home, secrets)
    seen = seen or Seen()
    background = background or Background()
    return (
        ReadTool(guard, seen),
        WriteTool(guard, seen),
        EditTool(guard, seen),
        ShellTool(environment, sandbox=sandbox, guard=guard, background=background, settings=shell),
        ShellOutputTool(background),
        ShellStopTool(background),
        BackgroundListTool(background),
        ListTool(guard),
        GrepTool(guard, environment, hidden=(home, *secrets)),
        GlobTool(guard, environment, hidden=(home, *secrets)),
        WebFetchTool(),
        *_searching(web_search, search_key),
        ReadSkillTool(guard, home, skills_dirs),
        TodoTool(),
        AskUserTool(),
        EnterPlanModeTool(),
        ExitPlanModeTool(),
        TaskTool(),
        *((ReadResultTool(results),) if results else ()),
    )


def _searching(settings: SearchSettings | None, key: Callable[[], str]) -> tuple[Tool, ...]:
    if settings is None:
        return ()
    from quintet.tools.web_search import WebSearchTool
    from quintet.workspace.web.searching import Searcher

    return (WebSearchTool(Searcher(settings, key)),)
