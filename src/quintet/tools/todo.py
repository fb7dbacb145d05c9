"""The tool `todo`: the thread's list of things to do, replaced as a whole."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from quintet.domain.ports import ToolContext
from quintet.domain.tool import CallScope, Prepared, Todo, ToolOutcome, ToolSpec
from quintet.tools.arguments import Arguments, checked, digest, plain

SPEC = ToolSpec(
    "todo",
    "Keep the list of things to do in this thread, for work of several parts. Always send the whole list; it replaces "
    "the one before.",
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
        "required": ["todos"],
        "additionalProperties": False,
    },
)
_MARKS = {"pending": "[ ]", "in_progress": "[~]", "done": "[x]"}


class Entry(Arguments, frozen=True):
    text: Annotated[str, Meta(min_length=1, max_length=1_000)]
    status: Literal["pending", "in_progress", "done"] = "pending"


class TodoArguments(Arguments, frozen=True):
    todos: Annotated[tuple[Entry, ...], Meta(max_length=100)]


class TodoTool:
    @property
    def spec(self) -> ToolSpec:
        return SPEC

    async def prepare(self, arguments: dict[str, Any], scope: CallScope) -> Prepared:
        given = checked("todo", arguments, TodoArguments)
        normal = plain(given)
        return Prepared(f"todo: {_count(given)}", normal, cwd=scope.cwd, digest=digest("todo", normal, scope.cwd))

    async def run(self, prepared: Prepared, context: ToolContext) -> ToolOutcome:
        given = checked("todo", prepared.arguments, TodoArguments)
        await context.set_todos([Todo(entry.text, entry.status) for entry in given.todos])
        lines = [f"{_MARKS[entry.status]} {entry.text}" for entry in given.todos]
        items = [{"text": entry.text, "status": entry.status} for entry in given.todos]
        return ToolOutcome(
            "\n".join(lines) or "[the list is empty]",
            message=_count(given),
            display=({"type": "todo", "items": items},),
        )


def _count(given: TodoArguments) -> str:
    done = sum(entry.status == "done" for entry in given.todos)
    return f"{len(given.todos)} thing{'' if len(given.todos) == 1 else 's'} to do, {done} done"
