"""A turn on the terminal: as text for people, or as lines of JSON for programs."""

from __future__ import annotations

from typing import Protocol

from quintet.cli import amounts
from quintet.cli.approvals import describe
from quintet.cli.changed import changed_line
from quintet.cli.event_json import event_line
from quintet.cli.notes import decided, ended, noted
from quintet.cli.prompt import Prompt
from quintet.cli.terminal import Screen
from quintet.domain.event import (
    Event,
    InteractionRequested,
    InteractionResolved,
    ItemAdded,
    StepFinished,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from quintet.domain.interaction import Approval, HookRequest, Interaction, Question
from quintet.domain.item import AssistantMessage, Reasoning, ResultStatus, ToolResult
from quintet.domain.ports import Models
from quintet.domain.principal import Principal
from quintet.domain.shown import shown, shown_line
from quintet.domain.thread import Thread
from quintet.domain.turn import Turn, TurnState
from quintet.engine.answer_form import bare
from quintet.engine.costs import Tally
from quintet.engine.interactions import Interactions


class TurnView(Protocol):
    denied: bool  # something was not done because nobody allowed it

    def begin(self, thread: Thread, turn: Turn) -> None: ...
    def show(self, event: Event, whose: str = "") -> None:
        """`whose` is what lines about a subagent begin with."""

    def end(self, turn: Turn) -> None: ...


class JsonView:
    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self.denied = False

    def begin(self, thread: Thread, turn: Turn) -> None:
        """Everything is in the events."""

    def show(self, event: Event, whose: str = "") -> None:
        self.denied = self.denied or _denied(event)
        self._screen.raw(event_line(event))

    def end(self, turn: Turn) -> None:
        """Everything is in the events."""


class TextView:
    """The answer on stdout as it comes; what happens around it on stderr."""

    def __init__(
        self,
        screen: Screen,
        interactions: Interactions,
        me: Principal,
        models: Models,
        *,
        prompts: bool,
        waits: bool,
        only_json: bool = False,
    ) -> None:
        self._screen = screen
        self._models = models
        self._used = Tally()
        self._only_json = only_json  # nothing goes to stdout but the last answer, once it is known to fit
        self._answer = ""
        self._waits = waits
        self._prompt = Prompt(self._note, interactions, me) if prompts else None
        self._streamed: set[str] = set()
        self._hooks: set[str] = set()  # open requests to hooks of a client
        self._mid_line = False
        self._cwd = ""
        self._whose = ""  # what each line begins with: a subagent's name while something of it is shown
        self.denied = False

    def begin(self, thread: Thread, turn: Turn) -> None:
        self._cwd = thread.settings.cwd
        self._screen.note(f"thread {thread.id}")

    def show(self, event: Event, whose: str = "") -> None:
        self.denied = self.denied or _denied(event)
        self._whose = whose
        self._show(event)
        self._whose = ""

    def _show(self, event: Event) -> None:
        match event.payload:
            case TextDelta() if self._only_json or self._whose:
                pass  # several may speak at once: what a subagent says is shown when it is whole
            case ItemAdded(item=item) if self._whose and isinstance(item.body, AssistantMessage):
                self._note(shown(item.body.text))
            case ItemAdded(item=item) if self._only_json and isinstance(item.body, AssistantMessage):
                self._answer = item.body.text
            case TextDelta(item=item, text=text):
                self._streamed.add(item)
                self._text(text)
            case ItemAdded(item=item) if isinstance(item.body, AssistantMessage):
                if item.id not in self._streamed:
                    self._text(item.body.text)
                self._end_line()
            case ItemAdded(item=item) if isinstance(item.body, Reasoning):
                self._note(f"  thinking: {' '.join(item.body.text.split())[:200]}")
            case ItemAdded(item=item) if isinstance(item.body, ToolResult):
                if line := changed_line(item.body, self._cwd):
                    self._note(f"  {line}")
            case ToolStarted(title=title):
                self._note(f"> {shown_line(title)}")
            case ToolFinished(name=name, status=status) if status is not ResultStatus.OK:
                self._note(f"  {name}: {status}")
            case StepFinished(model=model, usage=usage):
                self._used.add(usage, self._models.info(model))
            case InteractionRequested(interaction=asked):
                self._whose = ""  # the request itself says who asks
                self._asked(asked)
            case InteractionResolved(interaction=interaction) if interaction in self._hooks:
                self._hooks.discard(interaction)  # what came of it is told with all hooks of its moment
            case InteractionResolved(interaction=interaction, decision=decision):
                if self._prompt:
                    self._prompt.resolved(interaction)
                self._note(f"  {decided(decision)}")
                if self._prompt:
                    self._prompt.go_on()
            case payload:
                for words in noted(payload):
                    self._note(f"  {words}")

    def end(self, turn: Turn) -> None:
        if self._prompt:
            self._prompt.close()
        self._end_line()
        if self._only_json and turn.state is TurnState.DONE:
            self._screen.write(f"{bare(self._answer)}\n")
        if self._used.input_tokens:
            self._note(f"  {amounts.used(self._used)}")
        if turn.state is not TurnState.DONE and turn.error:
            self._note(ended(turn.state, turn.error.line()))

    def _asked(self, interaction: Interaction) -> None:
        if isinstance(interaction.request, HookRequest):
            self._hooks.add(interaction.id)
        if self._prompt:
            self._prompt.ask(interaction)
            return
        self._note(describe(interaction))
        if not self._waits:
            return
        if isinstance(interaction.request, Approval):
            self._note(f"  answer with: quintet approvals allow {interaction.id}  (or deny)")
        elif isinstance(interaction.request, Question):
            self._note(f"  answer with: quintet approvals answer {interaction.id} OPTION")

    def _text(self, text: str) -> None:
        if text:
            self._screen.write(text)
            self._mid_line = not text.endswith("\n")

    def _end_line(self) -> None:
        if self._mid_line:
            self._screen.write("\n")
            self._mid_line = False

    def _note(self, text: str) -> None:
        self._end_line()
        self._screen.note("\n".join(f"{self._whose}{line}" for line in text.split("\n")) if self._whose else text)


def _denied(event: Event) -> bool:
    """A call did not run because a rule, a person or nobody allowed it."""
    payload = event.payload
    return (
        isinstance(payload, ItemAdded)
        and isinstance(payload.item.body, ToolResult)
        and payload.item.body.status is ResultStatus.DENIED
    )
