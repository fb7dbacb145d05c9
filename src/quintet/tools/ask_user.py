"""The tool `ask_user`: one to four questions with answers to choose from, put to whoever can answer."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from quintet.domain.errors import Invalid
from quintet.domain.interaction import Option, QuestionItem
from quintet.domain.item import ResultStatus
from quintet.domain.ports import ToolContext
from quintet.domain.tool import CallScope, Prepared, ToolOutcome, ToolSpec
from quintet.tools.arguments import Arguments, checked, digest, one_line, plain

SPEC = ToolSpec(
    "ask_user",
    "Ask the person one to four questions, each with two to four answers to choose from. Use it when you cannot go on "
    "well without their choice.",
    {
        "type": "object",
        "properties": {
            "questions": {
                "type": "array",
                "minItems": 1,
                "maxItems": 4,
                "items": {
                    "type": "object",
                    "properties": {
                        "question": {"type": "string"},
                        "header": {"type": "string", "description": "A word or two above the question."},
                        "options": {
                            "type": "array",
                            "minItems": 2,
                            "maxItems": 4,
                            "items": {
                                "type": "object",
                                "properties": {"label": {"type": "string"}, "description": {"type": "string"}},
                                "required": ["label"],
                                "additionalProperties": False,
                            },
                        },
                        "multiple": {"type": "boolean", "description": "Several answers may be chosen."},
                    },
                    "required": ["question", "options"],
                    "additionalProperties": False,
                },
            }
        },
        "required": ["questions"],
        "additionalProperties": False,
    },
)

Words = Annotated[str, Meta(min_length=1, max_length=2_000)]


class Choice(Arguments, frozen=True):
    label: Words
    description: str = ""


class Asked(Arguments, frozen=True):
    question: Words
    options: Annotated[tuple[Choice, ...], Meta(min_length=2, max_length=4)]
    header: str = ""
    multiple: bool = False


class AskArguments(Arguments, frozen=True):
    questions: Annotated[tuple[Asked, ...], Meta(min_length=1, max_length=4)]


class AskUserTool:
    @property
    def spec(self) -> ToolSpec:
        return SPEC

    async def prepare(self, arguments: dict[str, Any], scope: CallScope) -> Prepared:
        given = checked("ask_user", arguments, AskArguments)
        for asked in given.questions:
            if len({choice.label for choice in asked.options}) < len(asked.options):
                raise Invalid(f"ask_user: two options of {one_line(asked.question, 60)!r} have the same label.")
        normal = plain(given)
        title = one_line(f"ask {given.questions[0].question}")
        return Prepared(title, normal, cwd=scope.cwd, digest=digest("ask_user", normal, scope.cwd))

    async def run(self, prepared: Prepared, context: ToolContext) -> ToolOutcome:
        given = checked("ask_user", prepared.arguments, AskArguments)
        answers = await context.ask([_question(asked) for asked in given.questions])
        if answers is None:
            words = "The person did not answer. Go on without the answer, or say what you need."
            return ToolOutcome(words, ResultStatus.DENIED, "not answered")
        pairs = zip(given.questions, answers, strict=False)
        text = "\n".join(f"{asked.question} -> {', '.join(chosen) or '(nothing chosen)'}" for asked, chosen in pairs)
        shown = [{"question": a.question, "chosen": list(c)} for a, c in zip(given.questions, answers, strict=False)]
        return ToolOutcome(
            text,
            message=one_line("; ".join(", ".join(chosen) for chosen in answers)),
            display=({"type": "answers", "items": shown},),
        )


def _question(asked: Asked) -> QuestionItem:
    options = tuple(Option(choice.label, choice.description) for choice in asked.options)
    return QuestionItem(asked.question, options, asked.header, asked.multiple)
