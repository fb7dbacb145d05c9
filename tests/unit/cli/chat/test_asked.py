"""Requests in a conversation: one at a time, an answer goes out once, and who decided is told."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

from quintet.cli.chat.asked import Asked
from quintet.cli.styled import Line, text_of
from quintet.domain.event import InteractionResolved
from quintet.domain.interaction import Approval, Decision, Interaction, Option, Question, QuestionItem, Verdict
from quintet.domain.principal import local
from quintet.engine.interactions import Answer

ME = local("cli")


class Face:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.labels: list[str] = []
        self.shown_when_asked: list[str] = []

    def write(self, lines: Sequence[Line]) -> None:
        self.lines += [text_of(line) for line in lines]

    def width(self) -> int:
        return 60

    def ask(self, label: str) -> None:
        self.labels.append(label)
        self.shown_when_asked = list(self.lines)


class Stage:
    """Answers are taken and not resolved, as when another process is slow."""

    def __init__(self) -> None:
        self.face = Face()
        self.sent: list[tuple[str, Answer]] = []
        self.diffs: dict[str, str] = {}
        self.asked = Asked(self.face, self, ME, self.keep, self.diffs.__setitem__)  # type: ignore[arg-type]

    def keep(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run(work)

    async def answer(self, interaction: str, answer: Answer, by: object) -> None:
        self.sent.append((interaction, answer))

    def resolve(self, interaction: str, verdict: Verdict = Verdict.ALLOW) -> None:
        self.asked.resolved(InteractionResolved(interaction, "c1", Decision(verdict, ME, 0)))


def request(name: str, body: Approval | Question) -> Interaction:
    return Interaction(name, "thr_1", "thr_1", "trn_1", "c1", body, 0)


def test_what_is_typed_while_an_answer_is_on_its_way_is_neither_an_answer_nor_lost() -> None:
    stage = Stage()
    stage.asked.add(request("int_1", Question((QuestionItem("Which?", (Option("a"), Option("b"))),))))
    stage.asked.answer("1")
    stage.asked.answer("2")
    assert stage.sent == [("int_1", Answer(Verdict.ANSWER, answers=(("a",),)))]
    assert any("this was not sent: 2" in line for line in stage.face.lines)


def test_what_was_typed_before_is_thrown_away_before_the_request_can_be_read() -> None:
    """Asking empties what the terminal holds: done after the words, it would take a quick answer to them with it."""
    stage = Stage()
    stage.asked.add(request("int_1", Approval("shell", "list", command="ls")))
    assert stage.face.labels == ["allow"]
    assert stage.face.shown_when_asked == []
    assert any("allow?" in line for line in stage.face.lines)


def test_the_next_request_is_asked_when_the_one_before_is_resolved_and_each_only_once() -> None:
    stage = Stage()
    first, second = (request(name, Approval("shell", name, command=f"echo {name}")) for name in ("int_1", "int_2"))
    for one in (first, second, first):
        stage.asked.add(one)
    assert stage.face.labels == ["allow"]
    assert not any("echo int_2" in line for line in stage.face.lines)
    stage.asked.answer("y")
    stage.resolve("int_1")
    assert stage.face.labels == ["allow", "", "allow"]
    assert any("$ echo int_2" in line for line in stage.face.lines)


def test_which_diff_was_shown_is_known_once_its_request_is_asked() -> None:
    stage = Stage()
    stage.asked.add(Interaction("int_1", "thr_1", "thr_1", "trn_1", "c1", Approval("edit", "x", diff="+b"), 0))
    stage.asked.add(Interaction("int_2", "thr_1", "thr_1", "trn_1", "c2", Approval("edit", "y", diff="+c"), 0))
    assert stage.diffs == {"c1": "+b"}
    stage.resolve("int_1")
    assert stage.diffs == {"c1": "+b", "c2": "+c"}


def test_only_what_was_decided_elsewhere_says_so() -> None:
    stage = Stage()
    stage.asked.add(request("int_1", Approval("shell", "ls")))
    stage.asked.answer("y")
    stage.resolve("int_1")
    assert stage.face.lines[-1] == "  allowed by local through cli"
    stage.asked.add(request("int_2", Approval("shell", "ls")))
    stage.resolve("int_2", Verdict.DENY)
    assert stage.face.lines[-1] == "  denied by local through cli (answered elsewhere)"
    assert not stage.asked.open
