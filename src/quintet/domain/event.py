"""Events: numbered records of everything that happens. Each kind is declared once, in the table at the end,
with its payload type, its durability class and who may write it. Pure: no I/O, no clock.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from quintet.domain.checkpoint import FileChange, Secured
from quintet.domain.command import Command, Outcome
from quintet.domain.errors import ErrorInfo
from quintet.domain.grant import Grant
from quintet.domain.hook import HookAction, HookEvent
from quintet.domain.ids import event_id
from quintet.domain.interaction import Decision, Interaction
from quintet.domain.item import Item, MediaPart, ResultStatus
from quintet.domain.memory import Recall
from quintet.domain.model import Finish, Usage
from quintet.domain.notice import Notice
from quintet.domain.project import Project
from quintet.domain.thread import Thread
from quintet.domain.tool import Effect, Todo
from quintet.domain.turn import Mode, Turn, TurnState
from quintet.domain.view import ViewReason


class Durability(StrEnum):
    FACT = "fact"  # fsynced before anyone hears of it, kept
    DELTA = "delta"  # numbered and published, no fsync of its own, pruned once its item is complete
    SIGNAL = "signal"  # like a delta, short-lived, in no thread


class Payload(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an event says, beside when and where."""


class Delta(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A piece of a growing item. Arrays instead of objects: a delta's row should not outweigh its words."""


class ThreadCreated(Payload, frozen=True):
    thread: Thread


class ThreadUpdated(Payload, frozen=True):
    """Only what changed."""

    title: str | None = None
    title_final: bool | None = None
    cwd: str | None = None
    agent: str | None = None
    model: str | None = None
    plan_mode: bool | None = None
    directories: tuple[str, ...] | None = None  # all of them, in place of those before
    metadata: dict[str, Any] | None = None  # laid over what is there; a key set to null goes
    thread: Thread | None = None  # as it stands afterwards, which the journal adds


class ThreadDeleted(Payload, frozen=True):
    pass


class ProjectAdded(Payload, frozen=True):
    """A directory, or a name alone, was met for the first time."""

    project: Project


class ViewChanged(Payload, frozen=True):
    reason: ViewReason
    keep_through: int = 0
    first_kept: int = 0
    summary_item: int = 0  # ordinal
    also: tuple[int, ...] = ()  # ordinals before first_kept that the model still gets


class TurnQueued(Payload, frozen=True):
    turn: Turn


class TurnStarted(Payload, frozen=True):
    owner: str
    epoch: int
    mode: Mode
    model: str = ""
    agent: str = ""  # who works in it; empty: the usual one


class TurnSteered(Payload, frozen=True):
    command: str
    item: str


class TurnCancelRequested(Payload, frozen=True):
    command: str
    reason: str = ""


class TurnFinished(Payload, frozen=True):
    state: TurnState
    steps: int = 0
    error: ErrorInfo | None = None
    agent: str = ""  # as it began, which the journal adds


class StepStarted(Payload, frozen=True):
    """A model call. Those of the turn are numbered from 1; 0 is one of the engine's own, such as a compaction's."""

    step: str
    number: int
    model: str
    agent: str = ""


class StepRetried(Payload, frozen=True):
    step: str
    attempt: int
    wait_s: float
    reason: str
    kind: str = ""  # of the failure, in a word
    most: int = 0  # attempts there can be; 0: not known
    status: int | None = None  # what the provider answered, where it answered


class StepFinished(Payload, frozen=True):
    step: str
    number: int
    model: str
    finish: Finish | None = None
    usage: Usage | None = None
    error: ErrorInfo | None = None
    answer_id: str = ""  # the provider's own name for the answer


class ItemAdded(Payload, frozen=True):
    item: Item


class TextDelta(Delta, frozen=True):
    item: str
    index: int
    text: str


class ReasoningDelta(Delta, frozen=True):
    item: str
    index: int
    text: str


class MediaDelta(Delta, frozen=True):
    """Not a piece: whatever the model sends that is no text comes whole, in its place among the pieces."""

    item: str
    index: int
    part: MediaPart


class ToolInputDelta(Delta, frozen=True):
    item: str
    index: int
    call_id: str
    name: str
    text: str


class ToolOutputDelta(Delta, frozen=True):
    call_id: str
    name: str
    index: int
    stream: str  # stdout | stderr
    text: str


class ToolCalled(Payload, frozen=True):
    """The model has begun to write a call. Nothing is decided yet; the call itself follows as an item."""

    item: str
    call_id: str
    name: str
    spelled: str = ""  # the name the model called it by, where that is another
    fed: bool = False  # the first of its input came with it: the next delta has it


class ToolStarted(Payload, frozen=True):
    """The intent: committed before a call with effects runs."""

    call_id: str
    name: str
    effect: Effect
    title: str
    digest: str = ""
    rule: str = ""  # what allowed it: a rule, a grant id or an interaction id


class ToolFinished(Payload, frozen=True):
    call_id: str
    name: str
    status: ResultStatus
    elapsed_ms: int = 0


class EffectUnknown(Payload, frozen=True):
    """An intent without a result after a crash. Never run again by itself; a person looks."""

    call_id: str
    name: str
    title: str


class InteractionRequested(Payload, frozen=True):
    interaction: Interaction


class InteractionResolved(Payload, frozen=True):
    interaction: str
    call_id: str
    decision: Decision


class GrantMade(Payload, frozen=True):
    grant: Grant


class GrantRevoked(Payload, frozen=True):
    grant: str


class CommandPosted(Payload, frozen=True):
    command: Command


class CommandSettled(Payload, frozen=True):
    command: str
    outcome: Outcome
    detail: str = ""


class StepFellBack(Payload, frozen=True):
    """The model could not answer; the next one of its list is asked."""

    step: str
    model: str
    next_model: str
    reason: str


class CompactionStarted(Payload, frozen=True):
    reason: str  # threshold | requested | too_long
    tokens_before: int = 0


class CompactionFinished(Payload, frozen=True):
    summary_item: str = ""  # empty when it failed, or when old results were trimmed without a model
    tokens_before: int = 0
    tokens_after: int = 0
    error: ErrorInfo | None = None


class HookTriggered(Payload, frozen=True):
    """Hooks are about to be asked: so many, all at once. Committed before the first of them is run."""

    event: HookEvent
    target: str = ""  # what matchers are compared with: a tool's name, an agent's, a reason
    count: int = 1
    call_id: str = ""
    sources: tuple[str, ...] = ()  # where each is written, or whose it is


class HookResolved(Payload, frozen=True):
    """What they said together. The first block counts."""

    event: HookEvent
    action: HookAction
    target: str = ""
    reason: str = ""
    by: str = ""  # where the hook that blocked is written, or whose it is
    duration_ms: int = 0
    problems: tuple[str, ...] = ()  # hooks that could not say anything, or were not heard, and why
    call_id: str = ""


class MemoryRecalled(Payload, frozen=True):
    """What came to mind when the turn began, and why; by id, since a text could not be forgotten here."""

    recall: Recall


class NoticePosted(Payload, frozen=True):
    """Something has happened beside the thread's turns. Whoever knows of it says it; no turn need run."""

    notice: Notice


class NoticeGiven(Payload, frozen=True):
    """The model reads it with its next step; committed together with the item that tells it."""

    notice: Notice
    item: str


class AsideAsked(Payload, frozen=True):
    """A question beside the thread: neither it nor its answer becomes an item."""

    id: str
    question: str


class AsideAnswered(Payload, frozen=True):
    id: str
    answer: str = ""
    error: ErrorInfo | None = None  # why there is none


class TodoUpdated(Payload, frozen=True):
    todos: tuple[Todo, ...]


class CheckpointMade(Payload, frozen=True):
    """Committed before the call runs: what could be brought back if nothing else were ever said of it."""

    call_id: str
    name: str
    secured: Secured
    exact: bool = False  # only the paths the call names: whatever changed there was its own doing


class CheckpointSettled(Payload, frozen=True):
    """What the call has changed, once it was over."""

    call_id: str
    name: str
    directory: str
    changes: tuple[FileChange, ...] = ()
    partial: tuple[str, ...] = ()
    exact: bool = False


class FilesRestored(Payload, frozen=True):
    """Somebody brings files back: committed before the first of them is touched. Holds what stood there, so this can
    be undone too; a path that still is what it was before has not been brought back yet."""

    directory: str
    reason: ViewReason
    after_turn: str = ""  # the thread's last turn then: once there is a later one, this is final
    changes: tuple[FileChange, ...] = ()
    conflicts: tuple[str, ...] = ()  # paths left alone because they no longer were what this thread left
    keep_through: int = -1  # files are what they were after this item; -1: after the last one


AnyPayload = Payload | Delta


class Kind(msgspec.Struct, frozen=True):
    name: str
    payload: type[AnyPayload]
    durability: Durability
    leased: bool  # only the owner of the thread's current epoch may write it
    audited: bool = False  # who asked, decided, ran, granted, restored or deleted: has a row in the audit chain


FACT, DELTA = Durability.FACT, Durability.DELTA
KINDS: tuple[Kind, ...] = (
    Kind("thread.created", ThreadCreated, FACT, leased=False, audited=True),
    Kind("thread.updated", ThreadUpdated, FACT, leased=False, audited=True),
    Kind("thread.deleted", ThreadDeleted, FACT, leased=False, audited=True),
    Kind("project.added", ProjectAdded, FACT, leased=False),
    Kind("thread.view_changed", ViewChanged, FACT, leased=False),
    Kind("turn.queued", TurnQueued, FACT, leased=False, audited=True),
    Kind("turn.started", TurnStarted, FACT, leased=True),
    Kind("turn.steered", TurnSteered, FACT, leased=True),
    Kind("turn.cancel_requested", TurnCancelRequested, FACT, leased=True),
    Kind("turn.finished", TurnFinished, FACT, leased=True, audited=True),
    Kind("step.started", StepStarted, FACT, leased=True),
    Kind("step.retried", StepRetried, FACT, leased=True),
    Kind("step.finished", StepFinished, FACT, leased=True),
    Kind("step.fell_back", StepFellBack, FACT, leased=True),
    Kind("compaction.started", CompactionStarted, FACT, leased=True),
    Kind("compaction.finished", CompactionFinished, FACT, leased=True),
    Kind("item.added", ItemAdded, FACT, leased=True),
    Kind("text.delta", TextDelta, DELTA, leased=True),
    Kind("reasoning.delta", ReasoningDelta, DELTA, leased=True),
    Kind("media.delta", MediaDelta, DELTA, leased=True),
    Kind("tool.input_delta", ToolInputDelta, DELTA, leased=True),
    Kind("tool.output_delta", ToolOutputDelta, DELTA, leased=True),
    Kind("tool.called", ToolCalled, FACT, leased=True),
    Kind("tool.started", ToolStarted, FACT, leased=True, audited=True),
    Kind("tool.finished", ToolFinished, FACT, leased=True, audited=True),
    Kind("effect.unknown", EffectUnknown, FACT, leased=True, audited=True),
    Kind("interaction.requested", InteractionRequested, FACT, leased=True, audited=True),
    Kind("interaction.resolved", InteractionResolved, FACT, leased=False, audited=True),
    Kind("grant.made", GrantMade, FACT, leased=False, audited=True),
    Kind("grant.revoked", GrantRevoked, FACT, leased=False, audited=True),
    Kind("command.posted", CommandPosted, FACT, leased=False, audited=True),
    Kind("command.settled", CommandSettled, FACT, leased=False),
    Kind("hook.triggered", HookTriggered, FACT, leased=False, audited=True),
    Kind("hook.resolved", HookResolved, FACT, leased=False, audited=True),
    Kind("notice.posted", NoticePosted, FACT, leased=False),
    Kind("notice.given", NoticeGiven, FACT, leased=True),
    Kind("aside.asked", AsideAsked, FACT, leased=True),
    Kind("aside.answered", AsideAnswered, FACT, leased=True),
    Kind("memory.recalled", MemoryRecalled, FACT, leased=True),
    Kind("todo.updated", TodoUpdated, FACT, leased=True),
    Kind("checkpoint.made", CheckpointMade, FACT, leased=True),
    Kind("checkpoint.settled", CheckpointSettled, FACT, leased=True),
    Kind("files.restored", FilesRestored, FACT, leased=False, audited=True),
)
KIND_BY_NAME = {k.name: k for k in KINDS}
KIND_OF = {k.payload: k for k in KINDS}


class Draft(msgspec.Struct, frozen=True, gc=False):
    """An event before the journal gave it a number."""

    payload: AnyPayload
    thread: str = ""
    turn: str = ""


class Event(msgspec.Struct, frozen=True):
    seq: int
    kind: str
    at_ms: int
    payload: AnyPayload | None  # None only when damaged
    thread: str = ""
    root: str = ""
    turn: str = ""
    damaged: bool = False  # its checksum does not match; shown as such, never served as good

    @property
    def id(self) -> str:
        return event_id(self.seq)


class Gap(msgspec.Struct, frozen=True):
    """Deltas between these numbers are gone; every fact is still there."""

    from_seq: int
    to_seq: int
    signals: bool = False


class EventPage(msgspec.Struct, frozen=True):
    """Some of the events after a cursor. Few, or none, does not mean that there are no more."""

    events: list[Event]
    through: int  # the next page begins behind this number
    more: bool


class Marks(msgspec.Struct, frozen=True):
    """How far the journal reaches back and forward."""

    last: int  # the newest committed seq
    pruned_through: int  # deltas up to here may be gone
    signals_through: int  # signals up to here may be gone
