"""A tool's surroundings without an engine: keeps what the tool said and answers what it was told to answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from quintet.domain.interaction import QuestionItem
from quintet.domain.item import MediaKind
from quintet.domain.subagent import Assignment, Report
from quintet.domain.tool import Confine, Todo
from quintet.domain.turn import Mode, TurnState


class FakeToolContext:
    def __init__(
        self, cwd: str, *, answers: tuple[tuple[str, ...], ...] | None = None, call_id: str = "call_1"
    ) -> None:
        self.cwd = str(cwd)
        self.thread = "thr_test"
        self.call_id = call_id
        self.mode = Mode.ASK
        self.confine = Confine.AUTO
        self.directories: tuple[str, ...] = ()
        self.output: list[tuple[str, str]] = []
        self.asked: list[QuestionItem] = []
        self.todos: list[Todo] = []
        self.planning: bool | None = None
        self.assigned: list[Assignment] = []
        self.report = Report("thr_child", "trn_child", "coder", TurnState.DONE, "done")
        self.taken: frozenset[MediaKind] = frozenset({MediaKind.IMAGE})
        self._answers = answers
        self._heard: list[tuple[Callable[[str], bool], asyncio.Event]] = []

    def takes(self, kind: MediaKind) -> bool:
        return kind in self.taken

    def emit_output(self, stream: str, text: str) -> None:
        self.output.append((stream, text))
        for fits, event in self._heard:
            if fits(self.said()):
                event.set()

    async def ask(self, questions: Sequence[QuestionItem]) -> tuple[tuple[str, ...], ...] | None:
        self.asked.extend(questions)
        return self._answers

    async def read_todos(self) -> Sequence[Todo]:
        return self.todos

    async def set_todos(self, todos: Sequence[Todo]) -> None:
        self.todos = list(todos)

    async def set_plan_mode(self, *, on: bool) -> None:
        self.planning = on

    async def start_child(self, assignment: Assignment) -> Report:
        self.assigned.append(assignment)
        return self.report

    async def look_at_child(self, thread: str, wait_s: float = 0.0) -> Report:
        return self.report

    async def children_at_work(self) -> Sequence[Report]:
        return [self.report] if not self.report.state.ended else []

    async def stop_child(self, thread: str) -> Report:
        return self.report

    def said(self, stream: str | None = None) -> str:
        return "".join(text for name, text in self.output if stream in (None, name))

    async def until_said(self, word: str | Callable[[str], bool], limit_s: float = 10.0) -> None:
        """Wait until the output holds the word, or is as the function wants it."""
        event = asyncio.Event()
        fits = word if callable(word) else lambda text: word in text
        self._heard.append((fits, event))
        if fits(self.said()):
            event.set()
        await asyncio.wait_for(event.wait(), limit_s)
