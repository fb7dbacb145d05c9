"""Arguments of Kimi's tools as those of ours, and back. Pure. An argument that the form does not name counts for
nothing, as it does there; one that it names and that cannot be carried over is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from quintet.domain.errors import Invalid

Given = dict[str, Any]
Map = Callable[[Given], Given]

LINES = 1_000  # at once, and counted from the end
SECONDS = 60  # for a command, unless said
MOST_SECONDS = 300  # for one that is waited for
AGENTS = {"explore": "explorer", "plan": "planner"}  # Kimi's names of those that are built in


def renamed(names: Mapping[str, str]) -> tuple[Map, Map]:
    """Both ways, by a table of names."""
    back = {ours: theirs for theirs, ours in names.items()}

    def inward(given: Given) -> Given:
        return _each(given, names)

    def outward(given: Given) -> Given:
        return {back.get(name, name): value for name, value in given.items()}

    return inward, outward


_SHELL_IN, shell_outward = renamed(
    {
        "command": "command",
        "timeout": "timeout_s",
        "run_in_background": "background",
        "description": "description",
        "network": "network",
    }
)


def shell_inward(given: Given) -> Given:
    made = {"timeout_s": SECONDS, **_SHELL_IN(given)}
    seconds = made["timeout_s"]
    if not made.get("command"):
        raise Invalid("Command cannot be empty.")
    if made.get("background"):
        if not str(made.get("description", "")).strip():
            raise Invalid("description is required when run_in_background is true.")
    elif isinstance(seconds, int | float) and seconds > MOST_SECONDS:
        raise Invalid(
            f"timeout must be <= {MOST_SECONDS}s for a command that is waited for; use run_in_background=true."
        )
    return made


_LINES_IN, _LINES_OUT = renamed({"path": "path", "line_offset": "from_line", "n_lines": "lines"})


def lines_inward(given: Given) -> Given:
    offset, wanted = given.get("line_offset"), given.get("n_lines")
    if offset == 0:
        raise Invalid("line_offset cannot be 0; use 1 for the first line or -1 for the last line.")
    if isinstance(offset, int) and offset < -LINES:
        raise Invalid(f"line_offset cannot be less than -{LINES}. Count from the beginning instead.")
    made = _LINES_IN(given)
    if not isinstance(wanted, int) or wanted > LINES:
        made["lines"] = LINES if wanted is None or isinstance(wanted, int) else wanted
    return made | {"numbered": True}


def lines_outward(given: Given) -> Given:
    return {name: value for name, value in _LINES_OUT(given).items() if name != "numbered"}


def write_inward(given: Given) -> Given:
    made = _each(given, {"path": "path", "content": "content"})
    mode = given.get("mode")
    if mode not in (None, "overwrite", "append"):
        raise Invalid(f"mode is `overwrite` or `append`, not {str(mode)[:60]!r}.")
    return made | {"append": True} if mode == "append" else made


def write_outward(given: Given) -> Given:
    made = dict(given)
    return made | {"mode": "append"} if made.pop("append", False) else made


def edit_inward(given: Given) -> Given:
    edits = given.get("edit")
    rows: list[Any] = edits if isinstance(edits, list) else [edits]
    if not all(isinstance(row, dict) for row in rows):
        raise Invalid("edit is one object with `old` and `new`, or a list of them.")
    made = [_each(row, {"old": "old", "new": "new", "replace_all": "all"}) for row in rows]
    return {"path": given.get("path"), "edits": made, "unread": True}


def edit_outward(given: Given) -> Given:
    back = {"old": "old", "new": "new", "all": "replace_all"}
    edits = [_each(row, back) for row in given["edits"]]
    return {"path": given["path"], "edit": edits[0] if len(edits) == 1 else edits}


def todo_inward(given: Given) -> Given:
    if given.get("todos") is None:
        return {}  # what is on the list
    return _rows(given, "todos", {"title": "text", "status": "status"})


def todo_outward(given: Given) -> Given:
    if given.get("todos") is None:
        return {}
    return {"todos": [{"title": row["text"], "status": row.get("status", "pending")} for row in given["todos"]]}


_QUESTION = {"question": "question", "header": "header", "options": "options", "multi_select": "multiple"}


def ask_inward(given: Given) -> Given:
    return _rows(given, "questions", _QUESTION)


def ask_outward(given: Given) -> Given:
    back = {ours: theirs for theirs, ours in _QUESTION.items()}
    return {"questions": [_each(row, back) for row in given["questions"]]}


_OUTPUT_IN, _OUTPUT_OUT = renamed({"task_id": "id", "wait_s": "wait_s"})


def output_inward(given: Given) -> Given:
    rest = dict(given)
    block, timeout = rest.pop("block", False), rest.pop("timeout", None)
    if block:
        rest["wait_s"] = min(timeout if isinstance(timeout, int | float) else 30, 60)
    return _OUTPUT_IN(rest)


def output_outward(given: Given) -> Given:
    wait_s = given.get("wait_s", 0)
    made = _OUTPUT_OUT({"id": given.get("id", "")})
    return made | {"block": True, "timeout": wait_s} if wait_s else made


_TASK_IN, _TASK_OUT = renamed(
    {
        "description": "description",
        "prompt": "prompt",
        "subagent_type": "agent",
        "resume": "resume",
        "run_in_background": "background",
    },
)


def task_inward(given: Given) -> Given:
    made = _TASK_IN(given)
    agent = made.get("agent")
    return made | {"agent": AGENTS.get(agent, agent)} if agent and isinstance(agent, str) else made


def task_outward(given: Given) -> Given:
    made = _TASK_OUT(given)
    return made | {"subagent_type": agent_type(made["subagent_type"])} if made.get("subagent_type") else made


def agent_type(name: str) -> str:
    """What Kimi's clients call an agent of ours."""
    return next((theirs for theirs, ours in AGENTS.items() if ours == name), name)


def tasks_inward(given: Given) -> Given:
    return {"all": True} if given.get("active_only") is False else {}


def tasks_outward(given: Given) -> Given:
    return {"active_only": False} if given.get("all") else {}


def _rows(given: Given, name: str, names: Mapping[str, str]) -> Given:
    rows = given.get(name)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise Invalid(f"`{name}` must be a list of objects.")
    return {name: [_each(row, names) for row in rows]}


def _each(row: Given, names: Mapping[str, str]) -> Given:
    return {names[name]: value for name, value in row.items() if name in names and value is not None}
