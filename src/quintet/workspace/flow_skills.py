"""The flow of a skill: the first chart in its SKILL.md, read by whoever knows the chart's language. Runs nothing."""

from __future__ import annotations

import re

from quintet.domain.errors import Invalid
from quintet.domain.flow import Flow, wrong
from quintet.workspace import flow_d2, flow_mermaid
from quintet.workspace.skills import Skill, digest_of, text_of

CHARACTERS_AT_MOST = 100_000
LINE_AT_MOST = 10_000
READERS = {"mermaid": flow_mermaid.read, "d2": flow_d2.read}
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})(.*)")


def flow_in(text: str) -> Flow:
    """The first Mermaid or D2 block of a Markdown text; lines are counted from the text's first."""
    if len(text) > CHARACTERS_AT_MOST:
        raise Invalid(
            f"The text with the chart is longer than {CHARACTERS_AT_MOST} characters.",
            next_step="Make it shorter, or put what does not belong to the chart into other files.",
        )
    lines = re.split(r"\r\n|\r|\n", text)
    number = 0
    while number < len(lines):
        opened = _FENCE.fullmatch(lines[number])
        number += 1
        if opened is None:
            continue
        first, language = number, _language(opened[2])
        while number < len(lines) and not _closes(lines[number], opened[1]):
            number += 1
        if language in READERS:
            if number == len(lines):
                raise wrong(first, f"the {language} block is not closed.")
            return READERS[language](_bounded(lines[first:number], first + 1), first + 1)
        number += 1
    raise Invalid(
        "There is no chart in the skill: a flow needs one in a code block.",
        next_step="Add a code block that begins with ```mermaid or ```d2.",
    )


def flow_of(skill: Skill) -> tuple[Flow, str]:
    """The flow and the digest of the skill it was read from. Blocking."""
    before = digest_of(skill)
    flow = flow_in(text_of(skill, 4 * CHARACTERS_AT_MOST + 4))
    if digest_of(skill) != before:
        raise Invalid(f"The skill {skill.name} changed while it was read.", next_step="Run the flow again.")
    return flow, before


def _bounded(lines: list[str], first: int) -> list[str]:
    for number, line in enumerate(lines, first):
        if len(line) > LINE_AT_MOST:
            raise wrong(number, f"it is longer than {LINE_AT_MOST} characters.")
    return lines


def _language(info: str) -> str:
    words = info.split()
    return words[0].strip("{}").lower() if words else ""


def _closes(line: str, fence: str) -> bool:
    marks = line.strip()
    return len(marks) >= len(fence) and not marks.strip(fence[0])
