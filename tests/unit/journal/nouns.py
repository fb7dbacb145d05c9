"""Small makers of nouns for the journal's tests."""

from __future__ import annotations

from quintet.domain import event as ev
from quintet.domain.command import Command, CommandKind
from quintet.domain.event import Draft, Event
from quintet.domain.grant import Grant, Scope, Subject
from quintet.domain.ids import new_id
from quintet.domain.interaction import Approval, Decision, ExternalCall, Interaction, Verdict
from quintet.domain.item import AssistantMessage, Body, Item, TextPart, ToolCall
from quintet.domain.ports import Journal
from quintet.domain.principal import local
from quintet.domain.thread import Thread, ThreadSettings
from quintet.domain.tool import Effect
from quintet.domain.turn import Lease, Mode, Turn, TurnState

ME = local("test")
DONE = ev.TurnFinished(TurnState.DONE)


class Clock:
    """A clock that stands still until a test moves it."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self.now = now_ms

    def now_ms(self) -> int:
        return self.now

    def monotonic_s(self) -> float:
        return self.now / 1000


def a_thread(*, project: str = "prj_one", parent: Thread | None = None, **fields: object) -> Thread:
    own = new_id("thr")
    above = {"parent": parent.id, "depth": parent.depth + 1} if parent else {}
    root = parent.root if parent else own
    return Thread(own, root, project, "default", ThreadSettings("/work"), 0, 0, **above, **fields)  # type: ignore[arg-type]


def a_turn(thread: str, text: str = "please help", *, runner: str = "") -> Turn:
    return Turn(new_id("trn"), thread, TurnState.QUEUED, runner, Mode.ASK, ME, (TextPart(text),), 0)


def an_item(body: Body, *, item: str = "") -> Draft:
    return Draft(ev.ItemAdded(Item(item or new_id("itm"), "", "", 0, 0, body)))


def said(text: str) -> Draft:
    return an_item(AssistantMessage(text))


def a_call(call: str, name: str = "shell") -> Draft:
    return an_item(ToolCall(call, name, "{}"))


def an_intent(call: str, effect: Effect = Effect.EXECUTE, title: str = "run make") -> Draft:
    return Draft(ev.ToolStarted(call, "shell", effect, title))


def text_delta(item: str, index: int, text: str) -> Draft:
    return Draft(ev.TextDelta(item, index, text))


def a_request(call: str = "cal_1", *, holds: bool = True) -> Interaction:
    return Interaction(new_id("int"), "", "", "", call, Approval("shell", "run make"), 0, holds=holds)


def an_external_call(call: str, tool: str = "deploy") -> Interaction:
    """A call of a tool that lives in the client."""
    return Interaction(new_id("int"), "", "", "", call, ExternalCall(tool, "{}"), 0)


def asked(request: Interaction) -> Draft:
    return Draft(ev.InteractionRequested(request))


def yes() -> Decision:
    return Decision(Verdict.ALLOW, ME, 1)


def no(reason: str = "") -> Decision:
    return Decision(Verdict.DENY, ME, 2, reason)


def a_grant(thread: str = "", *, uses: int = -1, scope: Scope = Scope.THREAD, expires_ms: int = 0) -> Grant:
    where = {"thread": thread, "uses_left": uses, "expires_ms": expires_ms}
    return Grant(new_id("grt"), "shell", Subject.COMMAND, ("make",), scope, ME, 1, **where)  # type: ignore[arg-type]


def a_steer(thread: str, turn: str, text: str = "faster") -> Command:
    return Command(new_id("cmd"), thread, turn, CommandKind.STEER, ME, 0, (TextPart(text),))


async def started(journal: Journal, thread: Thread | None = None, text: str = "please help") -> tuple[Thread, Lease]:
    """A thread with a running turn."""
    made = thread or await journal.create_thread(a_thread())
    queued = await journal.enqueue(a_turn(made.id, text))
    return made, await journal.claim(queued.turn.id, mode="ask", model="fake/model")


async def everything(journal: Journal, root: str = "") -> list[Event]:
    found: list[Event] = []
    while page := await journal.events(found[-1].seq if found else 0, root=root):
        found += page
    return found


def kinds(events: list[Event]) -> list[str]:
    return [e.kind for e in events]
