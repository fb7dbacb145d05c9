"""The tool `read_result`: lines of an earlier result that was too long to be shown whole."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from quintet.domain.excerpt import lines_of
from quintet.domain.ports import Results, ToolContext
from quintet.domain.tool import CallScope, Prepared, ToolOutcome, ToolSpec
from quintet.tools.arguments import Arguments, checked, digest, failed, one_line, plain

LINES = 500
MOST_LINES = 2_000
CHARACTERS = 40_000

SPEC = ToolSpec(
    "read_result",
    "Read lines of an earlier result of which a part was left out. The note in that result names its id and the first "
    "line that is missing. Very long lines are counted as several.",
    {
        "type": "object",
        "properties": {
            "id": {"type": "string", "description": "As the note in the result gives it."},
            "from_line": {"type": "integer", "minimum": 1, "description": "The first line to read, from 1."},
            "lines": {
                "type": "integer",
                "minimum": 1,
                "maximum": MOST_LINES,
                "description": f"How many lines to read, {LINES} unless said.",
            },
        },
        "required": ["id"],
        "additionalProperties": False,
    },
)


class ResultArguments(Arguments, frozen=True):
    id: Annotated[str, Meta(min_length=1, max_length=100)]
    from_line: Annotated[int, Meta(ge=1)] = 1
    lines: Annotated[int, Meta(ge=1, le=MOST_LINES)] = LINES


class ReadResultTool:
    def __init__(self, results: Results) -> None:
        self._results = results

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    async def prepare(self, arguments: dict[str, Any], scope: CallScope) -> Prepared:
        given = checked(SPEC.name, arguments, ResultArguments)
        normal = plain(given)
        title = one_line(f"read the result {given.id} from line {given.from_line}")
        return Prepared(title, normal, cwd=scope.cwd, digest=digest(SPEC.name, normal, scope.cwd))

    async def run(self, prepared: Prepared, context: ToolContext) -> ToolOutcome:
        given = checked(SPEC.name, prepared.arguments, ResultArguments)
        text = await self._results.read(context.thread, given.id)
        if text is None:
            return failed(f"There is no kept result {one_line(given.id, 60)!r}. Run the call again if you need it.")
        lines = lines_of(text)
        if given.from_line > len(lines):
            return failed(f"The result has only {len(lines)} lines.")
        return _told(given, lines)


def _told(given: ResultArguments, lines: list[str]) -> ToolOutcome:
    taken: list[str] = []
    room = CHARACTERS
    for line in lines[given.from_line - 1 : given.from_line - 1 + given.lines]:
        room -= len(line)
        if room < 0:
            break
        taken.append(line)
    last = given.from_line - 1 + len(taken)
    shown = "".join(taken)
    if last < len(lines):
        gap = "" if shown.endswith("\n") else "\n"
        shown += f"{gap}[lines {given.from_line} to {last} of {len(lines)}; read on with from_line={last + 1}]"
    return ToolOutcome(shown, message=f"lines {given.from_line} to {last} of {len(lines)}")
