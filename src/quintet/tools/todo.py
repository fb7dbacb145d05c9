"""The tool `todo`: the thread's list of things to do, replaced as a whole, or told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta

from quintet.domain.ports import ToolContext
from quintet.domain.tool import CallScope, Prepared, Todo, ToolOutcome, ToolSpec
from quintet.tools.arguments import Arguments, checked, digest, plain

SPEC = ToolSpec(
    "todo",
    "Keep the list of things to do in this thread, for work of several parts. Always send the whole list; it replaces "
    "the one before. Without a list you are told the one there is.",
    {
        "type": "object",
        "properties": {
            "todos": {
                "type": "array",
                "maxItems": 100,
                "items": {
                    "type": "object",
                    "properties": {
                        "text": {"type": "string"},
                        "status": {"type": "string", "enum": ["pending", "in_progress", "done"]},
                    },
                    "required": ["text"],
                    "additionalProperties": False,
                },
            }
        },
        "additionalProperties": False,
    },
)
_MARKS = {"pending": "[ ]", "in_progress": "[~]", "done": "[x]"}


class Entry(Arguments, frozen=True):
    text: Annotated[str, Meta(min_length=1, max_length=1_000)]
    status: Literal["pending", "in_progress", "done"] = "pending"


class TodoArguments(Arguments, frozen=True):
    todos: Annotated[tuple[Entry, ...], Meta(max_length=100)] | None = None


class TodoTool:
    @property
    def spec(self) -> ToolSpec:
        return SPEC

    async def prepare(self, arguments: dict[str, Any], scope: CallScope) -> Prepared:
        given = checked("todo", arguments, TodoArguments)
        normal = plain(given)
        title = "look at the list of things to do" if given.todos is None else f"todo: {_count(given.todos)}"
        return Prepared(title, normal, cwd=scope.cwd, digest=digest("todo", normal, scope.cwd))

    async def run(self, prepared: Prepared, context: ToolContext) -> ToolOutcome:
        given = checked("todo", prepared.arguments, TodoArguments)
        if given.todos is None:
            todos: Sequence[Todo] = await context.read_todos()
        else:
            todos = [Todo(entry.text, entry.status) for entry in given.todos]
            await context.set_todos(todos)
        lines = [f"{_MARKS.get(todo.status, '[ ]')} {todo.text}" for todo in todos]
        items = [{"text": todo.text, "status": todo.status} for todo in todos]
        return ToolOutcome(
            "\n".join(lines) or "[the list is empty]",
            message=_count(todos),
            display=() if given.todos is None else ({"type": "todo", "items": items},),
            facts={"items": items},
        )


def _count(todos: Sequence[Entry] | Sequence[Todo]) -> str:
    done = sum(todo.status == "done" for todo in todos)
    return f"{len(todos)} thing{'' if len(todos) == 1 else 's'} to do, {done} done"
