"""What a thread says and does, as lines: each once, whole, in order, whatever was missed of the stream."""

from __future__ import annotations

from collections.abc import Sequence

from quintet.cli.chat.voice import Voice
from quintet.cli.styled import Line, plain, text_of
from quintet.domain.event import (
    ItemAdded,
    ReasoningDelta,
    StepStarted,
    TextDelta,
    TodoUpdated,
    ToolInputDelta,
    ToolOutputDelta,
    ToolStarted,
)
from quintet.domain.item import AssistantMessage, Item, Reasoning, ResultStatus, ToolResult
from quintet.domain.tool import Effect, Todo


class Stage:
    def __init__(self, prefix: Line = ()) -> None:
        self.lines: list[str] = []
        self.now_s = 100.0
        self.voice = Voice(self.write, lambda: 60, lambda: self.now_s, cwd="/w", prefix=prefix)

    def write(self, lines: Sequence[Line]) -> None:
        self.lines += [text_of(line) for line in lines]

    def live(self) -> list[str]:
        return [text_of(line) for line in self.voice.live()]

    def said(self, item: str, *pieces: str, first: int = 0) -> None:
        for index, piece in enumerate(pieces, first):
            self.voice.show(TextDelta(item, index, piece))

    def whole(self, item: str, body: AssistantMessage | Reasoning | ToolResult) -> None:
        self.voice.show(ItemAdded(Item(item, "thr_1", "trn_1", 1, 0, body)))


def test_a_streamed_answer_is_written_once_line_by_line() -> None:
    stage = Stage()
    stage.said("i1", "one\ntw", "o\nthr")
    assert stage.lines == ["one", "two"]
    assert stage.live() == ["thr"]
    stage.whole("i1", AssistantMessage("one\ntwo\nthree"))
    assert stage.lines == ["one", "two", "three"]
    assert stage.live() == []


def test_what_was_missed_at_the_end_comes_with_the_item() -> None:
    stage = Stage()
    stage.said("i1", "one\nt")
    stage.whole("i1", AssistantMessage("one\ntwo\nthree\n"))
    assert stage.lines == ["one", "two", "three"]


def test_after_a_gap_in_the_middle_nothing_is_shown_out_of_place() -> None:
    stage = Stage()
    stage.said("i1", "one\n")
    stage.said("i1", "four\n", first=3)
    assert stage.lines == ["one"]
    stage.whole("i1", AssistantMessage("one\ntwo\nthree\nfour\n"))
    assert stage.lines == ["one", "two", "three", "four"]


def test_an_answer_whose_beginning_was_missed_is_shown_whole() -> None:
    stage = Stage()
    stage.said("i1", "later\n", first=7)
    assert stage.lines == []
    stage.whole("i1", AssistantMessage("all\nof it"))
    assert stage.lines == ["all", "of it"]


def test_thoughts_words_and_thoughts_again_stay_in_order_and_are_not_repeated() -> None:
    stage = Stage()
    stage.voice.show(ReasoningDelta("r1", 0, "hm"))
    stage.said("i1", "so")
    stage.voice.show(ReasoningDelta("r2", 0, "but"))
    assert stage.lines == ["  hm", "so"]
    stage.whole("r1", Reasoning("hm"))
    stage.whole("i1", AssistantMessage("so"))
    stage.whole("r2", Reasoning("but then", partial=True))
    assert stage.lines == ["  hm", "so", "  but then", "  (cut off here)"]


def test_a_secret_recognised_late_does_not_repeat_the_answer() -> None:
    stage = Stage()
    stage.said("i1", "key sk-ab", "[redacted] end")
    stage.whole("i1", AssistantMessage("key [redacted] end"))
    assert stage.lines == ["key sk-ab[redacted] end"]


def test_a_call_shows_its_time_and_the_end_of_its_output_and_leaves_its_result() -> None:
    stage = Stage()
    stage.voice.show(ToolStarted("c1", "shell", Effect.EXECUTE, "run make"))
    stage.voice.show(ToolOutputDelta("c1", "shell", 0, "stdout", "".join(f"line {n}\n" for n in range(9))))
    stage.voice.show(ToolOutputDelta("c1", "shell", 1, "stdout", "10 %\r50 %\r99 %"))
    stage.now_s += 7
    assert [line[2:] for line in stage.live()] == ["run make  7 s", "│ line 6", "│ line 7", "│ line 8", "│ 99 %"]
    diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
    stage.whole("i1", ToolResult("c1", "shell", ResultStatus.ERROR, "…", "exit code 2", (), ("/w/x",), diff))
    assert stage.live() == []
    assert stage.lines[0] == "✗ run make error  exit code 2  7.0 s"
    assert stage.lines[1:3] == ["  … 6 more before", "  │ line 6"]
    assert stage.lines[-4:] == ["x  +1 -1", "@@ -1 +1 @@", "-a", "+b"]


def test_waiting_and_preparing_are_seen_while_nothing_else_is() -> None:
    stage = Stage()
    stage.voice.show(StepStarted("s1", 1, "fake/model"))
    assert stage.live()[0].endswith("fake/model  0 s")
    stage.voice.show(ToolInputDelta("i1", 0, "c1", "write", "x" * 2000))
    assert stage.live()[0].endswith("preparing write (2,000 characters)")
    stage.voice.rest()
    assert stage.live() == []


def test_a_subagents_lines_say_whose_they_are() -> None:
    stage = Stage(plain("ab12│ "))
    stage.voice.show(TodoUpdated((Todo("first", "done"), Todo("second"))))
    stage.said("i1", "words\nmore")
    assert stage.lines == ["ab12│   ☑ first", "ab12│   ☐ second", "ab12│ words"]
    assert stage.live() == ["ab12│ more"]
