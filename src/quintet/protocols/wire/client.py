"""Client: what the other side has said of itself, and the turn it waits for. One per connection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from quintet.domain.errors import QuintetError
from quintet.domain.hook import HookSubscription
from quintet.domain.model import ModelInfo
from quintet.domain.thread import Thread
from quintet.domain.tool import ToolSpec
from quintet.protocols.wire.errors import IN_PROGRESS, NONE_IN_PROGRESS, NotSupported, WrongState
from quintet.protocols.wire.gate import Gate
from quintet.protocols.wire.greeting import ClientCapabilities
from quintet.protocols.wire.house import House
from quintet.protocols.wire.inputs import lacks
from quintet.protocols.wire.models import UserInput

if TYPE_CHECKING:
    from quintet.engine.starter import Starter
    from quintet.protocols.wire.replay import Replaying
    from quintet.protocols.wire.running import Running

WITHHELD = "The client does not support {what}. Do NOT call this tool again."
NEEDS_QUESTIONS = {"ask_user": "interactive questions", "AskUserQuestion": "interactive questions"}
NEEDS_PLAN_MODE = dict.fromkeys(("enter_plan_mode", "exit_plan_mode", "EnterPlanMode", "ExitPlanMode"), "plan mode")


class Client:
    def __init__(self, house: House, gate: Gate) -> None:
        self.house = house
        self.gate = gate
        self.capabilities = ClientCapabilities()
        self.external_tools: tuple[ToolSpec, ...] = ()
        self.hooks: tuple[HookSubscription, ...] = ()
        self.running: Running | Replaying | None = None
        self.own_plan_changes = 0  # the client has been told of these by the reply to its own call

    def starter(self) -> Starter:
        """What a turn takes along from this client."""
        return self.house.starter(
            self.house.names.tools(self.house.tools()),
            external_tools=self.external_tools,
            hooks=self.hooks,
            withheld=self._withheld(),
        )

    def model(self, thread: Thread) -> ModelInfo | None:
        """The one its turns run with; None where there is none."""
        starter = self.starter()
        try:
            reference, _ = starter.models.resolve(starter.model or thread.settings.model)
            return starter.models.info(reference)
        except QuintetError:
            return None  # the turn itself will say so

    def window(self, thread: Thread) -> int | None:
        return model.context_window if (model := self.model(thread)) else None

    def refuse_unfit(self, given: UserInput, thread: Thread) -> None:
        """Where the model lacks what the input needs."""
        if isinstance(given, str) or (model := self.model(thread)) is None:
            return
        if missing := lacks(given, model):
            name = model.reference.partition("/")[2]
            raise NotSupported(f"LLM model '{name}' does not support required capability: {missing}.")

    def _withheld(self) -> dict[str, str]:
        lacking = {} if self.capabilities.supports_question else NEEDS_QUESTIONS
        if not self.capabilities.supports_plan_mode:
            lacking = lacking | NEEDS_PLAN_MODE
        return {name: WITHHELD.format(what=what) for name, what in lacking.items()}

    def refuse_while_running(self) -> None:
        if self.running is not None:
            raise WrongState(IN_PROGRESS)

    @contextmanager
    def busy(self, running: Running | Replaying) -> Iterator[None]:
        self.refuse_while_running()
        self.running = running
        try:
            yield
        finally:
            self.running = None

    def now(self) -> Running | Replaying:
        if self.running is None:
            raise WrongState(NONE_IN_PROGRESS)
        return self.running
