"""Kimi's names over our tools: every row is checked against the real tools, there and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fastjsonschema
import pytest

from quintet.domain.errors import Invalid
from quintet.domain.interaction import Approval
from quintet.domain.item import ResultStatus, ToolCall, ToolResult, tool_of
from quintet.domain.ports import Tool
from quintet.domain.tool import CallScope, Confine, Effect, Prepared, ToolOutcome
from quintet.domain.turn import Mode
from quintet.engine.spelling import Respelled
from quintet.protocols.wire import display, kimi_results
from quintet.protocols.wire.kimi_tools import ROWS
from quintet.protocols.wire.names import Names
from quintet.tools.builtin import builtin_tools
from quintet.tools.shell_profile import confined_note
from quintet.tools.task import TaskTool
from quintet.workspace.diffs import unified_diff
from quintet.workspace.web.search_settings import SearchSettings
from tests.fakes.engine import Process
from tests.fakes.providers import GatedProvider, call, text
from tests.fakes.tools import FakeTool
from tests.fakes.wire_client import payloads
from tests.unit.protocols.wire.conftest import Connect

# Calls as Kimi's models make them, and what our tools get.
CALLS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("Shell", {"command": "ls"}, {"command": "ls", "timeout_s": 60}),
    ("Shell", {"command": "ls", "timeout": 5}, {"command": "ls", "timeout_s": 5}),
    (
        "Shell",
        {"command": "ls", "run_in_background": True, "description": "lists", "timeout": 900},
        {"command": "ls", "background": True, "description": "lists", "timeout_s": 900},
    ),
    (
        "ReadFile",
        {"path": "a", "line_offset": 3, "n_lines": 2},
        {"path": "a", "from_line": 3, "lines": 2, "numbered": True},
    ),
    ("ReadFile", {"path": "a", "line_offset": -5}, {"path": "a", "from_line": -5, "lines": 1000, "numbered": True}),
    ("TaskList", {"active_only": False}, {"all": True}),
    (
        "Agent",
        {"description": "d", "prompt": "p", "run_in_background": True},
        {"description": "d", "prompt": "p", "background": True},
    ),
    ("WriteFile", {"path": "a", "content": "x"}, {"path": "a", "content": "x"}),
    ("WriteFile", {"path": "a", "content": "x", "mode": "append"}, {"path": "a", "content": "x", "append": True}),
    (
        "Glob",
        {"pattern": "*.py", "directory": "src"},
        {"pattern": "./*.py", "path": "src", "directories": True, "ignored": True, "limit": 1000},
    ),
    (
        "Glob",
        {"pattern": "**/*.py", "include_dirs": False},
        {"pattern": "**/*.py", "directories": False, "ignored": False, "limit": 1000},
    ),
    (
        "Grep",
        {"pattern": "x", "output_mode": "content", "-C": 2},
        {"pattern": "x", "output": "content", "context": 2, "limit": 250},
    ),
    (
        "Grep",
        {"pattern": "x", "output_mode": "files_with_matches"},
        {"pattern": "x", "output": "files", "limit": 250, "sort": "mtime"},
    ),
    (
        "Grep",
        {"pattern": "x", "output_mode": "count_matches", "offset": 3, "multiline": True, "include_ignored": True},
        {"pattern": "x", "output": "occurrences", "limit": 250, "skip": 3, "multiline": True, "ignored": True},
    ),
    ("SetTodoList", {}, {}),
    ("SetTodoList", {"todos": [{"title": "x", "status": "done"}]}, {"todos": [{"text": "x", "status": "done"}]}),
    ("Agent", {"description": "d", "prompt": "p"}, {"description": "d", "prompt": "p"}),
    ("TaskOutput", {"task_id": "x"}, {"id": "x"}),
    ("TaskStop", {"task_id": "x"}, {"id": "x"}),
    ("FetchURL", {"url": "https://example.com"}, {"url": "https://example.com"}),
    ("SearchWeb", {"query": "x", "limit": 3}, {"query": "x", "count": 3}),
    ("EnterPlanMode", {}, {}),
    ("ExitPlanMode", {"plan": "first"}, {"plan": "first"}),
]
FILES: dict[str, Any] = {"pattern": "x", "output": "files", "limit": 250, "sort": "mtime"}
# What may also be said, and is taken for the same; or goes only one way.
INWARD: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("Shell", {"command": "ls", "timeout": None}, {"command": "ls", "timeout_s": 60}),
    ("ReadFile", {"path": "a", "n_lines": 5000}, {"path": "a", "lines": 1000, "numbered": True}),
    (
        "Grep",
        {"pattern": "x", "output_mode": "content", "-A": 1, "-B": 30, "-n": False},
        {"pattern": "x", "output": "content", "after": 1, "before": 20, "numbers": False, "limit": 250},
    ),
    ("Grep", {"pattern": "x", "type": "rust"}, {**FILES, "glob": "*.rs"}),
    ("Grep", {"pattern": "x", "type": "zig", "-i": True}, {**FILES, "glob": "*.zig", "ignore_case": True}),
    ("Grep", {"pattern": "x", "head_limit": 0}, {**FILES, "limit": 1000}),
    (
        "Agent",
        {"description": "d", "prompt": "p", "subagent_type": "explore"},
        {"description": "d", "prompt": "p", "agent": "explorer"},
    ),
    ("ReadMediaFile", {"path": "a.png"}, {"path": "a.png"}),
    ("TaskOutput", {"task_id": "x", "block": True, "timeout": 90}, {"id": "x", "wait_s": 60}),
    (
        "Agent",
        {"description": "d", "prompt": "p", "subagent_type": "plan"},
        {"description": "d", "prompt": "p", "agent": "planner"},
    ),
    (
        "StrReplaceFile",
        {"path": "a", "edit": {"old": "x", "new": "y", "replace_all": True}},
        {"path": "a", "edits": [{"old": "x", "new": "y", "all": True}], "unread": True},
    ),
    (
        "StrReplaceFile",
        {"path": "a", "edit": [{"old": "x", "new": "y"}, {"old": "1", "new": "2"}]},
        {"path": "a", "edits": [{"old": "x", "new": "y"}, {"old": "1", "new": "2"}], "unread": True},
    ),
    (
        "AskUserQuestion",
        {"questions": [{"question": "q", "options": [{"label": "a"}, {"label": "b"}], "multi_select": True}]},
        {"questions": [{"question": "q", "options": [{"label": "a"}, {"label": "b"}], "multiple": True}]},
    ),
]
REFUSED = [
    ("Shell", {"command": ""}, "cannot be empty"),
    ("Shell", {"command": "ls", "timeout": 301}, "300s"),
    ("Shell", {"command": "ls", "run_in_background": True}, "description is required"),
    ("ReadFile", {"path": "a", "line_offset": 0}, "cannot be 0"),
    ("ReadFile", {"path": "a", "line_offset": -1001}, "cannot be less than -1000"),
    ("WriteFile", {"path": "a", "content": "", "mode": "sideways"}, "overwrite"),
    ("StrReplaceFile", {"path": "a", "edit": "x"}, "one object"),
    ("Grep", {"pattern": "x", "output_mode": "all"}, "output_mode"),
    ("SetTodoList", {"todos": "x"}, "`todos` must be a list"),
]


@pytest.fixture
def ours(tmp_path: Path) -> tuple[Tool, ...]:
    return builtin_tools(
        home=str(tmp_path / "home"), environment={}, web_search=SearchSettings("searxng", url="http://127.0.0.1:1")
    )


def row(name: str) -> Any:
    return next(row for row in ROWS if row.name == name)


def test_every_row_is_about_a_tool_there_is_and_every_name_is_used_once(ours: tuple[Tool, ...]) -> None:
    assert {row.own for row in ROWS} <= {tool.spec.name for tool in ours}
    offered = [tool.spec.name for tool in Names().tools(ours)]
    assert len(offered) == len(set(offered))
    assert {"Shell", "ReadFile", "WriteFile", "StrReplaceFile", "Glob", "Grep", "SetTodoList"} <= set(offered)
    assert {"AskUserQuestion", "Agent", "FetchURL", "SearchWeb", "EnterPlanMode", "ExitPlanMode"} <= set(offered)
    assert {"list", "read_skill"} <= set(offered)


@pytest.mark.req("wire:S04")
def test_neither_kimis_names_nor_ours_can_be_taken(ours: tuple[Tool, ...]) -> None:
    assert {"Shell", "shell", "Task", "Agent", "read_skill"} <= Names().reserved(ours)


def test_an_effect_stays_the_tools_own(ours: tuple[Tool, ...]) -> None:
    effects = {tool.spec.name: tool.spec.effect for tool in Names().tools(ours)}
    assert effects["Shell"] is Effect.EXECUTE
    assert effects["WriteFile"] is effects["StrReplaceFile"] is Effect.WRITE
    assert effects["FetchURL"] is Effect.NETWORK
    assert effects["ReadFile"] is Effect.NONE


@pytest.mark.parametrize(("name", "theirs", "own"), CALLS + INWARD)
def test_arguments_become_those_of_our_tools_and_fit_the_form_that_is_offered(
    name: str, theirs: dict[str, Any], own: dict[str, Any]
) -> None:
    assert row(name).inward(theirs) == own
    fits = fastjsonschema.compile(row(name).parameters)
    offered = {k: v for k, v in theirs.items() if v is not None}
    if offered.get("timeout", 0) <= 60 or name != "TaskOutput":
        fits(offered)


@pytest.mark.parametrize(("name", "theirs", "own"), CALLS)
def test_and_back(name: str, theirs: dict[str, Any], own: dict[str, Any]) -> None:
    assert row(name).inward(row(name).outward(own)) == own


@pytest.mark.parametrize(("name", "given", "words"), REFUSED)
def test_what_cannot_be_carried_over_is_refused_in_words(name: str, given: dict[str, Any], words: str) -> None:
    with pytest.raises(Invalid, match=words):
        row(name).inward(given)


@pytest.mark.parametrize(("name", "theirs", "own"), [c for c in CALLS if c[0] not in ("ReadFile", "TaskOutput")])
async def test_our_tools_take_what_they_are_given(
    ours: tuple[Tool, ...], tmp_path: Path, name: str, theirs: dict[str, Any], own: dict[str, Any]
) -> None:
    tool = next(tool for tool in Names().tools(ours) if tool.spec.name == name)
    assert isinstance(tool, Respelled)
    work = tmp_path / "work"
    (work / "src").mkdir(parents=True)
    prepared = await tool.prepare(theirs, CallScope(str(work), planning=True, confine=Confine.OFF))
    assert prepared.title


@pytest.mark.req("wire:T2")
@pytest.mark.parametrize(("name", "theirs", "own"), CALLS + INWARD)
def test_an_argument_nobody_knows_counts_for_nothing(name: str, theirs: dict[str, Any], own: dict[str, Any]) -> None:
    assert row(name).inward({**theirs, "nobody_knows": 1}) == own


def test_a_call_made_elsewhere_is_shown_under_kimis_name() -> None:
    names = Names()
    assert names.call("read", '{"path": "a", "from_line": 2}') == ("ReadFile", '{"path":"a","line_offset":2}')
    assert names.call("shell", '{"command": "ls"}') == ("Shell", '{"command": "ls"}')
    assert names.call("Shell", '{"command":') == ("Shell", '{"command":')
    assert names.call("mine", "{}") == ("mine", "{}")


# --- results ----------------------------------------------------------------------------------------------------------
def test_a_commands_end_is_told_in_kimis_words() -> None:
    def told(code: int, message: str) -> str:
        status = ResultStatus.ERROR if code else ResultStatus.OK
        shown = ({"type": "shell", "command": "x", "exit_code": code},)
        return kimi_results.shell(ToolOutcome("out", status, message, shown), Prepared("", {"timeout_s": 7})).message

    assert told(0, "exit status 0") == "Command executed successfully."
    assert told(3, "exit status 3") == "Command failed with exit code: 3."
    assert told(137, "ended after its limit of 7 s") == "Command killed by timeout (7s)"
    assert told(1, "nothing was run: no sandbox") == "nothing was run: no sandbox"


def test_what_goes_on_in_the_background_is_a_task() -> None:
    shown = ({"type": "shell", "command": "serve", "task": "b1"},)
    outcome = kimi_results.shell(ToolOutcome("As b1; see shell_output.", display=shown), Prepared("", {}))
    value = result("Shell", outcome)
    task = {"type": "background_task", "task_id": "b1", "kind": "bash", "status": "running", "description": "serve"}
    assert value.display == [display.brief("Started b1"), task]
    assert (value.output, value.message) == ("As b1; see TaskOutput.", "Background task started.")


def result(name: str, outcome: ToolOutcome, *, rejected: bool = False) -> Any:
    names = Names()
    body = ToolResult(
        "c1",
        name,
        outcome.status,
        outcome.text,
        outcome.message,
        outcome.display,
        outcome.changed_files,
        outcome.diff,
        outcome.images,
    )
    return names.result(body, rejected=rejected)


def test_no_output_is_an_empty_one_and_an_error_says_why_in_its_message() -> None:
    assert result("Shell", ToolOutcome("(no output)", message="m")).output == ""
    failed = result("ReadFile", ToolOutcome("There is no file a.", ResultStatus.ERROR, "There is no file a."))
    assert (failed.is_error, failed.output, failed.message) == (True, "", "There is no file a.")
    assert failed.display == [display.brief("There is no file a.")]
    assert result("Shell", ToolOutcome("It was stopped.", ResultStatus.CANCELLED)).display == [], "an empty block"
    both = result("Shell", ToolOutcome("half\n[exit 3]", ResultStatus.ERROR, "Command failed with exit code: 3."))
    assert (both.output, both.display) == ("half\n[exit 3]", [display.brief("Command failed with exit code: 3.")])


def test_how_to_read_on_is_said_with_kimis_argument() -> None:
    facts = {"first": 1, "lines": 1, "total": 9, "cut": [], "full": False}
    text = "a\n[lines 1-1 of 9; read on with from_line=2]"
    assert "line_offset=2" in kimi_results.read(ToolOutcome(text, facts=facts), Prepared("", {})).text
    assert kimi_results.read(ToolOutcome("from_line=2"), Prepared("", {})).text == "from_line=2"


# --- what a person is shown -------------------------------------------------------------------------------------------
@pytest.mark.req("wire:S63")
def test_each_hunk_is_a_block_with_whole_paths_and_no_line_passes_for_a_head() -> None:
    before = "-- a\n" + "same\n" * 20 + "end"
    after = "++ b\n" + "same\n" * 20 + "End\n"
    first, second = display.diffs(unified_diff(before, after, "x.sql"), ("/w/x.sql",))
    assert (first["path"], first["old_start"], first["new_start"]) == ("/w/x.sql", 1, 1)
    assert first["old_text"].startswith("-- a\nsame")
    assert first["new_text"].startswith("++ b\nsame")
    assert (second["old_text"].splitlines()[-1], second["new_text"].splitlines()[-1]) == ("end", "End")
    assert second["old_start"] == 19
    assert display.diffs("") == []
    (gone,) = display.diffs(unified_diff("x\n", None, "a"))
    assert (gone["path"], gone["old_text"], gone["new_text"]) == ("a", "x", "")


@pytest.mark.req("wire:S63")
def test_only_what_is_unusual_about_a_command_is_noted() -> None:
    usual = confined_note(Mode.ASK, Confine.AUTO, "off", asked=False)
    assert usual in display.USUAL
    names = Names()

    def shown(*notes: str) -> list[Any]:
        return names.approval(Approval("shell", "run ls", "ls", notes=notes, effect=Effect.EXECUTE)).display

    command = {"type": "shell", "language": "bash", "command": "ls"}
    assert shown(usual) == [command]
    assert shown(usual, "NOT SANDBOXED") == [command, display.brief("NOT SANDBOXED")]


@pytest.mark.req("wire:T5", "wire:S50")
async def test_a_command_for_the_background_is_asked_for_as_one(ours: tuple[Tool, ...], tmp_path: Path) -> None:
    tool = next(tool for tool in Names().tools(ours) if tool.spec.name == "Shell")
    given = {"command": "serve", "run_in_background": True, "description": "serves"}
    prepared = await tool.prepare(given, CallScope(str(tmp_path), confine=Confine.OFF))
    asked = Approval("shell", prepared.title, prepared.command, notes=prepared.notes, effect=Effect.EXECUTE)
    shown = Names().approval(asked)
    assert (shown.action, shown.description) == ("run command", "Run background command `serve`")


@pytest.mark.req("wire:S50")
def test_a_plan_is_shown_whole_before_somebody_agrees() -> None:
    names = Names()
    shown = names.approval(Approval("exit_plan_mode", "leave plan mode", plan="1. look"))
    assert (shown.sender, shown.action) == ("ExitPlanMode", "ExitPlanMode")
    assert shown.display == [display.brief("1. look")]


# --- a thread of several protocols ------------------------------------------------------------------------------------
async def test_a_thread_begun_elsewhere_goes_on_under_kimis_names(connect: Connect, process: Process) -> None:
    tool = FakeTool("shell", effect=Effect.EXECUTE)
    thread = await process.thread()
    await process.run(thread, GatedProvider(call("shell", '{"command": "ls"}'), text("end")), [tool])
    model = GatedProvider(text("seen"))
    peer = connect(model, [tool], thread=thread)
    told = await peer.call("replay")
    assert payloads(told, "ToolCall")[0]["function"] == {"name": "Shell", "arguments": '{"command": "ls"}'}
    await peer.prompt()
    calls = [item.body for item in model.requests[0].items if isinstance(item.body, ToolCall)]
    assert [(made.name, made.own) for made in calls] == [("Shell", "shell")]


async def test_a_thread_begun_on_wire_goes_on_elsewhere(connect: Connect, process: Process) -> None:
    tool = FakeTool("shell", effect=Effect.EXECUTE)
    peer = connect(GatedProvider(call("Shell", '{"command": "ls"}'), text("end")), [tool], mode=Mode.ALLOW)
    await peer.prompt()
    model = GatedProvider(call("shell", '{"command": "ls"}', "c2"), text("seen"))
    await process.run(peer.thread, model, [tool])
    made = await process.bodies(peer.thread, ToolCall)
    assert [tool_of(one) for one in made] == ["shell", "shell"]
    assert tool.ran == [{"command": "ls", "timeout_s": 60}, {"command": "ls"}]


@pytest.mark.req("wire:T7")
@pytest.mark.parametrize(("theirs", "own"), [("explore", "explorer"), ("plan", "planner"), ("coder", "coder")])
async def test_kimis_types_of_subagents_are_ours_and_told_by_their_own_names(
    connect: Connect, theirs: str, own: str
) -> None:
    given = f'{{"description": "d", "prompt": "p", "subagent_type": "{theirs}"}}'
    model = GatedProvider(call("Agent", given, "t1"), text("found"), text("done"))
    peer = connect(model, [TaskTool()])
    heard = await peer.prompt()
    inner = payloads(heard, "SubagentEvent")
    assert {said["subagent_type"] for said in inner} == {theirs}
    assert payloads(heard, "ToolResult")[0]["return_value"]["is_error"] is False
    child = (await peer.process.journal.thread(inner[0]["agent_id"])).settings
    assert child.agent == own
    (offered,) = model.requests[0].tools
    assert theirs in offered.parameters["properties"]["subagent_type"]["description"]
