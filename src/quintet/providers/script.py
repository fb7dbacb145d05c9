"""Script: the line language of the scripted model, parsed once into steps. Knows no files, no clock, no threads.

One model call plays one step; a line of three or more dashes ends a step. Blank lines and lines beginning with # are
skipped. Each other line is `word: value`; one space after the colon belongs to the colon, all others to the value.

    scope: thread          (before everything else) `thread` goes on where the thread is; `turn` starts anew every turn
    text: Hello            one piece of the answer; several make several deltas
    text: "two\nlines"     a value that is a whole JSON string is decoded
    think: Let me see      one piece of reasoning
    tool_call: read {"path": "a.txt"}    a whole call; `read#my_id {…}` names the call's id
    tool_call: read        begins a call whose input follows in parts
    tool_call_part: {"path"              more of the last call's input (JSON strings are decoded here too)
    repeat: 1000 text: word              the line a thousand times, as fast as it is read
    repeat: 50 every 0.01 text: word     the same with a pause before each
    usage: in=10 out=5 cached=2 reasoning=1
    delay: 0.05            a pause in seconds
    until: path/to/file    a pause until that file exists (for tests that must hold a model mid-answer), 60 s at most
    error: 529 overloaded  the model fails here, after whatever came before; the first word is its code
    finish: length         stop | tool_calls | length | refusal | other, or `none`: the stream ends without saying why

Without `finish` a step ends with tool_calls if it called a tool and with stop otherwise.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from quintet.domain.errors import Invalid
from quintet.domain.model import (
    Chunk,
    Finish,
    FinishChunk,
    ReasoningChunk,
    TextChunk,
    ToolInput,
    ToolStart,
    Usage,
    UsageChunk,
)


class Say(msgspec.Struct, frozen=True):
    """The same chunk so many times, each after a pause."""

    chunk: Chunk
    times: int = 1
    every_s: float = 0.0


class Delay(msgspec.Struct, frozen=True):
    seconds: float


class Until(msgspec.Struct, frozen=True):
    path: str


class Fail(msgspec.Struct, frozen=True):
    code: str
    message: str


Act = Say | Delay | Until | Fail


class Step(msgspec.Struct, frozen=True):
    acts: tuple[Act, ...]
    calls: int  # how many tools it calls
    silent: bool  # leaves no item behind: neither words nor thoughts nor calls


class Script(msgspec.Struct, frozen=True):
    steps: tuple[Step, ...]
    per_turn: bool = False


def parse_script(text: str, name: str = "script") -> Script:
    """The steps of a script; Invalid names the line that cannot be read."""
    steps: list[Step] = []
    draft = _Draft(0)
    per_turn = False
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if not bare or bare.startswith("#"):
            continue
        if len(bare) >= 3 and not bare.strip("-"):
            steps.append(draft.step())
            draft = _Draft(len(steps))
        elif bare.startswith("scope:") and not steps and not draft.acts:
            per_turn = _scope(bare[6:].strip(), f"{name}, line {number}")
        else:
            draft.add(line.lstrip(), f"{name}, line {number}")
    if draft.acts:
        steps.append(draft.step())
    return Script(tuple(steps), per_turn)


class _Draft:
    """A step while its lines are read."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.acts: list[Act] = []
        self.calls = 0
        self.call_id = ""
        self.finish: FinishChunk | None = None
        self.finished = False

    def add(self, line: str, where: str) -> None:
        word, colon, value = line.partition(":")
        row = _WORDS.get(word.strip().lower())
        if not colon or row is None:
            raise _bad(where, f"{line[:60]!r} begins with none of {', '.join(_WORDS)}, scope")
        row(self, value.removeprefix(" "), where)

    def step(self) -> Step:
        acts = list(self.acts)
        if not self.finished:
            acts.append(Say(FinishChunk(Finish.TOOL_CALLS if self.calls else Finish.STOP)))
        elif self.finish is not None:
            acts.append(Say(self.finish))
        speaks = (TextChunk, ReasoningChunk, ToolStart)
        return Step(tuple(acts), self.calls, not any(isinstance(a, Say) and isinstance(a.chunk, speaks) for a in acts))


def _text(draft: _Draft, value: str, where: str) -> None:
    draft.acts.append(Say(TextChunk(_decoded(value))))


def _think(draft: _Draft, value: str, where: str) -> None:
    draft.acts.append(Say(ReasoningChunk(_decoded(value))))


def _tool_call(draft: _Draft, value: str, where: str) -> None:
    head, _, given = value.strip().partition(" ")
    name, _, own_id = head.partition("#")
    if not name:
        raise _bad(where, "a tool_call needs the tool's name")
    draft.calls += 1
    # Unique within a thread, and the same in every replay of it.
    draft.call_id = own_id or f"call_{draft.index + 1}_{draft.calls}"
    draft.acts.append(Say(ToolStart(draft.call_id, name, fed=bool(given.strip()))))
    if given.strip():
        draft.acts.append(Say(ToolInput(draft.call_id, given.strip())))


def _tool_call_part(draft: _Draft, value: str, where: str) -> None:
    if not draft.calls:
        raise _bad(where, "tool_call_part comes before any tool_call of its step")
    draft.acts.append(Say(ToolInput(draft.call_id, _decoded(value))))


def _repeat(draft: _Draft, value: str, where: str) -> None:
    times, _, rest = value.lstrip().partition(" ")
    every_s = 0.0
    if rest.startswith("every "):
        pause, _, rest = rest[6:].lstrip().partition(" ")
        every_s = _seconds(pause, where)
    if not times.isdigit() or rest.partition(":")[0].strip() not in ("text", "think", "tool_call_part"):
        raise _bad(where, "repeat wants `N [every SECONDS] text: …` (or think, tool_call_part)")
    draft.add(rest, where)
    said = draft.acts.pop()
    assert isinstance(said, Say)
    draft.acts.append(Say(said.chunk, int(times), every_s))


def _usage(draft: _Draft, value: str, where: str) -> None:
    names = {"in": "input_tokens", "out": "output_tokens", "cached": "cached_tokens", "reasoning": "reasoning_tokens"}
    given: dict[str, int] = {}
    for pair in value.split():
        key, _, count = pair.partition("=")
        if key not in names or not count.isdigit():
            raise _bad(where, f"usage wants in=, out=, cached=, reasoning= with whole numbers, not {pair!r}")
        given[names[key]] = int(count)
    draft.acts.append(Say(UsageChunk(Usage(**given))))


def _delay(draft: _Draft, value: str, where: str) -> None:
    draft.acts.append(Delay(_seconds(value.strip(), where)))


def _until(draft: _Draft, value: str, where: str) -> None:
    draft.acts.append(Until(value.strip()))


def _error(draft: _Draft, value: str, where: str) -> None:
    code, _, message = value.strip().partition(" ")
    draft.acts.append(Fail(code, message or "the script says so"))


def _finish(draft: _Draft, value: str, where: str) -> None:
    reason = value.strip()
    if reason not in (*Finish, "none"):
        raise _bad(where, f"finish wants {', '.join(Finish)} or none, not {reason!r}")
    draft.finished = True
    draft.finish = None if reason == "none" else FinishChunk(Finish(reason))


_WORDS: dict[str, Callable[[_Draft, str, str], None]] = {
    "text": _text,
    "think": _think,
    "tool_call": _tool_call,
    "tool_call_part": _tool_call_part,
    "repeat": _repeat,
    "usage": _usage,
    "delay": _delay,
    "until": _until,
    "error": _error,
    "finish": _finish,
}


def _scope(value: str, where: str) -> bool:
    if value not in ("thread", "turn"):
        raise _bad(where, f"scope wants thread or turn, not {value!r}")
    return value == "turn"


def _seconds(text: str, where: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 86_400:
        raise _bad(where, f"{text!r} is not a number of seconds")
    return seconds


def _decoded(value: str) -> str:
    bare = value.strip()
    if len(bare) < 2 or bare[0] != '"' or bare[-1] != '"':
        return value
    try:
        return msgspec.json.decode(bare.encode(), type=str)
    except msgspec.DecodeError:
        return value


def _bad(where: str, what: str) -> Invalid:
    return Invalid(f"{where}: {what}.", next_step="Correct that line of the script.")
