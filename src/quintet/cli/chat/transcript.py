"""Transcript: a thread with its subagents, from events to lines. Lines once written are final; what is still moving is
`live`. Knows no terminal: lines go where the face puts them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from quintet.cli import amounts
from quintet.cli.chat.voice import Voice
from quintet.cli.notes import ended, noted
from quintet.cli.styled import Line, plain, without_tabs, wrapped
from quintet.cli.terminal import safe, safe_line
from quintet.domain.command import CommandKind, Outcome
from quintet.domain.event import (
    AsideAnswered,
    AsideAsked,
    CommandPosted,
    CommandSettled,
    CompactionFinished,
    Event,
    ItemAdded,
    StepFinished,
    StepStarted,
    ThreadCreated,
    TurnFinished,
    TurnQueued,
    TurnSteered,
)
from quintet.domain.item import Item, UserMessage, shown
from quintet.domain.ports import Models
from quintet.domain.thread import Thread
from quintet.domain.turn import Turn, TurnState
from quintet.engine.costs import Tally

LAST_ITEMS = 30  # of a thread that is gone on with


class Transcript:
    def __init__(
        self,
        write: Callable[[Sequence[Line]], None],
        width: Callable[[], int],
        now_s: Callable[[], float],
        models: Callable[[], Models],
        owner: str,
    ) -> None:
        self._write = write
        self._width = width
        self._now_s = now_s
        self._models = models  # called with the first step: making the table takes its time
        self._owner = owner
        self._cwd = ""
        self._thread = ""
        self._voices: dict[str, Voice] = {}  # by thread
        self._used: dict[str, Tally] = {}  # by turn
        self._names: dict[str, str] = {}  # of subagents, by thread
        self._steers: dict[str, str] = {}  # by command: its words
        self._given: set[str] = set()  # turns with a steer that no model was asked with yet
        self._compactions: set[str] = set()  # turns that somebody asked for to have the thread compacted
        self._diffs_shown: dict[str, str] = {}  # by call: with the request for it, and not needed again with its result
        self._items: set[str] = set()  # shown as history

    def begin(self, thread: Thread, items: Sequence[Item]) -> None:
        """Another thread; with what was said last in it, if anything was."""
        self._thread, self._cwd = thread.id, thread.settings.cwd
        self._voices, self._used, self._steers, self._given = {}, {}, {}, set()
        self._compactions, self._diffs_shown = set(), {}
        self._items = {item.id for item in items}
        seen = [item for item in items if not thread.view.is_hidden(item.ordinal)][-LAST_ITEMS:]
        if not items:
            return
        self.note(f"thread {thread.id}  {thread.title}".rstrip(), "bold")
        if seen and seen[0].ordinal > 1:
            self.note(f"  … {seen[0].ordinal - 1} items before (quintet threads show {thread.id} has all)")
        for item in seen:
            if isinstance(item.body, UserMessage) and item.body.notice:
                self.note(f"  {shown(item.body.parts)}")
            elif isinstance(item.body, UserMessage):
                self._said(shown(item.body.parts), steered=item.body.steered)
            else:
                self._voice(thread.id).item(item)
        self._voices = {}

    def note(self, text: str, style: str = "dim") -> None:
        """Something about what happens, for people."""
        for line in text.split("\n"):
            bare = line.lstrip(" ")
            indent = plain(line[: len(line) - len(bare)])
            self._write(wrapped(plain(without_tabs(safe(bare)), style), self._width(), indent, indent))

    def diff_shown(self, call_id: str, diff: str) -> None:
        """Whoever was asked for this call has seen what it would change."""
        self._diffs_shown[call_id] = diff

    def live(self) -> list[Line]:
        return [line for voice in self._voices.values() for line in voice.live()]

    def show(self, event: Event) -> None:
        payload = event.payload
        if event.damaged or payload is None:
            self.note(f"  (a damaged event: {event.id})", "yellow")
            return
        match payload:
            case ThreadCreated(thread=thread) if thread.id != self._thread:
                self._name(thread)
            case TurnQueued(turn=turn) if event.thread == self._thread:
                self._asked(turn)
            case CompactionFinished(error=error) if error is not None and event.turn in self._compactions:
                return  # the end of its turn says it
            case CommandPosted(command=command) if command.kind is CommandKind.STEER:
                self._steers[command.id] = shown(command.parts)
                self._said(self._steers[command.id], steered=True)
            case CommandSettled(command=command_id, outcome=outcome) if command_id in self._steers:
                self._settled(outcome)
            case AsideAsked(question=question):
                self._said(f"/btw {question}")
            case AsideAnswered(answer=answer, error=error):
                self.note(
                    answer if error is None else f"Not answered: {error.line()}", "" if error is None else "yellow"
                )
            case TurnSteered():
                self._given.add(event.turn)
            case StepStarted() if event.turn in self._given:
                self._given.discard(event.turn)
                self.note("  the model has it now")
            case StepFinished(model=model, usage=usage):
                self._used.setdefault(event.turn, Tally()).add(usage, self._models().info(model))
            case TurnFinished():
                self._ended(event, payload)
            case ItemAdded(item=item) if item.id in self._items:
                return
        for words in noted(payload):
            self.note(f"{self._whose(event.thread)}  {words}", "yellow" if words.startswith("UNKNOWN") else "dim")
        if not isinstance(payload, TurnFinished):
            self._voice(event.thread).show(payload)

    def _asked(self, turn: Turn) -> None:
        if turn.aside:
            return  # the question comes by itself
        if not turn.parts:
            self._compactions.add(turn.id)  # it says itself what it is
            return
        self._write([()])
        self._said(shown(turn.parts))
        if turn.runner != self._owner:
            self.note(f"  (from another process: {turn.principal.name} through {turn.principal.protocol})")

    def _said(self, text: str, *, steered: bool = False) -> None:
        mark = "↳ " if steered else "> "
        for line in text.split("\n"):
            shown = without_tabs(safe(line.removesuffix("\r")))
            self._write(wrapped(plain(shown, "bold"), self._width(), plain(mark, "cyan"), plain("  ")))
            mark = "  "

    def _settled(self, outcome: Outcome) -> None:
        if outcome is Outcome.ACCEPTED:
            self.note("  steer accepted: the model gets it with its next step")
        else:
            self.note(f"  the steer was not taken ({outcome.value.replace('_', ' ')})", "yellow")

    def _ended(self, event: Event, finished: TurnFinished) -> None:
        """A turn of the thread, or of a subagent, whose lines say so."""
        whose = self._whose(event.thread)
        for thread in [t for t in self._voices if not whose or t == event.thread]:
            self._voices[thread].rest()
            if thread != self._thread:
                del self._voices[thread]
        if event.turn in self._given:
            self._given.discard(event.turn)
            self.note(f"{whose}  the model did not get the steer any more; it reads it with the next turn", "yellow")
        if finished.state is not TurnState.DONE:
            error = finished.error
            why = f"{error.message} {error.next_step}".rstrip() if error else ""
            self.note(f"{whose}{self._end_words(event.turn, finished.state, why)}", "yellow")
        used = self._used.pop(event.turn, None)
        if used is not None and used.input_tokens:
            self.note(f"{whose}  {amounts.used(used)}")

    def _end_words(self, turn: str, state: TurnState, why: str) -> str:
        if turn in self._compactions and state is TurnState.FAILED:
            return f"Not compacted. {why}"
        return ended(state, why)

    def _voice(self, thread: str) -> Voice:
        if thread not in self._voices:
            prefix = plain(self._whose(thread), "blue")
            self._voices[thread] = Voice(
                self._write,
                self._width,
                self._now_s,
                cwd=self._cwd,
                prefix=prefix,
                diffs_shown=self._diffs_shown,
            )
        return self._voices[thread]

    def _whose(self, thread: str) -> str:
        """What a line about a subagent begins with: its name where that is known, else the end of its thread's id."""
        return "" if thread == self._thread else f"[{self._names.get(thread) or thread[-4:]}] "

    def _name(self, thread: Thread) -> None:
        """Numbered from the second of its kind on."""
        agent, taken, number = safe_line(thread.settings.agent) or "subagent", set(self._names.values()), 2
        name = agent
        while name in taken:
            name, number = f"{agent} {number}", number + 1
        self._names[thread.id] = name
