from __future__ import annotations

import json
from pathlib import Path

import pytest

from quintet.domain.errors import NotConfigured, ProviderFailed
from quintet.domain.item import MediaKind, MediaPart
from quintet.domain.model import (
    Finish,
    FinishChunk,
    MediaChunk,
    ReasoningChunk,
    RetryChunk,
    TextChunk,
    ToolInput,
    ToolStart,
    Usage,
    UsageChunk,
)
from quintet.providers.attempts import Pace
from quintet.providers.echo import EchoProvider
from quintet.providers.echo_script import Unreadable, chunks_of
from quintet.providers.settings import ProviderKind, ProviderSettings
from quintet.providers.table import ModelTable
from tests.fakes.requests import all_chunks, request_of

AT_ONCE = Pace(first_s=0.0)


def test_a_script_is_an_answer_in_pieces_with_its_id_and_its_usage() -> None:
    script = """
    # a comment
    ```
    echo
    id: "m-1"
    Usage: {"input_other": 5, "output": 2, "input_cache_read": 3, "input_cache_creation": 1}
    think: hm
    TEXT: "quoted"
    text:   two blanks stay
    ```
    """
    assert chunks_of(script) == [
        ReasoningChunk("hm"),
        TextChunk("quoted"),
        TextChunk("  two blanks stay"),
        UsageChunk(Usage(9, 2, cached_tokens=3, cache_written_tokens=1)),
        FinishChunk(Finish.STOP, "m-1"),
    ]


def test_usage_and_calls_may_be_written_as_words() -> None:
    assert chunks_of("usage: input_other=5, output=2\ntool_call: id=tc-1 name=Shell") == [
        ToolStart("tc-1", "Shell"),
        UsageChunk(Usage(5, 2, cached_tokens=0, cache_written_tokens=0)),
        FinishChunk(Finish.TOOL_CALLS),
    ]


@pytest.mark.parametrize(
    "call",
    [
        {"id": "tc-1", "name": "Shell", "arguments": '{"command": "ls"}'},
        {"id": "tc-1", "function": {"name": "Shell", "arguments": '{"command": "ls"}'}, "extras": {"a": 1}},
    ],
)
def test_a_call_keeps_its_arguments_as_they_are_written(call: dict[str, object]) -> None:
    assert chunks_of(f"tool_call: {json.dumps(call)}") == [
        ToolStart("tc-1", "Shell", fed=True),
        ToolInput("tc-1", '{"command": "ls"}'),
        FinishChunk(Finish.TOOL_CALLS),
    ]


def test_a_call_may_come_in_parts_of_which_an_empty_one_says_nothing() -> None:
    script = "\n".join(
        [
            'tool_call: {"id": "tc-1", "name": "SetTodoList", "arguments": null}',
            'tool_call_part: {"arguments_part": "{"}',
            'tool_call_part: "todos":',
            "tool_call_part: []}",
            "tool_call_part:",
        ]
    )
    assert chunks_of(script)[0] == ToolStart("tc-1", "SetTodoList")
    texts = [chunk.text for chunk in chunks_of(script) if isinstance(chunk, ToolInput)]
    assert texts == ["{", '"todos":', "[]}", ""]  # the empty one is passed on: clients of scripts count them


@pytest.mark.parametrize("kind", MediaKind)
def test_pictures_sound_and_videos_in_an_answer_come_as_what_they_are(kind: MediaKind) -> None:
    url = f"data:{kind}/x;base64,AAA"
    assert chunks_of(f'{kind}_url: {{"url": "{url}", "id": "i"}}')[0] == MediaChunk(MediaPart(kind, url, label="i"))
    assert chunks_of(f"{kind}_URL: https://h.example/x")[0] == MediaChunk(MediaPart(kind, "https://h.example/x"))
    with pytest.raises(Unreadable, match=f"{kind}_url requires a url"):
        chunks_of(f'{kind}_url: {{"id": "i"}}')


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("bad line without colon", "Invalid echo DSL at line 1: 'bad line without colon'"),
        ("text: a\nshout: b", "Unknown echo DSL kind 'shout' at line 2: 'shout: b'"),
        ("# nothing", "The echo script has no parts."),
        ("usage: output=many\ntext: a", "Usage field 'output' must be an integer, got 'many'"),
        ("tool_call: name=Shell", "tool_call requires string id and name at line 1: 'tool_call: name=Shell'"),
        ("tool_call: [1]", "tool_call payload must be an object, got [1]"),
        ("tool_call_part: x", "tool_call_part before any tool_call at line 1: 'tool_call_part: x'"),
        ("error: soon", "Invalid error spec at line 1: 'error: soon'"),
    ],
)
def test_what_cannot_be_read_is_said_in_the_words_that_others_compare(script: str, words: str) -> None:
    with pytest.raises(Unreadable) as caught:
        chunks_of(script)
    assert str(caught.value) == words


async def test_each_call_plays_the_next_script_and_then_there_is_none() -> None:
    provider = EchoProvider("echo", ["text: one", "text: two"])
    said = [(await all_chunks(provider, request_of()))[0] for _ in range(2)]
    assert said == [TextChunk("one"), TextChunk("two")]
    with pytest.raises(ProviderFailed, match="used up"):
        await all_chunks(provider, request_of())


async def test_an_unreadable_script_fails_the_call_in_its_own_words() -> None:
    with pytest.raises(ProviderFailed) as caught:
        await all_chunks(EchoProvider("echo", ["bad line without colon"]), request_of())
    assert caught.value.line() == "Invalid echo DSL at line 1: 'bad line without colon'"


async def test_a_simulated_failure_is_tried_again_with_the_next_script() -> None:
    provider = EchoProvider("echo", ["error: 429 slow down", "error: connection", "text: there"], pace=AT_ONCE)
    first, second, *said = await all_chunks(provider, request_of())
    assert isinstance(first, RetryChunk)
    assert isinstance(second, RetryChunk)
    assert (first.attempt, second.attempt) == (2, 3)
    assert said[0] == TextChunk("there")


async def test_a_lasting_failure_ends_after_as_many_attempts_as_are_allowed() -> None:
    provider = EchoProvider("echo", ["error: 500"] * 5, max_retries=1, pace=AT_ONCE)
    with pytest.raises(ProviderFailed) as caught:
        await all_chunks(provider, request_of())
    assert caught.value.data["attempts"] == 2


async def test_a_refused_key_is_not_tried_again() -> None:
    provider = EchoProvider("echo", ["error: 401 bad key", "text: never"], pace=AT_ONCE)
    with pytest.raises(ProviderFailed, match="bad key"):
        await all_chunks(provider, request_of())


async def test_a_script_that_is_a_json_array_is_played_as_echo(tmp_path: Path) -> None:
    (tmp_path / "scripts.json").write_text(json.dumps(["text: from the file"]))
    table = ModelTable({"s": ProviderSettings(ProviderKind.SCRIPTED, script=str(tmp_path / "scripts.json"))})
    assert (await all_chunks(table.resolve("s/any")[1], request_of()))[0] == TextChunk("from the file")


def test_a_json_array_of_something_else_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "scripts.json").write_text("[1]")
    table = ModelTable({"s": ProviderSettings(ProviderKind.SCRIPTED, script=str(tmp_path / "scripts.json"))})
    with pytest.raises(NotConfigured, match="must be a JSON array of strings"):
        table.resolve("s/any")
