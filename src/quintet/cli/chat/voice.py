"""Voice: what one thread says and does, as lines; a subagent's thread has one of its own, and its lines say whose."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from quintet.cli.chat.calls import Calls, spinner
from quintet.cli.chat.speech import Speech
from quintet.cli.styled import Line, plain, wrapped
from quintet.domain.event import (
    AnyPayload,
    ItemAdded,
    ReasoningDelta,
    StepFinished,
    StepStarted,
    TextDelta,
    TodoUpdated,
    ToolInputDelta,
    ToolOutputDelta,
    ToolStarted,
)
from quintet.domain.item import AssistantMessage, Item, Reasoning, Summary, ToolCall, ToolResult
from quintet.domain.shown import shown_line

_TODO = {"pending": ("", "☐"), "in_progress": ("bold", "▸"), "done": ("dim", "☑")}


class Voice:
    def __init__(
        self,
        write: Callable[[Sequence[Line]], None],
        width: Callable[[], int],
        now_s: Callable[[], float],
        *,
        cwd: str,
        prefix: Line = (),
        diffs_shown: dict[str, str] | None = None,
    ) -> None:
        self._out = write
        self._prefix = prefix
        room = sum(len(text) for _, text in prefix)
        self._width: Callable[[], int] = lambda: width() - room
        self._now_s = now_s
        self._cwd = cwd
        self._calls = Calls(self._width, now_s, diffs_shown)
        self._speeches: dict[str, Speech] = {}  # by item: streamed, and not known to be complete
        self._speaking: Speech | None = None  # the one that grows now
        self._waits_for = ""  # the model, while nothing has come from it
        self._since_s = 0.0
        self._preparing: dict[str, tuple[str, int]] = {}  # by call id: a call's name, and how much of it has come

    def show(self, payload: AnyPayload | None) -> None:
        match payload:
            case StepStarted(model=model):
                self._waits_for, self._since_s = model, self._now_s()
            case TextDelta(item=item, index=index, text=text):
                self._grow(item, index, text, thinking=False)
            case ReasoningDelta(item=item, index=index, text=text):
                self._grow(item, index, text, thinking=True)
            case ToolInputDelta(call_id=call_id, name=name, text=text):
                self._waits_for = ""
                self._preparing[call_id] = (name, self._preparing.get(call_id, ("", 0))[1] + len(text))
            case StepFinished():
                self._waits_for = ""
                self._preparing = {}
            case ToolStarted(call_id=call_id, title=title):
                self._calls.start(call_id, title)
            case ToolOutputDelta(call_id=call_id, text=text):
                self._calls.printed(call_id, text)
            case TodoUpdated(todos=todos):
                for todo in todos:
                    style, mark = _TODO.get(todo.status, ("", "☐"))
                    words = plain(shown_line(todo.text), style)
                    self._say(wrapped(words, self._width(), plain(f"  {mark} ", style), plain("    ")))
            case ItemAdded(item=item):
                self.item(item)

    def item(self, item: Item) -> None:
        """A complete item: what of it was not shown yet."""
        match item.body:
            case AssistantMessage(text=text, partial=partial):
                self._complete(item.id, text, thinking=False, partial=partial)
            case Reasoning(text=text, partial=partial):
                self._complete(item.id, text, thinking=True, partial=partial)
            case ToolCall() as call:
                self._calls.wanted(call)
            case ToolResult() as result:
                self._say(self._calls.result(result, self._cwd))
            case Summary(text=text):
                self._complete(item.id, f"(summary of what came before)\n{text}", thinking=True, partial=False)

    def rest(self) -> None:
        """The turn is over."""
        self._pause()
        self._speeches, self._waits_for, self._preparing = {}, "", {}
        self._calls.drop()

    def live(self) -> list[Line]:
        out = self._calls.live()
        if self._waits_for:
            words = f" {self._waits_for}  {self._now_s() - self._since_s:.0f} s"
            out.append((("cyan", spinner(self._now_s())), ("dim", words)))
        for name, size in self._preparing.values():
            out.append(
                (("cyan", spinner(self._now_s())), ("dim", f" preparing {shown_line(name)} ({size:,} characters)"))
            )
        if self._speaking is not None:
            out += self._speaking.growing()
        return [(*self._prefix, *line) for line in out]

    def _grow(self, item: str, index: int, text: str, *, thinking: bool) -> None:
        self._waits_for = ""
        if item not in self._speeches:
            self._pause()
            self._speeches[item] = self._speaking = Speech(item, self._width, thinking=thinking)
        self._say(self._speeches[item].add(index, text))

    def _complete(self, item: str, text: str, *, thinking: bool, partial: bool) -> None:
        speech = self._speeches.pop(item, None) or Speech(item, self._width, thinking=thinking)
        lines = speech.complete(text) + [plain("  (cut off here)", "dim")] * partial
        if speech is self._speaking:
            self._speaking = None
        elif lines:
            self._pause()
        self._say(lines)

    def _pause(self) -> None:
        if self._speaking is not None:
            self._say(self._speaking.pause())
            self._speaking = None

    def _say(self, lines: Sequence[Line]) -> None:
        if lines:
            self._out([(*self._prefix, *line) for line in lines])
