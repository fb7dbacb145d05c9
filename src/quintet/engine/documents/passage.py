"""Passages: a thread's visible items as a document tells them. Pure; knows neither Markdown nor HTML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum

import msgspec

from quintet.domain.item import (
    AssistantMessage,
    Damaged,
    Item,
    Media,
    Part,
    Reasoning,
    ResultStatus,
    Summary,
    TextPart,
    ToolCall,
    ToolResult,
    UserMessage,
    named,
)
from quintet.domain.shown import spelled_out
from quintet.domain.thread import Thread


class Form(Enum):
    PROSE = "prose"  # words that may be Markdown
    VERBATIM = "verbatim"  # input, output, diffs: nothing in it means anything


class Passage(msgspec.Struct, frozen=True):
    heading: str
    at_ms: int
    pieces: tuple[tuple[Form, str], ...]


def passages(thread: Thread, items: Iterable[Item]) -> Iterator[Passage]:
    """What a person sees of the thread; what was reverted is left out."""
    for item in items:
        if not thread.view.is_hidden(item.ordinal):
            heading, pieces = _told(item)
            shown = tuple((form, spelled_out(text.replace("\r\n", "\n"))) for form, text in pieces if text)
            yield Passage(spelled_out(" ".join(heading.split())), item.at_ms, shown)


def _told(item: Item) -> tuple[str, list[tuple[Form, str]]]:
    match item.body:
        case UserMessage(parts=parts, notice=notice) if notice:
            return "Notice", [(Form.PROSE, _words(p)) for p in parts]
        case UserMessage(parts=parts, steered=steered):
            return "You, meanwhile" if steered else "You", [(Form.PROSE, _words(p)) for p in parts]
        case AssistantMessage(text=text, partial=partial):
            return "Assistant (cut off)" if partial else "Assistant", [(Form.PROSE, text)]
        case Reasoning(text=text):
            return "Thinking", [(Form.PROSE, text)]
        case Summary(text=text):
            return "Summary of what came before", [(Form.PROSE, text)]
        case ToolCall(name=name, input=given):
            return f"Calls {name}", [(Form.VERBATIM, given)]
        case ToolResult() as result:
            return _result_heading(result), _result_pieces(result)
        case Damaged():
            return "Damaged", [(Form.PROSE, "What stood here no longer matches its checksum.")]


def _words(part: Part) -> str:
    return part.text if isinstance(part, TextPart) else _elsewhere(part)


def _elsewhere(part: Media) -> str:
    return f"{named(part)[:-1]}: not in this document]"


def _result_heading(result: ToolResult) -> str:
    state = "" if result.status is ResultStatus.OK else f" ({result.status.value})"
    return f"Result of {result.name}{state}"


def _result_pieces(result: ToolResult) -> list[tuple[Form, str]]:
    images = [(Form.PROSE, _elsewhere(part)) for part in result.images]
    return [(Form.VERBATIM, result.text), (Form.VERBATIM, result.diff), *images]
