"""ui/question and ui/answerQuestion: what a turn waits for, put to the person; the answer becomes a decision."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from quintet.domain.errors import AlreadyResolved, NotFound
from quintet.domain.grant import Scope
from quintet.domain.interaction import Approval, Interaction, Question, Verdict
from quintet.domain.shown import shown
from quintet.engine.interactions import Answer
from quintet.protocols.kward import models as wire
from quintet.protocols.kward.client import Client, Opened, thread_of
from quintet.protocols.kward.house import ME
from quintet.rpc.call import Call
from quintet.rpc.connection import Connection
from quintet.rpc.rows import Family

QUESTIONS = Family("questions", form="either")
Given = dict[str, Any]
ALLOW, ALWAYS, DENY = "Allow", "Allow for this session", "Deny"


async def ask(connection: Connection[Client], session: Opened, asked: Interaction) -> None:
    questions = _questions(asked)
    if questions:
        await connection.notify("ui/question", wire.QuestionAsked(session.id, asked.id, questions))


@QUESTIONS.method(
    "ui/answerQuestion",
    params=wire.AnswerParams,
    result=wire.Ok,
    urgent=True,
    summary="What the person chose; null or an empty list: nothing. A second answer changes nothing.",
)
async def answer_question(call: Call[Client], params: wire.AnswerParams) -> wire.Ok:
    house = call.state.house
    session = call.state.session(params.session_id)
    with suppress(NotFound, AlreadyResolved):
        asked = await house.feed.journal.interaction(params.question_request_id)
        thread = await thread_of(house, session)
        if asked.root == thread.root and asked.decision is None:
            await house.interactions.answer(asked.id, _answer(asked, params.answers), ME)
    return wire.Ok()


def _questions(asked: Interaction) -> list[Given]:
    match asked.request:
        case Question(items=items):
            return [
                {
                    "question": item.text,
                    "header": item.header or "Question",
                    "options": [{"label": o.label, "description": o.description or o.label} for o in item.options],
                }
                for item in items
            ]
        case Approval() as approval:
            return [{"question": _whole(approval), "header": "Approval", "options": _choices(approval)}]
    return []


def _whole(asked: Approval) -> str:
    """Everything that would happen: nobody agrees to what they cannot see."""
    lines = [f"Allow this? {shown(asked.title)}"]
    if asked.command:
        lines += ["Command:", shown(asked.command)]
    lines += [f"{name}: {shown(value)}" for name, value in (("In", asked.cwd), ("On", asked.host)) if value]
    if asked.paths:
        lines.append(f"Files: {', '.join(map(shown, asked.paths))}")
    lines += [shown(text) for text in (asked.diff, asked.plan, asked.reason, *asked.notes) if text]
    return "\n".join(lines)


def _choices(asked: Approval) -> list[Given]:
    options = [{"label": ALLOW, "description": "Run it, this once."}]
    if asked.broad or any(offer.scope is Scope.THREAD for offer in asked.offers):
        options.append({"label": ALWAYS, "description": "Run it, and the like, without asking again."})
    return [*options, {"label": DENY, "description": "Do not run it."}]


def _answer(asked: Interaction, given: Any) -> Answer:
    rows = [row for row in given if isinstance(row, dict)] if isinstance(given, list) else []
    chosen = [str(row.get("answer") or "") for row in rows]
    match asked.request:
        case Approval() as approval:
            return _decision(approval, chosen[0] if chosen else "")
        case Question(items=items):
            by_text = {str(row.get("question", "")): str(row.get("answer") or "") for row in rows}
            places = [by_text.get(item.text, chosen[n] if n < len(chosen) else "") for n, item in enumerate(items)]
            if any(places):
                return Answer(Verdict.ANSWER, answers=tuple((words,) if words else () for words in places))
    return Answer(Verdict.DENY, "the client gave no answer")


def _decision(asked: Approval, word: str) -> Answer:
    if word == ALLOW:
        return Answer(Verdict.ALLOW)
    if word != ALWAYS:
        return Answer(Verdict.DENY, "" if word in ("", DENY) else word)
    exact = any(offer.scope is Scope.THREAD for offer in asked.offers)
    return Answer(Verdict.ALLOW, remember=Scope.THREAD, protocol_only=True, broad=asked.broad and not exact)
