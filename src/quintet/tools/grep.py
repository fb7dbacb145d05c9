"""The tool `grep`: lines that match a regular expression. The expression runs in a child that can be killed (ripgrep,
else grep), never in this process.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta

from quintet.domain.errors import Invalid
from quintet.domain.ids import new_id
from quintet.domain.ports import ToolContext
from quintet.domain.tool import CallScope, Prepared, ToolOutcome, ToolSpec
from quintet.tools.arguments import Arguments, checked, digest, failed, one_line, os_words, plain
from quintet.workspace.environment import child_environment, find_program
from quintet.workspace.globs import glob_matches
from quintet.workspace.paths import PathGuard, Place
from quintet.workspace.processes import Cause, Child, Ended, run_child

MATCHES = 200
LINE_LENGTH = 500
OUTPUT_LIMIT = 2 * 1024 * 1024
TIMEOUT_S = 30.0

SPEC = ToolSpec(
    "grep",
    "Search the workspace's files for a regular expression. Returns path:line:text; at most 200 matches.",
    {
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "description": "An extended regular expression."},
            "path": {
                "type": "string",
                "description": "The file or directory to search; the working directory unless said.",
            },
            "glob": {"type": "string", "description": "Only files whose path fits, such as *.py or src/**/*.ts."},
        },
        "required": ["pattern"],
        "additionalProperties": False,
    },
)


class GrepArguments(Arguments, frozen=True):
    pattern: Annotated[str, Meta(min_length=1, max_length=2_000)]
    path: str = "."
    glob: Annotated[str, Meta(max_length=500)] = ""


class GrepTool:
    def __init__(self, guard: PathGuard, environment: Mapping[str, str] | None = None) -> None:
        self._guard = guard
        self._environment = os.environ if environment is None else environment

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    async def prepare(self, arguments: dict[str, Any], scope: CallScope) -> Prepared:
        given = checked("grep", arguments, GrepArguments)
        if any(c in given.pattern + given.glob for c in "\0\n"):
            raise Invalid("grep: pattern and glob are one line each, without NUL bytes.")
        place = self._guard.reading(given.path, scope.cwd)
        normal = plain(given)
        title = one_line(f"search {given.pattern}" + (f" in {given.glob or place.shown}"))
        return Prepared(title, normal, cwd=scope.cwd, paths=(place.path,), digest=digest("grep", normal, scope.cwd))

    async def run(self, prepared: Prepared, context: ToolContext) -> ToolOutcome:
        given = checked("grep", prepared.arguments, GrepArguments)
        environment = child_environment(self._environment, f"{context.thread}:{context.call_id}:{new_id('cal')}")
        taken: dict[str, list[bytes]] = {"stdout": [], "stderr": []}
        try:
            place = self._guard.reading(given.path, prepared.cwd)
            argv = _argv(given, place, environment)
            if argv is None:
                return failed("Neither ripgrep nor grep is installed here.")
            child = Child(argv, prepared.cwd, environment, TIMEOUT_S, OUTPUT_LIMIT)
            ended = await run_child(child, lambda stream, data: taken[stream].append(data))
        except Invalid as error:
            return failed(error.line(), error.message)
        except OSError as error:
            return failed(os_words(error, given.path))
        errors = b"".join(taken["stderr"]).decode("utf-8", "replace").strip()
        if ended.cause is Cause.EXITED and ended.code > 1 and not taken["stdout"]:
            return failed(f"The search failed: {one_line(errors, 500) or 'no reason given'}.")
        return self._told(given, ended, b"".join(taken["stdout"]), prepared.cwd)

    def _told(self, given: GrepArguments, ended: Ended, output: bytes, cwd: str) -> ToolOutcome:
        lines = output.decode("utf-8", "replace").split("\n")
        if ended.cause is not Cause.EXITED:
            lines = lines[:-1]  # the last one may be torn
        found = sorted(
            (match for line in lines if (match := _match(line)) and self._wanted(match[0], given, cwd)),
            key=lambda match: (match[0], match[1]),
        )
        shown = [f"{path}:{number}:{text[:LINE_LENGTH]}" for path, number, text in found[:MATCHES]]
        count = f"{len(found)} match{'' if len(found) == 1 else 'es'}"
        notes = []
        if len(found) > MATCHES:
            notes.append(f"{len(found) - MATCHES} more matches are not shown")
        if ended.cause is Cause.TIMEOUT:
            notes.append(f"the search was ended after {TIMEOUT_S:.0f} s; there may be more")
        if ended.cause is Cause.FLOOD:
            notes.append("the search was ended because it found too much; there is more")
        return ToolOutcome("\n".join([*shown, *(f"[{note}]" for note in notes)]) or "No match.", message=count)

    def _wanted(self, path: str, given: GrepArguments, cwd: str) -> bool:
        if self._guard.hides(os.path.join(cwd, path)):
            return False
        return not given.glob or glob_matches(given.glob, path)


def _argv(given: GrepArguments, place: Place, environment: Mapping[str, str]) -> tuple[str, ...] | None:
    """Both print path NUL line:text, so a colon in a name does no harm. The glob is applied to what they print: only
    one of them knows globs with directories."""
    ripgrep = find_program("rg", environment)
    if ripgrep:
        common = ("--no-config", "--no-messages", "--hidden", "--color=never", "--no-heading", "--with-filename")
        cut = (f"--max-columns={LINE_LENGTH}", "--max-columns-preview")
        rows = ("--line-number", "--null", "--sort=path", "--glob=!.git", f"--max-count={MATCHES + 1}")
        return (ripgrep, *common, *cut, *rows, "-e", given.pattern, "--", place.shown)
    grep = find_program("grep", environment)
    if not grep:
        return None
    flags = ("-rnIEsHZ", "--color=never", "--exclude-dir=.git", f"--max-count={MATCHES + 1}")
    return (grep, *flags, "-e", given.pattern, "--", place.shown)


def _match(line: str) -> tuple[str, int, str] | None:
    path, nul, rest = line.partition("\0")
    number, colon, text = rest.partition(":")
    if not nul or not colon or not number.isdigit():
        return None
    return path.removeprefix("./"), int(number), text.rstrip("\r")
