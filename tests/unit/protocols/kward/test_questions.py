"""What a turn asks, put to the person and answered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from quintet.domain.turn import Mode
from quintet.tools.task import TaskTool
from quintet.tools.write import WriteTool
from quintet.workspace.paths import PathGuard
from quintet.workspace.seen import Seen
from tests.fakes.kward_peer import Message, payloads
from tests.fakes.kward_turns import OPTIONS, QUESTION, result_of
from tests.fakes.providers import GatedProvider, call, text
from tests.unit.protocols.kward.conftest import Connect


@pytest.mark.req("kward:103")
@pytest.mark.parametrize(
    "questions",
    [
        [],
        [QUESTION] * 5,
        [QUESTION | {"options": OPTIONS[:1]}],
        [QUESTION | {"options": [{"label": str(n), "description": "d"} for n in range(5)]}],
        [QUESTION | {"multiSelect": True}],
        [QUESTION | {"multiSelect": False}],
        [QUESTION | {"options": [OPTIONS[0] | {"preview": "x"}, OPTIONS[1]]}],
        [QUESTION | {"options": [OPTIONS[0] | {"label": " "}, OPTIONS[1]]}],
        [QUESTION | {"options": [OPTIONS[0] | {"description": ""}, OPTIONS[1]]}],
    ],
)
async def test_a_question_the_client_could_not_show_is_refused(connect: Connect, questions: list[Message]) -> None:
    _, result = await result_of(connect, "ask_user_question", {"questions": questions})
    assert result["result"]["isError"] is True


@pytest.mark.req("kward:103", "kward:104")
async def test_a_question_is_put_trimmed_and_answered_with_a_line_each(connect: Connect) -> None:
    given = {"questions": [QUESTION | {"question": " Which? ", "odd": 1}, QUESTION | {"question": "And?"}]}
    peer = connect(GatedProvider(call("ask_user_question", json.dumps(given)), text("done")))
    session = await peer.session()
    turn = await peer.start(session["id"])
    asked = await peer.told("ui/question")
    assert asked["sessionId"] == session["id"]
    assert asked["questions"] == [QUESTION, QUESTION | {"question": "And?"}]
    answers = [{"question": "And?", "answer": "Blue"}, {"question": "Which?", "answer": "my own words"}]
    for _ in range(2):
        told = await peer.ok(
            "ui/answerQuestion", sessionId=session["id"], questionRequestId=asked["questionRequestId"], answers=answers
        )
        assert told == {"ok": True}
    (result,) = payloads(await peer.finished(turn["id"]), "toolResult")
    assert result["content"] == "Which?: my own words\nAnd?: Blue"
    assert result["result"]["isError"] is False
    unknown = await peer.ok("ui/answerQuestion", sessionId=session["id"], questionRequestId="no such", answers=[])
    assert unknown == {"ok": True}


@pytest.mark.req("kward:104")
@pytest.mark.parametrize("answers", [None, []])
async def test_no_answer_is_a_cancel(connect: Connect, answers: Any) -> None:
    peer = connect(GatedProvider(call("ask_user_question", json.dumps({"questions": [QUESTION]})), text("done")))
    session = await peer.session()
    turn = await peer.start(session["id"])
    asked = await peer.told("ui/question")
    await peer.ok(
        "ui/answerQuestion", sessionId=session["id"], questionRequestId=asked["questionRequestId"], answers=answers
    )
    (result,) = payloads(await peer.finished(turn["id"]), "toolResult")
    assert result["content"] == "Cancelled."
    assert result["result"]["isError"] is True


async def test_where_policy_asks_the_person_is_asked_with_everything_in_sight(connect: Connect) -> None:
    called = call("write_file", json.dumps({"path": "a.txt", "content": "new\n"}))
    peer = connect(GatedProvider(called, text("done"), called, text("done")), mode=Mode.ASK)
    session = await peer.session()
    for word, written in (("Deny", False), ("Allow", True)):
        peer.seen.clear()
        turn = await peer.start(session["id"])
        asked = await peer.told("ui/question")
        (question,) = asked["questions"]
        assert "a.txt" in question["question"]
        assert "+new" in question["question"]
        labels = [option["label"] for option in question["options"]]
        assert labels[0] == "Allow"
        assert labels[-1] == "Deny"
        answers = [{"question": question["question"], "answer": word}]
        given = {"sessionId": session["id"], "questionRequestId": asked["questionRequestId"], "answers": answers}
        await peer.ok("ui/answerQuestion", **given)
        (result,) = payloads(await peer.finished(turn["id"]), "toolResult")
        assert result["result"]["isError"] is not written
        assert Path(peer.work / "a.txt").exists() is written
    assert result["content"].startswith(("Wrote", "Created"))


async def test_what_a_subagent_wants_is_asked_and_the_rest_of_it_is_its_own(connect: Connect) -> None:
    given = json.dumps({"description": "write it", "prompt": "write a.txt"})
    wanted = call("write_file", json.dumps({"path": "a.txt", "content": "new\n"}), "c2")
    provider = GatedProvider(call("task", given), wanted, text("written"), text("done"))
    guard, seen = PathGuard(), Seen()
    peer = connect(provider, [TaskTool(), WriteTool(guard, seen)], mode=Mode.ASK)
    session = await peer.session()
    turn = await peer.start(session["id"])
    asked = await peer.told("ui/question")
    assert "a.txt" in asked["questions"][0]["question"]
    answers = [{"question": "", "answer": "Allow"}]
    given_back = {"sessionId": session["id"], "questionRequestId": asked["questionRequestId"], "answers": answers}
    await peer.ok("ui/answerQuestion", **given_back)
    events = await peer.finished(turn["id"])
    assert [p["toolName"] for p in payloads(events, "toolResult")] == ["task"]
    assert payloads(events, "answer") == [{"content": "done"}]
    assert (peer.work / "a.txt").exists()


async def test_a_declined_call_says_so(connect: Connect) -> None:
    called = call("write_file", json.dumps({"path": "a.txt", "content": "new\n"}))
    peer = connect(GatedProvider(called, text("done")), mode=Mode.READ_ONLY)
    session = await peer.session()
    (result,) = payloads(await peer.turn(session["id"]), "toolResult")
    assert result["content"].startswith("Declined: ")
    told = await peer.ok("initialize")
    assert told["capabilities"]["security"]["canWriteFiles"] is False
