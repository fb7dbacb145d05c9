"""AskUserQuestion: the tool for questions as Kimi's clients and models know it. It asks through the engine."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from quintet.domain.errors import Invalid
from quintet.domain.interaction import Option, QuestionItem
from quintet.domain.ports import ToolContext
from quintet.domain.tool import CallScope, Prepared, ToolOutcome, ToolSpec

NAME = "AskUserQuestion"
NOT_ANSWERED = "The user did not answer. Go on with what you think best, or say what you need."
_OPTION = {
    "type": "object",
    "properties": {"label": {"type": "string"}, "description": {"type": "string"}},
    "required": ["label"],
}
_QUESTION = {
    "type": "object",
    "properties": {
        "question": {"type": "string"},
        "header": {"type": "string", "description": "A word or two above the question."},
        "options": {"type": "array", "minItems": 2, "maxItems": 4, "items": _OPTION},
        "multi_select": {"type": "boolean", "description": "Several answers may be chosen."},
    },
    "required": ["question", "options"],
}
SPEC = ToolSpec(
    NAME,
    "Ask the user one to four questions, each with two to four answers to choose from. Use it when you cannot go on "
    "well without their choice.",
    {
        "type": "object",
        "properties": {"questions": {"type": "array", "minItems": 1, "maxItems": 4, "items": _QUESTION}},
        "required": ["questions"],
    },
)
Words = Annotated[str, Meta(min_length=1, max_length=2_000)]


class _Option(Struct, frozen=True):
    label: Words
    description: str = ""


class _Question(Struct, frozen=True):
    question: Words
    options: Annotated[tuple[_Option, ...], Meta(min_length=2, max_length=4)]
    header: str = ""
    multi_select: bool = False


class _Arguments(Struct, frozen=True):
    questions: Annotated[tuple[_Question, ...], Meta(min_length=1, max_length=4)]


class AskUserQuestion:
    @property
    def spec(self) -> ToolSpec:
        return SPEC

    async def prepare(self, arguments: dict[str, Any], scope: CallScope) -> Prepared:
        given = _checked(arguments)
        if len({asked.question for asked in given.questions}) < len(given.questions):
            raise Invalid(f"{NAME}: two questions are the same.")
        return Prepared(f"ask {given.questions[0].question}", msgspec.to_builtins(given), cwd=scope.cwd)

    async def run(self, prepared: Prepared, context: ToolContext) -> ToolOutcome:
        questions = _checked(prepared.arguments).questions
        chosen = await context.ask(
            [
                QuestionItem(
                    q.question, tuple(Option(o.label, o.description) for o in q.options), q.header, q.multi_select
                )
                for q in questions
            ]
        )
        told: dict[str, Any] = {"answers": {}, "note": NOT_ANSWERED}
        if chosen is not None:
            pairs = zip(questions, chosen, strict=True)
            told = {"answers": {asked.question: ", ".join(labels) for asked, labels in pairs if labels}}
        return ToolOutcome(msgspec.json.encode(told).decode())


def _checked(arguments: dict[str, Any]) -> _Arguments:
    try:
        return msgspec.convert(arguments, _Arguments)
    except msgspec.ValidationError as error:
        raise Invalid(f"{NAME}: {error}.") from None
