from __future__ import annotations

import json

import pytest

from quintet.config import load_config
from quintet.domain.item import Body, ResultStatus, ToolCall, ToolResult, user_text
from quintet.domain.model import Finish, FinishChunk, ToolInput
from quintet.providers.offline import CONNECT, OfflineProvider
from quintet.providers.offline_language import FORMS
from quintet.providers.settings import ProviderKind
from tests.fakes.requests import all_chunks, calls_in, request_of, text_in, thought_in


async def called(message: str) -> tuple[str, dict]:
    ((_, name, given),) = calls_in(await all_chunks(OfflineProvider(), request_of([user_text(message)])))
    return name, json.loads(given)


async def answered(*bodies: Body, **options) -> str:
    chunks = await all_chunks(OfflineProvider(), request_of(list(bodies), **options))
    assert not calls_in(chunks)
    assert chunks[-1] == FinishChunk(Finish.STOP)
    return text_in(chunks)


@pytest.mark.parametrize(
    ("message", "call"),
    [
        ("read src/app.py", ("read", {"path": "src/app.py"})),
        ("  READ   src/app.py \n", ("read", {"path": "src/app.py"})),
        ('Read "my notes.txt"', ("read", {"path": "my notes.txt"})),
        ("read my notes.txt", ("read", {"path": "my notes.txt"})),
        ("list", ("list", {"path": "."})),
        ("LIST src", ("list", {"path": "src"})),
        ("search TODO", ("grep", {"pattern": "TODO"})),
        ("Search def \\w+ IN *.py", ("grep", {"pattern": "def \\w+", "glob": "*.py"})),
        ("search x in src/**/*.ts", ("grep", {"pattern": "x", "glob": "src/**/*.ts"})),
        ("search x in src", ("grep", {"pattern": "x", "path": "src"})),
        ('search "a in b"', ("grep", {"pattern": "a in b"})),
        ('search "a in b" in src', ("grep", {"pattern": "a in b", "path": "src"})),
        ("search begin in the middle", ("grep", {"pattern": "begin in the middle"})),
        ("run pytest -q | tail", ("shell", {"command": "pytest -q | tail"})),
        ("RUN echo A\necho B", ("shell", {"command": "echo A\necho B"})),
        ("write a.txt: hello", ("write", {"path": "a.txt", "content": "hello"})),
        ("write a.txt:hello", ("write", {"path": "a.txt", "content": "hello"})),
        ("Write a.txt:\none\n  two", ("write", {"path": "a.txt", "content": "one\n  two"})),
        ("write a.txt : b: c", ("write", {"path": "a.txt", "content": "b: c"})),
        ("write a:b.txt: c", ("write", {"path": "a:b.txt", "content": "c"})),
        ("write a.txt:", ("write", {"path": "a.txt", "content": ""})),
        ("write a.txt:   indented", ("write", {"path": "a.txt", "content": "  indented"})),
        ("todo A; B ;; C", ("todo", {"todos": [{"text": t, "status": "pending"} for t in "ABC"]})),
        (
            "ask Tea or coffee? | Tea |Coffee",
            (
                "ask_user",
                {"questions": [{"question": "Tea or coffee?", "options": [{"label": "Tea"}, {"label": "Coffee"}]}]},
            ),
        ),
    ],
)
async def test_each_command_becomes_its_tool_call(message: str, call: tuple[str, dict]):
    assert await called(message) == call


@pytest.mark.parametrize(
    ("message", "path", "old", "new"),
    [
        ("replace foo with bar in a.py", "a.py", "foo", "bar"),
        ("Replace  foo  WITH  bar  IN  a.py", "a.py", "foo", "bar"),
        ("replace a b with c d in e.txt", "e.txt", "a b", "c d"),
        ('replace "x with y" with "in z" in "my file"', "my file", "x with y", "in z"),
        ('replace foo with "" in a.py', "a.py", "foo", ""),
        ("replace x with y in z in f.txt", "f.txt", "x", "y in z"),
    ],
)
async def test_a_replacement_reads_the_file_then_edits_it_then_tells_of_the_edit(message, path, old, new):
    so_far: list[Body] = [user_text(message)]
    steps = [("read", {"path": path}), ("edit", {"path": path, "edits": [{"old": old, "new": new}]})]
    for number, step in enumerate(steps):
        ((_, name, given),) = calls_in(await all_chunks(OfflineProvider(), request_of(so_far)))
        assert (name, json.loads(given)) == step
        result = ToolResult(f"c{number}", name, ResultStatus.OK, f"words of {name}")
        so_far += [ToolCall(f"c{number}", name, given), result]
    assert await answered(*so_far) == "words of edit"


async def test_a_replacement_whose_file_cannot_be_read_goes_no_further():
    read = done("read", {"path": "a"}, "There is no file a.", ResultStatus.ERROR)
    assert await answered(user_text("replace x with y in a"), *read) == "`read` did not work: There is no file a."


async def test_a_call_is_streamed_in_pieces_and_ends_the_step_with_tool_calls():
    chunks = await all_chunks(OfflineProvider(), request_of([user_text("run " + "echo " * 30)]))
    assert sum(isinstance(c, ToolInput) for c in chunks) > 3
    assert chunks[-1] == FinishChunk(Finish.TOOL_CALLS)


async def test_echo_says_the_text_again():
    assert await answered(user_text("eCHo  Hello,  World")) == "Hello,  World"


async def test_think_gives_the_text_as_reasoning():
    chunks = await all_chunks(OfflineProvider(), request_of([user_text("think is it so")]))
    assert thought_in(chunks) == "is it so"
    assert text_in(chunks)


@pytest.mark.parametrize("message", ["help", "HELP me"])
async def test_help_lists_every_command(message: str):
    text = await answered(user_text(message))
    assert all(form in text for form, _ in FORMS)


@pytest.mark.parametrize("message", ["Hello there!", "", "please read a.txt", "reader a.txt"])
async def test_anything_else_is_told_what_this_is_and_how_to_connect_a_model(message: str):
    text = await answered(user_text(message))
    assert "offline model" in text
    assert all(form in text for form, _ in FORMS)
    assert "config.toml" in text
    assert "default_model" in text


def test_the_recipe_for_connecting_a_model_is_a_configuration_that_connects_one(tmp_path):
    recipe = "\n".join(line.strip() for line in CONNECT.split("\n") if line.startswith("    "))
    (tmp_path / "config.toml").write_text(recipe)
    config = load_config(str(tmp_path))
    name = config.default_model.partition("/")[0]
    assert config.providers[name].kind in ProviderKind
    assert all(kind.value in CONNECT for kind in (ProviderKind.OPENAI_RESPONSES, ProviderKind.ANTHROPIC))
    assert "ANTHROPIC_API_KEY" in CONNECT
    assert "api_key_env" in CONNECT


@pytest.mark.parametrize(
    "message",
    ["read", "search", "run", "write", "write a.txt", "replace a by b", "todo ;", "ask What?", "think", "echo"],
)
async def test_a_command_without_its_parts_is_told_its_form(message: str):
    assert "is written `" + message.split()[0] in await answered(user_text(message))


def done(name: str, given: dict, text: str, status: ResultStatus = ResultStatus.OK, **more) -> list[Body]:
    return [ToolCall("c1", name, json.dumps(given)), ToolResult("c1", name, status, text, **more)]


async def test_a_result_is_answered_with_what_it_really_says():
    read = done("read", {"path": "a.txt"}, "the very words")
    assert await answered(user_text("read a.txt"), *read) == "a.txt:\n\nthe very words"
    run = done("shell", {"command": "ls"}, "a.txt\n", message="exit code 0")
    assert await answered(user_text("run ls"), *run) == "`ls` ended with exit code 0.\n\na.txt\n"
    write = done("write", {"path": "a"}, "Created a.", diff="+++ b/a")
    assert await answered(user_text("write a: x"), *write) == "Created a."  # whoever watches is shown the diff


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (ResultStatus.DENIED, "not allowed, so nothing was done"),
        (ResultStatus.ERROR, "did not work"),
        (ResultStatus.CANCELLED, "was cancelled"),
        (ResultStatus.UNKNOWN, "Nobody knows whether"),
    ],
)
async def test_a_call_that_came_to_nothing_is_told_as_such(status: ResultStatus, words: str):
    text = await answered(user_text("run ls"), *done("shell", {"command": "ls"}, "the reason", status))
    assert words in text
    assert "the reason" in text


async def test_a_huge_result_is_clipped_and_says_so():
    text = await answered(user_text("read a"), *done("read", {"path": "a"}, "x" * 50_000))
    assert len(text) < 7_000
    assert "44000 more characters" in text


async def test_only_the_last_message_counts_also_when_it_steers():
    bodies = [user_text("read a.txt"), *done("read", {"path": "a.txt"}, "…"), user_text("list src", steered=True)]
    ((_, name, given),) = calls_in(await all_chunks(OfflineProvider(), request_of(bodies)))
    assert (name, json.loads(given)) == ("list", {"path": "src"})


async def test_a_result_of_an_earlier_command_is_not_taken_for_the_last_one():
    call, result = done("read", {"path": "a.txt"}, "…")
    bodies = [user_text("read a.txt"), call, user_text("echo hi", steered=True), result]
    assert await answered(*bodies) == "hi"


async def test_a_tool_that_is_not_offered_is_not_called():
    assert "`shell`, which is not offered" in await answered(user_text("run ls"), tools=("read",))
