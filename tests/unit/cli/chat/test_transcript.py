"""A thread with its subagents, from events to lines."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from quintet.cli.chat.transcript import LAST_ITEMS, Transcript
from quintet.cli.styled import Line, text_of
from quintet.domain.command import Command, CommandKind, Outcome
from quintet.domain.errors import ErrorInfo
from quintet.domain.event import (
    AnyPayload,
    AsideAnswered,
    AsideAsked,
    CommandPosted,
    CommandSettled,
    CompactionFinished,
    Event,
    ItemAdded,
    NoticePosted,
    StepFellBack,
    StepStarted,
    TextDelta,
    ThreadCreated,
    TurnFinished,
    TurnQueued,
    TurnSteered,
)
from quintet.domain.item import (
    AssistantMessage,
    Item,
    ResultStatus,
    TextPart,
    ToolCall,
    ToolResult,
    UserMessage,
    user_text,
)
from quintet.domain.notice import End, of_background
from quintet.domain.principal import local
from quintet.domain.thread import Thread, ThreadSettings
from quintet.domain.turn import Mode, Turn, TurnState
from tests.fakes.providers import GatedProvider, OneModel

PARENT, CHILD = "thr_parent", "thr_childab12"


class Stage:
    def __init__(self, items: Sequence[Item] = ()) -> None:
        self.lines: list[str] = []
        models = OneModel(GatedProvider())
        self.transcript = Transcript(self.write, lambda: 70, lambda: 0.0, lambda: models, "own_here")
        self.thread = Thread(PARENT, PARENT, "prj", "default", ThreadSettings("/w"), 0, 0)
        self.transcript.begin(self.thread, items)

    def write(self, lines: Sequence[Line]) -> None:
        self.lines += [text_of(line) for line in lines]

    def live(self) -> list[str]:
        return [text_of(line) for line in self.transcript.live()]

    def see(self, payload: AnyPayload | None, thread: str = PARENT, turn: str = "trn_1") -> None:
        self.transcript.show(Event(1, "kind", 0, payload, thread, PARENT, turn))


def queued(runner: str) -> TurnQueued:
    parts = (TextPart("do\nthis"),)
    return TurnQueued(Turn("trn_1", PARENT, TurnState.QUEUED, runner, Mode.ASK, local("wire", "bob"), parts, 0))


def test_only_a_turn_of_another_process_says_whose_it_is() -> None:
    stage = Stage()
    stage.see(queued("own_here"))
    assert stage.lines == ["", "> do", "  this"]
    stage.see(queued("own_there"))
    assert stage.lines[-1] == "  (from another process: bob through wire)"


def test_a_steer_is_seen_with_what_became_of_it() -> None:
    stage = Stage()
    for name in ("cmd_1", "cmd_2"):
        parts = (TextPart("left"),)
        stage.see(CommandPosted(Command(name, PARENT, "trn_1", CommandKind.STEER, local("cli"), 0, parts)))
    stage.see(CommandSettled("cmd_1", Outcome.ACCEPTED))
    stage.see(CommandSettled("cmd_2", Outcome.TURN_OVER))
    stage.see(CommandSettled("cmd_of_a_cancel", Outcome.ACCEPTED))
    assert stage.lines == [
        "↳ left",
        "↳ left",
        "  steer accepted: the model gets it with its next step",
        "  the steer was not taken (turn over)",
    ]


def test_that_the_model_has_a_steer_is_said_once_it_is_asked_with_it() -> None:
    stage = Stage()
    stage.see(TurnSteered("cmd_1", "itm_1"))
    assert stage.lines == []
    stage.see(StepStarted("s2", 2, "fake/model"))
    assert stage.lines == ["  the model has it now"]
    stage.see(TurnFinished(TurnState.DONE))
    assert len(stage.lines) == 1


def test_a_steer_that_came_to_no_model_before_the_turn_ended_is_not_said_to_be_with_it() -> None:
    stage = Stage()
    stage.see(TurnSteered("cmd_1", "itm_1"))
    stage.see(TurnFinished(TurnState.INTERRUPTED))
    assert stage.lines[0] == "  the model did not get the steer any more; it reads it with the next"
    assert not any("has it now" in line for line in stage.lines)


def test_a_subagents_turn_is_told_apart_and_its_end_is_not_the_threads() -> None:
    stage = Stage()
    stage.see(StepStarted("s1", 1, "fake/model"))
    stage.see(TextDelta("i1", 0, "child words\nmore"), CHILD, "trn_2")
    assert stage.lines == ["[ab12] child words"]
    assert stage.live()[-1] == "[ab12] more"
    failed = TurnFinished(TurnState.FAILED, error=ErrorInfo("internal", "It broke.", "Look."))
    stage.see(failed, CHILD, "trn_2")
    assert stage.lines[1:] == ["[ab12] more", "[ab12] The turn ended as failed: It broke. Look."]
    assert len(stage.live()) == 1  # the thread itself still waits for its model
    stage.see(TurnFinished(TurnState.DONE))
    assert stage.live() == []


@pytest.mark.req("first_minutes:F12")
def test_how_a_turn_ended_is_said_once() -> None:
    stage = Stage()
    why = ErrorInfo("cancelled", "The turn was cancelled: interrupted by the user.", "Send it again.")
    stage.see(TurnFinished(TurnState.CANCELLED, error=why))
    assert stage.lines == ["The turn was cancelled: interrupted by the user. Send it again."]
    stage.lines.clear()
    gone = ErrorInfo("interrupted", "The process that ran this turn ended before the turn did.")
    stage.see(TurnFinished(TurnState.INTERRUPTED, error=gone))
    assert " ".join(stage.lines).startswith("The turn ended as interrupted: The process that ran this turn ended")


@pytest.mark.req("first_minutes:F12")
def test_a_compaction_that_was_asked_for_and_brought_nothing_says_why_once() -> None:
    stage = Stage()
    stage.see(
        TurnQueued(Turn("trn_1", PARENT, TurnState.QUEUED, "own_here", Mode.ASK, local("cli"), (), 0)),
    )
    why = ErrorInfo("invalid", "There is nothing to compact yet.", "Go on.")
    stage.see(CompactionFinished(error=why))
    stage.see(TurnFinished(TurnState.FAILED, error=why))
    assert stage.lines == ["Not compacted. There is nothing to compact yet. Go on."]


@pytest.mark.req("first_minutes:F13")
def test_a_diff_that_was_shown_with_its_request_is_not_shown_again_with_its_result() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
    result = ToolResult("c1", "edit", ResultStatus.OK, "done", "", (), ("/w/x",), diff)
    asked, unasked, another = Stage(), Stage(), Stage()
    asked.transcript.diff_shown("c1", diff)
    another.transcript.diff_shown("c1", diff.replace("+b", "+c"))  # what was done is not what was asked for
    for stage in (asked, unasked, another):
        stage.see(ItemAdded(Item("itm", PARENT, "trn_1", 1, 0, result)))
    assert asked.lines == ["✓ edit", "  changed: x"]
    assert unasked.lines == another.lines == ["✓ edit", "x  +1 -1", "@@ -1 +1 @@", "-a", "+b"]


def test_subagents_are_called_by_their_names() -> None:
    stage = Stage()
    for child in ("thr_one", "thr_two"):
        stage.see(
            ThreadCreated(Thread(child, PARENT, "prj", "default", ThreadSettings("/w", agent="scout"), 0, 0)), child
        )
        stage.see(TextDelta("itm", 0, "words\n"), child, f"trn_{child}")
    stage.see(StepFellBack("s1", "a/b", "c/d", "busy"), "thr_two", "trn_two")
    assert stage.lines == ["[scout] words", "[scout 2] words", "[scout 2]   a/b cannot answer (busy); asking c/d"]


def test_what_happens_around_an_answer_is_told_and_damage_is_named() -> None:
    stage = Stage()
    stage.see(StepFellBack("s1", "big/model", "small/model", "overloaded"))
    stage.see(None)
    assert stage.lines == [
        "  big/model cannot answer (overloaded); asking small/model",
        "  (a damaged event: evt_0000000000001)",
    ]


def test_a_thread_that_is_gone_on_with_shows_its_last_items_once() -> None:
    items = [Item(f"itm_{n}", PARENT, "trn_0", n, 0, user_text(f"word {n}")) for n in range(1, 60)]
    items.append(Item("itm_60", PARENT, "trn_0", 60, 0, AssistantMessage("answer")))
    stage = Stage(items)
    assert stage.lines[0] == f"thread {PARENT}"
    assert f"… {60 - LAST_ITEMS} items before" in stage.lines[1]
    assert stage.lines[-2:] == ["> word 59", "answer"]
    before = len(stage.lines)
    stage.see(ItemAdded(items[-1]))
    assert len(stage.lines) == before


def test_calls_of_before_say_what_was_to_be_done_and_that_nobody_knows_what_came_of_it() -> None:
    call = ToolCall("call_1", "shell", '{"command": "sleep 61"}')
    result = ToolResult("call_1", "shell", ResultStatus.UNKNOWN, "Whether it took effect is unknown.")
    items = [Item(f"itm_{n}", PARENT, "trn_0", n, 0, body) for n, body in enumerate((call, result), 1)]
    assert Stage(items).lines[1:] == [
        '? shell {"command": "sleep 61"} unknown  Whether it took effect is',
        "  unknown.",
    ]


def test_the_end_of_what_ran_in_the_background_is_a_line_and_in_the_history_no_words_of_the_person() -> None:
    done = of_background("ntc_1", "cal_1", End.COMPLETED, "Background command is done: make", "Id: cal_1", 0, {})
    stage = Stage()
    stage.see(NoticePosted(done), turn="")
    assert stage.lines == ["  Background command is done: make"]
    stage.see(ItemAdded(Item("itm_1", PARENT, "trn_1", 1, 0, UserMessage((TextPart("[told]"),), notice="ntc_1"))))
    assert stage.lines == ["  Background command is done: make"]
    resumed = Stage([Item("itm_1", PARENT, "trn_1", 1, 0, UserMessage((TextPart("[told]"),), notice="ntc_1"))])
    assert resumed.lines[1:] == ["  [told]"]


def test_a_question_beside_the_thread_is_shown_with_its_answer_or_why_there_is_none() -> None:
    stage = Stage()
    asked = Turn("trn_1", PARENT, TurnState.QUEUED, "own_here", Mode.ASK, local("cli"), (), 0, aside="why?")
    stage.see(TurnQueued(asked))
    stage.see(AsideAsked("asd_1", "why?"))
    stage.see(AsideAnswered("asd_1", "be\ncause"))
    stage.see(AsideAnswered("asd_1", error=ErrorInfo("provider_failed", "It is down.")))
    assert stage.lines == ["> /btw why?", "be", "cause", "Not answered: It is down. (docs/errors.md#provider_failed)"]
