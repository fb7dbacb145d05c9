"""Answers by a schema: what fits, what the model is told, and when the turn gives up."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest

from quintet.domain.errors import Invalid
from quintet.domain.item import UserMessage, text_of
from quintet.domain.turn import TurnState
from quintet.engine.answer_form import MORE_TRIES, SCHEMA_LIMIT, AnswerForm, bare
from tests.fakes.engine import ME, Process, parts
from tests.fakes.providers import Gate, GatedProvider, call, text
from tests.fakes.tools import FakeTool
from tests.fakes.waiting import soon

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLength": 1}, "count": {"type": "integer", "minimum": 0}},
    "required": ["name"],
    "additionalProperties": False,
}


def form(schema: Any = SCHEMA) -> AnswerForm:
    return AnswerForm(json.dumps(schema).encode(), "form.json")


@pytest.mark.req("models:O1")
@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        ('{"name": "x", "count": 3}', ""),
        ('```json\n{"name": "x"}\n```', ""),
        ('  \n{"name": "x"}\n', ""),
        ('Here it is: {"name": "x"}', "it is not JSON"),
        ("", "it is not JSON"),
        ('{"name": "x"} {"name": "y"}', "it is not JSON"),
        ('{"name": NaN}', "it is not JSON"),
        ("[" * 100_000, "it is not JSON"),
        ('{"count": 3}', "name"),
        ('{"name": ""}', "name"),
        ('{"name": "x", "count": "3"}', "integer"),
        ('{"name": "x", "more": 1}', "properties"),
        ("[]", "object"),
    ],
)
def test_what_fits_and_what_does_not(answer: str, wrong: str) -> None:
    said = form().wrong_with(answer)
    assert (wrong in said) if wrong else said == "", said


def test_references_within_the_schema_are_followed() -> None:
    own = form({"$defs": {"n": {"type": "integer"}}, "type": "array", "items": {"$ref": "#/$defs/n"}})
    assert own.wrong_with("[1, 2]") == ""
    assert own.wrong_with('["a"]') != ""


@pytest.mark.req("models:O3")
@pytest.mark.parametrize(
    "schema",
    [
        b"no json",
        b"[]",
        b'{"type": "no such type"}',
        b'{"pattern": "("}',
        b'{"$ref": "#/nowhere"}',
        b'{"$ref": "http://127.0.0.1:9/x"}',
        b'{"items": {"$ref": "file:///etc/passwd"}}',
        b'{"$id": "http://127.0.0.1:9/a", "items": {"$id": "b", "$ref": "#nowhere"}}',
        b'{"$id": "http://127.0.0.1:9/a", "allOf": [{"$ref": "other.json"}]}',
        b" " * (SCHEMA_LIMIT + 1),
        b'{"a":' * 20_000,
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_and_nothing_is_opened(
    schema: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(*_: object, **__: object) -> None:
        raise AssertionError("an address was opened")

    monkeypatch.setattr(socket, "create_connection", opened)
    monkeypatch.setattr("urllib.request.urlopen", opened)
    with pytest.raises(Invalid, match=r"form\.json"):
        AnswerForm(schema, "form.json")


def test_the_words_for_the_model_are_the_same_however_the_schema_is_ordered() -> None:
    assert form({"type": "object", "required": ["a"]}).words == form({"required": ["a"], "type": "object"}).words


@pytest.mark.req("models:O1")
async def test_the_model_is_told_the_form_and_what_is_wrong_and_may_try_again(one: Process) -> None:
    provider = GatedProvider(call("look"), text("no"), text('{"name": 3}'), text('{"name": "x"}'))
    thread = await one.thread()
    turn = await one.run(thread, provider, [FakeTool("look")], answer_form=form())
    assert turn.state is TurnState.DONE
    assert len(provider.requests) == 4
    assert form().words in provider.requests[0].instructions
    told = [text_of(body) for body in await one.bodies(thread, UserMessage)][1:]
    assert ["not JSON" in told[0], "must be string" in told[1]] == [True, True]
    assert text_of(provider.requests[-1].items[-1].body) == told[1]


@pytest.mark.req("models:O2")
async def test_after_two_more_tries_the_turn_fails_in_words(one: Process) -> None:
    provider = GatedProvider(*[text("no")] * 9)
    turn = await one.run(await one.thread(), provider, answer_form=form())
    assert turn.state is TurnState.FAILED
    assert turn.error is not None
    assert turn.error.code == "answer_unfit"
    assert "after 3 tries: it is not JSON" in turn.error.message
    assert len(provider.requests) == MORE_TRIES + 1


async def test_words_before_a_steer_are_not_the_answer_yet(one: Process) -> None:
    gate = Gate()
    provider = GatedProvider([gate, *text("thinking aloud")], text('{"name": "x"}'))
    thread = await one.thread()
    started = await one.start(thread, provider, answer_form=form())
    await gate.stopped()
    await soon(one.turns.steer(thread, parts("be quick"), ME))
    gate.open()
    assert (await one.ended(started.turn.id)).state is TurnState.DONE
    assert len(await one.bodies(thread, UserMessage)) == 2


def test_only_a_fence_around_everything_is_taken_off() -> None:
    assert bare("```json\n1\n```") == "1"
    assert bare("see ```json\n1\n```") == "see ```json\n1\n```"
