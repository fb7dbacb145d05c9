"""Arguments of Kimi's tools as those of ours, and back. Pure. What cannot be carried over is refused, not dropped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from quintet.domain.errors import Invalid

Given = dict[str, Any]
Map = Callable[[Given], Given]

GREP_OUTPUT = {"content": "content", "files_with_matches": "files", "count_matches": "count"}
MOST_HITS = 1_000
# Types of files whose names do not end in the word for them.
_ENDINGS = {
    "python": "py",
    "rust": "rs",
    "javascript": "{js,jsx,mjs,cjs}",
    "js": "{js,jsx,mjs,cjs}",
    "ts": "{ts,tsx,mts,cts}",
    "typescript": "{ts,tsx,mts,cts}",
    "markdown": "{md,markdown}",
    "md": "{md,markdown}",
    "cpp": "{cpp,cc,cxx,h,hh,hpp}",
    "c": "{c,h}",
    "yaml": "{yaml,yml}",
    "ruby": "rb",
    "sh": "{sh,bash}",
    "html": "{html,htm}",
}


def renamed(names: Mapping[str, str], *, meaningless: tuple[str, ...] = ()) -> tuple[Map, Map]:
    """Both ways, by a table of names. `meaningless`: may be said and changes nothing here."""
    back = {ours: theirs for theirs, ours in names.items()}

    def inward(given: Given) -> Given:
        made: Given = {}
        for name, value in given.items():
            if name in names and value is not None:
                made[names[name]] = value
            elif name not in names and name not in meaningless:
                raise unknown(name)
        return made

    def outward(given: Given) -> Given:
        return {back.get(name, name): value for name, value in given.items()}

    return inward, outward


def unknown(name: str) -> Invalid:
    return Invalid(f"there is no argument `{name[:60]}`.")


_LINES_IN, _LINES_OUT = renamed({"path": "path", "line_offset": "from_line", "n_lines": "lines"})


def lines_inward(given: Given) -> Given:
    offset = given.get("line_offset")
    if isinstance(offset, int) and offset < 1:
        raise Invalid("line_offset counts from 1; lines cannot be counted from the end here.")
    return _LINES_IN(given)


lines_outward = _LINES_OUT


def write_inward(given: Given) -> Given:
    made = dict(given)
    mode = made.pop("mode", None)
    if mode not in (None, "overwrite", "append"):
        raise Invalid(f"mode is `overwrite` or `append`, not {str(mode)[:60]!r}.")
    return made | {"append": True} if mode == "append" else made


def write_outward(given: Given) -> Given:
    made = dict(given)
    return made | {"mode": "append"} if made.pop("append", False) else made


def edit_inward(given: Given) -> Given:
    edits = given.get("edit")
    rows: list[Any] = edits if isinstance(edits, list) else [edits]
    for name in given:
        if name not in ("path", "edit"):
            raise unknown(name)
    if not all(isinstance(row, dict) for row in rows):
        raise Invalid("edit is one object with `old` and `new`, or a list of them.")
    made = [_each(row, {"old": "old", "new": "new", "replace_all": "all"}) for row in rows]
    return {"path": given.get("path"), "edits": made, "unread": True}


def edit_outward(given: Given) -> Given:
    back = {"old": "old", "new": "new", "all": "replace_all"}
    edits = [_each(row, back) for row in given["edits"]]
    return {"path": given["path"], "edit": edits[0] if len(edits) == 1 else edits}


def todo_inward(given: Given) -> Given:
    return _rows(given, "todos", {"title": "text", "status": "status"})


def todo_outward(given: Given) -> Given:
    return {"todos": [{"title": row["text"], "status": row.get("status", "pending")} for row in given["todos"]]}


_QUESTION = {"question": "question", "header": "header", "options": "options", "multi_select": "multiple"}


def ask_inward(given: Given) -> Given:
    return _rows(given, "questions", _QUESTION)


def ask_outward(given: Given) -> Given:
    back = {ours: theirs for theirs, ours in _QUESTION.items()}
    return {"questions": [_each(row, back) for row in given["questions"]]}


_GREP_IN, _GREP_OUT = renamed(
    {"pattern": "pattern", "path": "path", "glob": "glob", "-i": "ignore_case", "output": "output", "limit": "limit"}
)


def grep_inward(given: Given) -> Given:
    rest = dict(given)
    if rest.pop("multiline", None):
        raise Invalid("multiline is not there: lines are searched one by one.")
    rest.pop("-n", None)  # lines are numbered always
    mode = rest.pop("output_mode", None) or "files_with_matches"
    if mode not in GREP_OUTPUT:
        raise Invalid(f"output_mode is one of {', '.join(GREP_OUTPUT)}.")
    kind, limit = rest.pop("type", None), rest.pop("head_limit", None)
    around = [value for value in (rest.pop(name, None) for name in ("-A", "-B", "-C")) if isinstance(value, int)]
    made = _GREP_IN(rest) | {"output": GREP_OUTPUT[mode]}
    if kind and not made.get("glob"):
        made["glob"] = f"*.{_ENDINGS.get(str(kind), str(kind))}"
    if isinstance(limit, int):
        made["limit"] = min(limit, MOST_HITS) or MOST_HITS
    return made | {"context": max(around)} if around and max(around) > 0 else made


def grep_outward(given: Given) -> Given:
    made = dict(given)
    back = {ours: theirs for theirs, ours in GREP_OUTPUT.items()}
    found = {"output_mode": back.get(made.pop("output", "content"), "content")}
    for ours, theirs in (("context", "-C"), ("limit", "head_limit")):
        if ours in made:
            found[theirs] = made.pop(ours)
    return _GREP_OUT(made) | found


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


_AGENTS = {"plan": "planner"}
_TASK_IN, _TASK_OUT = renamed(
    {
        "description": "description",
        "prompt": "prompt",
        "subagent_type": "agent",
        "resume": "resume",
        "run_in_background": "background",
    },
    meaningless=("timeout", "model"),
)


def task_inward(given: Given) -> Given:
    made = _TASK_IN(given)
    return made | {"agent": _AGENTS.get(made["agent"], made["agent"])} if made.get("agent") else made


task_outward = _TASK_OUT


_TASKS_IN, _ = renamed({"all": "all"}, meaningless=("limit",))


def tasks_inward(given: Given) -> Given:
    rest = dict(given)
    active = rest.pop("active_only", True)
    return _TASKS_IN(rest) | ({"all": True} if active is False else {})


def tasks_outward(given: Given) -> Given:
    return {"active_only": False} if given.get("all") else {}


def _rows(given: Given, name: str, names: Mapping[str, str]) -> Given:
    rows = given.get(name)
    for other in given:
        if other != name:
            raise unknown(other)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise Invalid(f"`{name}` must be a list of objects.")
    return {name: [_each(row, names) for row in rows]}


def _each(row: Given, names: Mapping[str, str]) -> Given:
    for name in row:
        if name not in names:
            raise unknown(name)
    return {names[name]: value for name, value in row.items() if value is not None}
