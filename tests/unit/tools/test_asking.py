"""ask_user and todo: the tools that only talk to their context."""

from __future__ import annotations

import pytest

from quintet.domain.errors import Invalid
from quintet.domain.interaction import Option, QuestionItem
from quintet.domain.item import ResultStatus
from quintet.domain.tool import CallScope, Effect, Todo
from quintet.tools.builtin import builtin_tools
from tests.fakes.tool_context import FakeToolContext

TEA = {"question": "Tea?", "options": [{"label": "Yes", "description": "with milk"}, {"label": "No"}]}


async def asked(tools, workspace, answers):
    context = FakeToolContext(str(workspace), answers=answers)
    prepared = await tools["ask_user"].prepare(
        {"questions": [TEA, {**TEA, "multiple": True}]}, CallScope(str(workspace))
    )
    return context, await tools["ask_user"].run(prepared, context)


async def test_the_answers_are_returned_with_their_questions(tools, workspace):
    context, done = await asked(tools, workspace, (("Yes",), ("Yes", "No")))
    assert context.asked[0] == QuestionItem("Tea?", (Option("Yes", "with milk"), Option("No")))
    assert context.asked[1].multiple
    assert (done.status, done.text) == (ResultStatus.OK, "Tea? -> Yes\nTea? -> Yes, No")


async def test_no_answer_is_told_as_such(tools, workspace):
    _, done = await asked(tools, workspace, None)
    assert done.status is ResultStatus.DENIED
    assert "did not answer" in done.text


@pytest.mark.parametrize(
    "questions",
    [
        [],
        [TEA] * 5,
        [{"question": "Tea?", "options": [{"label": "Yes"}]}],
        [{"question": "Tea?", "options": [{"label": str(n)} for n in range(5)]}],
        [{"question": "Tea?", "options": [{"label": "Yes"}, {"label": "Yes"}]}],
        [{"question": "", "options": TEA["options"]}],
        [{"options": TEA["options"]}],
    ],
)
async def test_one_to_four_questions_of_two_to_four_options(tools, workspace, questions):
    with pytest.raises(Invalid, match="ask_user: "):
        await tools["ask_user"].prepare({"questions": questions}, CallScope(str(workspace)))


async def test_todos_are_set_and_shown(use, context):
    done = await use("todo", todos=[{"text": "a", "status": "done"}, {"text": "b"}])
    assert context.todos == [Todo("a", "done"), Todo("b", "pending")]
    assert (done.text, done.message) == ("[x] a\n[ ] b", "2 things to do, 1 done")
    items = [{"text": "a", "status": "done"}, {"text": "b", "status": "pending"}]
    assert done.display == ({"type": "todo", "items": items},)
    told = await use("todo")
    assert (told.text, told.message, told.display) == (done.text, done.message, ())
    assert context.todos == [Todo("a", "done"), Todo("b", "pending")]
    assert (await use("todo", todos=[])).text == "[the list is empty]"
    assert context.todos == []


@pytest.mark.parametrize("todos", ["x", [{"text": ""}], [{"text": "a", "status": "soon"}], [{"status": "done"}]])
async def test_wrong_todos_are_refused(tools, workspace, todos):
    with pytest.raises(Invalid, match="todo: "):
        await tools["todo"].prepare({"todos": todos}, CallScope(str(workspace)))


def test_every_tool_says_what_it_can_change():
    effects = {tool.spec.name: tool.spec.effect for tool in builtin_tools()}
    assert {name for name, effect in effects.items() if effect is Effect.NONE} == {
        "read",
        "list",
        "grep",
        "read_skill",
        "glob",
        "todo",
        "ask_user",
        "shell_output",
        "shell_stop",
        "background_list",
        "enter_plan_mode",
        "exit_plan_mode",
        "task",
    }
    assert {name for name, effect in effects.items() if effect is Effect.WRITE} == {"write", "edit"}
    assert effects["shell"] is Effect.EXECUTE
    assert effects["web_fetch"] is Effect.NETWORK


@pytest.mark.parametrize("tool", builtin_tools(), ids=lambda tool: tool.spec.name)
def test_every_schema_is_closed_and_names_only_its_properties(tool):
    def check(schema: dict) -> None:
        if schema.get("type") == "object":
            assert schema["additionalProperties"] is False
            assert set(schema.get("required", ())) <= set(schema["properties"])
            for inner in schema["properties"].values():
                check(inner)
        if "items" in schema:
            check(schema["items"])

    check(tool.spec.parameters)
