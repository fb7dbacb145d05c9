"""What the engine asks of the outside, by role. Protocols only; the composition root says who plays them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, Protocol

import msgspec

from quintet.domain.attachment import Attachment
from quintet.domain.audit import AuditRow, Verified
from quintet.domain.checkpoint import Compared, FileChange, FileState, Secured
from quintet.domain.command import Command, Outcome
from quintet.domain.errors import QuintetError
from quintet.domain.event import Draft, Event, EventPage, Marks, TurnFinished
from quintet.domain.grant import Grant
from quintet.domain.hook import Hook, HookScope, HookVerdict
from quintet.domain.interaction import Decision, Interaction, QuestionItem
from quintet.domain.item import Item, MediaKind
from quintet.domain.memory import Memories, Memory, MemoryChange, MemoryPaths
from quintet.domain.mirror import Mirror
from quintet.domain.model import Chunk, ModelInfo, ModelRequest
from quintet.domain.project import Project
from quintet.domain.subagent import Assignment, Report
from quintet.domain.surroundings import Surroundings
from quintet.domain.thread import Handle, SearchHit, Thread, ThreadQuery
from quintet.domain.tool import CallScope, Confine, Prepared, Todo, ToolOutcome, ToolSpec
from quintet.domain.turn import ClientKey, Lease, Mode, Turn


class Clock(Protocol):
    def now_ms(self) -> int:
        """Wall-clock time, for people."""

    def monotonic_s(self) -> float:
        """For every wait and limit; never steps back."""


class Secrets(Protocol):
    def known_values(self) -> Sequence[str]:
        """Secret values that must never be stored or shown."""


class Provider(Protocol):
    def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        """The model's answer, piece by piece. Raises ProviderFailed; closing the iterator stops the model."""


class Models(Protocol):
    """The provider table of whoever starts a turn."""

    def resolve(self, reference: str) -> tuple[str, Provider]:
        """(full reference, provider) for "provider/model" or "" = default; raises NotConfigured."""

    def info(self, reference: str) -> ModelInfo:
        """What is known of the model with this full reference."""


class SurroundingsReader(Protocol):
    async def look(self, cwd: str) -> Surroundings:
        """What a turn working here should tell the model. Bounded; what was left out is said in it."""


class MemoryStore(Protocol):
    """Where a profile's memories lie. Its files are the truth: others may change them at any moment."""

    @property
    def paths(self) -> MemoryPaths: ...
    async def read(self) -> Memories:
        """As they stand now. Invalid when a file is not what it should be."""

    async def change(self, work: Callable[[Memories], MemoryChange]) -> Memories:
        """Read anew, and put what `work` makes of it in its place, alone among all processes; on disk when this
        returns. What `work` raises changes nothing."""

    async def make(self) -> None:
        """The files, empty, where they are missing."""


class Proposals(Protocol):
    async def propose(self, thread: str, text: str, scope: str) -> Memory:
        """Keep what a model wants kept, for the person to approve."""


class TelemetryLog(Protocol):
    @property
    def directory(self) -> str: ...
    async def append(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Each with its `timestamp`. OSError where the disk objects."""

    async def read(self, start: datetime, end: datetime, take: Callable[[Mapping[str, Any]], None]) -> None:
        """Give every record of this time to `take`, on another thread, one after the other."""


class SettingsStore(Protocol):
    """A small file of settings that people and other programs write, too."""

    @property
    def path(self) -> str: ...
    async def read(self) -> dict[str, Any]:
        """As it stands now; empty when there is no file. Invalid when it cannot be understood."""

    async def change(self, work: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
        """Read anew, and put what `work` makes of it in its place, alone among all processes."""


class Hooks(Protocol):
    """Runs the commands of hooks."""

    async def run(self, hook: Hook, given: dict[str, Any], scope: HookScope, *, agreed: str = "") -> HookVerdict:
        """Within the hook's own time. Never raises for what a command does; a cancel ends its whole tree. `agreed` is
        the digest somebody said yes to: what has another one by now is not run."""

    async def digest(self, hook: Hook, cwd: str) -> str:
        """Of everything that would run, as it is now: the row and the files its command runs."""


class Results(Protocol):
    """Keeps what was too long for the model, whole, for as long as its thread lives."""

    async def keep(self, thread: str, text: str) -> str:
        """On disk when this returns; the id it is read by. The text is masked already."""

    async def read(self, thread: str, result: str) -> str | None:
        """The whole text; None when it is not kept (any more)."""

    async def owners(self) -> list[str]:
        """The threads that something is kept for."""

    async def forget(self, thread: str) -> tuple[int, int]:
        """Remove what is kept for this thread. (how many, bytes)"""


class AttachableFiles(Protocol):
    """Files that can be given along with what is said."""

    async def read(self, path: str, cwd: str, root: str = "") -> Attachment:
        """A text or an image in the workspace of a working directory, or below the root where one is given. Whole;
        Invalid, in words for who gave it, for everything else. No link that leads out is followed."""


class ToolContext(Protocol):
    """What a running call may use. Cancelling a call cancels its task."""

    @property
    def cwd(self) -> str: ...
    @property
    def thread(self) -> str: ...
    @property
    def call_id(self) -> str: ...
    @property
    def mode(self) -> Mode:
        """As strict as the turn is now; it may have been tightened since the call was prepared."""

    @property
    def confine(self) -> Confine: ...
    @property
    def directories(self) -> tuple[str, ...]:
        """The thread's, beside its workspace."""

    def takes(self, kind: MediaKind) -> bool:
        """Whether the model that called can be shown such a thing."""

    def emit_output(self, stream: str, text: str) -> None: ...
    async def ask(self, questions: Sequence[QuestionItem]) -> tuple[tuple[str, ...], ...] | None:
        """The chosen labels per question, or None when nobody answered in time or the person declined."""

    async def read_todos(self) -> Sequence[Todo]:
        """The thread's, as they were set last."""

    async def set_todos(self, todos: Sequence[Todo]) -> None: ...
    async def set_plan_mode(self, *, on: bool) -> None:
        """For this thread, from now on."""

    async def start_child(self, assignment: Assignment) -> Report:
        """Have a subagent do it, and wait for its end; of one in the background for its beginning only."""

    async def look_at_child(self, thread: str, wait_s: float = 0.0) -> Report:
        """How a subagent of this thread stands, after waiting at most so long for its end."""

    async def children_at_work(self) -> Sequence[Report]:
        """Subagents in the background of this turn."""

    async def stop_child(self, thread: str) -> Report:
        """End one that works in the background; how it stands then."""


class Tool(Protocol):
    @property
    def spec(self) -> ToolSpec: ...
    async def prepare(self, arguments: dict[str, Any], scope: CallScope) -> Prepared:
        """Check the arguments without changing anything; raises Invalid with words for the model."""

    async def run(self, prepared: Prepared, context: ToolContext) -> ToolOutcome: ...


UNKNOWN_WORD = "\0unknown"  # stands for words only the shell will know; equals nothing a person can write


class ParsedCommand(msgspec.Struct, frozen=True):
    """A shell command as rules see it. Not understood is never allowed by a rule or grant."""

    understood: bool
    commands: tuple[tuple[str, ...], ...] = ()  # argv of each simple command, wherever in the line and behind wrappers
    destructive: bool = False
    writes: tuple[str, ...] = ()  # files that redirections would write; never covered by a rule or grant
    too_long: bool = False  # over the limits of what is read at all: refused


class CommandParser(Protocol):
    def parse(self, command: str) -> ParsedCommand: ...


class FileHistory(Protocol):
    """Puts the workspace's files aside and brings them back. Its blocking work never runs on the event loop."""

    async def secure(self, directory: str, paths: Sequence[str] | None = None) -> Secured:
        """Before a call: keep these paths, or (None) everything in the directory that git could not give back. The
        contents are on disk when this returns."""

    async def still_runs(self, secured: Secured) -> None:
        """Said now and then while the call runs, so that its last moment is roughly known should its process die."""

    async def compare(self, secured: Secured, *, cut_off: bool = False) -> Compared:
        """After the call: what it touched, with the contents before and after kept. Untouched ones are let go.
        `cut_off`: nobody saw its end, so what changed after it was last said to run is told as late."""

    async def states(self, directory: str, paths: Sequence[str], *, keep: bool = False) -> list[FileState]:
        """What stands at these paths now; `keep` also puts the contents aside."""

    async def put(self, directory: str, path: str, state: FileState, expected: FileState | None = None) -> None:
        """Make the path what the state says, in one move, without following links. Invalid when its content is gone,
        Drifted when not what is expected stands there: that is left."""

    async def put_all(self, directory: str, changes: Sequence[FileChange]) -> list[QuintetError | OSError | None]:
        """The same for many: from `before`, which is expected, to `after`, in this order. What kept each from it, None
        where it is done. Of several paths the absent ones go first, the deepest before the others: they may stand in
        the way."""

    async def content(self, directory: str, state: FileState) -> bytes | None:
        """The bytes of a state, from the blob store or git; None when they are kept nowhere."""

    async def sweep(self, keep: Collection[str], manifests: Collection[str]) -> tuple[int, int]:
        """Remove blobs that are neither kept, nor named in a kept manifest, nor younger than an hour. (count, bytes)"""


class MirrorFiles(Protocol):
    """Files that other programs read and write too. OSError where the disk or the person's permissions object."""

    def hold(self, path: str) -> AbstractAsyncContextManager[None]:
        """Alone with this path among all processes of this home. TimeoutError when another one does not let go."""

    async def read(self, path: str) -> bytes | None:
        """The whole file; None when there is none."""

    async def head(self, path: str) -> bytes:
        """Its first lines, as far as they are not long; nothing where there is no file."""

    async def append(self, path: str, data: bytes) -> None:
        """Behind what is there, on disk when this returns. Directories that are missing are made."""

    async def write(self, path: str, data: bytes) -> None:
        """The whole file, in one move."""

    async def set_aside(self, path: str) -> str:
        """Give the file the first free one of name_1, name_2 …, and say which."""

    async def remove(self, path: str) -> None:
        """Where there is one."""

    async def remove_empty(self, directory: str) -> None:
        """Where nothing is in it."""


class Entry(msgspec.Struct, frozen=True):
    """Something in a workspace."""

    path: str  # from the root
    directory: bool
    ignored: bool = False
    readable: bool = True  # else it is shown, and no path that may be asked for leads to it


class Content(msgspec.Struct, frozen=True):
    path: str  # from the root
    data: bytes
    truncated: bool
    text: bool  # it can be read as UTF-8


class Match(msgspec.Struct, frozen=True):
    path: str  # from the root
    line: int
    column: int
    text: str


class WorkspaceFiles(Protocol):
    """A workspace as clients may look at it. Paths go through the guard and are from the root, where a leading slash
    means that root. Invalid for what lies outside, without repeating it; NotFound for what is not there."""

    async def entries(self, root: str, path: str) -> list[Entry]: ...
    async def content(self, root: str, path: str, limit: int) -> Content: ...
    async def find(self, root: str, words: str, *, directories: bool, files: bool, limit: int) -> list[Entry]: ...
    async def grep(self, root: str, pattern: str, glob: str, limit: int) -> tuple[list[Match], bool]:
        """Lines that fit, and whether there are more."""


class Enqueued(msgspec.Struct, frozen=True):
    turn: Turn
    folded: bool  # an earlier request with the same key had made it


class Recovery(msgspec.Struct, frozen=True):
    """What was found dead in a thread and ended."""

    turns: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()  # titles of effects whose outcome nobody knows


class PruneReport(msgspec.Struct, frozen=True):
    deltas: int
    signals: int
    bytes_freed: int
    pruned_through: int


Listener = Callable[[Sequence[Event]], None]


class Journal(Protocol):
    """The one store of everything that happens. Every write is one transaction; facts are on disk when it returns."""

    @property
    def owner(self) -> str:
        """This process, as others see it; alive exactly while its lock is held."""

    # --- writing -----------------------------------------------------------------------------------------------
    def push(self, drafts: Sequence[Draft], lease: Lease) -> None:
        """Deltas: queued at once, in order with every other write; never waits. A lost lease shows in `room`."""

    async def room(self, *, lease: Lease | None = None) -> None:
        """Back-pressure for `push`: returns when the writer has caught up enough; raises what a push of this lease (of
        any, without one) failed with."""

    async def append(self, drafts: Sequence[Draft], *, lease: Lease | None = None) -> list[Event]:
        """Facts (and deltas among them). Raises LeaseLost when a leased kind is written without the current lease."""

    async def create_thread(
        self,
        thread: Thread,
        *,
        handle: Handle | None = None,
        items: Sequence[Item] = (),
        takes_name: bool = False,
        key: ClientKey | None = None,
    ) -> Thread:
        """thread.created, its handle and given items (fork, import) together. Conflict if the handle is live, unless
        the name is to be taken from whichever thread has it. The same key gives the thread it made before; Conflict
        on another body. A project that is a name alone (`root_of_name`) is made with its first thread."""

    async def add_handle(self, handle: Handle) -> Handle:
        """One more name for a thread; the same again is no change. Conflict if it names another live one."""

    async def replace_items(self, thread: str, items: Sequence[Item]) -> list[Event]:
        """thread.view_changed {replace} and these items, one commit; Busy unless the thread is idle."""

    async def add_items(self, thread: str, items: Sequence[Item]) -> list[Event]:
        """These items behind what is there, one commit; Busy unless the thread is idle."""

    async def put_mirror(self, mirror: Mirror) -> None: ...

    async def delete_thread(self, thread: str) -> None:
        """thread.deleted for it and its children, then their rows go, in bounded steps. Busy while a turn runs."""

    async def enqueue(self, turn: Turn, *, only_idle: bool = False, key: ClientKey | None = None) -> Enqueued:
        """turn.queued. Busy if `only_idle` and the thread has a running or queued turn. Folds equal keys, Conflict on
        another body. A dead running or queued turn of the thread is ended first and does not count as busy."""

    async def claim(self, turn: str, *, mode: str, model: str) -> Lease:
        """Take the thread for the head of its queue: epoch + 1, turn.started, the input as an item, one commit.
        A dead owner's turn is ended first in the same transaction. Busy while a living owner has it or another turn is
        before this one (data: owner, turn); TurnOver when the turn has ended."""

    async def finish(self, lease: Lease, finished: TurnFinished, drafts: Sequence[Draft] = ()) -> list[Event]:
        """drafts, then the turn's one terminal event; holding interactions of the turn are resolved as denied, pending
        commands settled turn_over, the owner cleared: one commit. Accepted even when storage is full (reserve)."""

    async def drop_queued(self, turn: str, finished: TurnFinished) -> bool:
        """End a queued turn that never ran. By its runner, or by anybody once that is dead. False if not queued."""

    async def recover(self, thread: str = "") -> Recovery:
        """End what dead processes left running or queued in this thread (or in all): interrupted, its holding
        interactions denied, intents without result unknown, partial text kept as partial items."""

    async def resolve(self, interaction: str, decision: Decision, *, grant: Grant | None = None) -> Interaction:
        """First answer wins, with its grant in the same commit; AlreadyResolved (data: decision) afterwards."""

    async def post(self, command: Command) -> Command:
        """Put a command into the owner's inbox (command.posted). TurnOver if the turn has ended."""

    async def settle(
        self, command: str, outcome: Outcome, drafts: Sequence[Draft], lease: Lease, detail: str = ""
    ) -> list[Event]:
        """The owner's answer and what it does with it, one commit."""

    async def use_grant(self, grant: str) -> bool:
        """Count one use; False if it has none left, expired or was revoked meanwhile."""

    async def revoke_grant(self, grant: str) -> None: ...
    async def project(self, root: str, name: str) -> Project:
        """The project with this root, registered on first sight under a free name derived from `name`."""

    async def prune(self, *, now_ms: int, grace_s: float = 900.0) -> PruneReport:
        """Drop deltas whose items are complete and whose turns ended a grace period ago, and old signals."""

    # --- reading: short, never across an await of the caller ------------------------------------------------------
    async def marks(self) -> Marks: ...
    async def events(self, after: int, *, root: str = "", limit: int = 500) -> list[Event]:
        """Events with seq > after in order, of a root thread or of all."""

    async def events_of(self, project: str, after: int, *, limit: int = 500) -> EventPage:
        """Those of a project's threads and those that belong to no thread."""

    async def facts(self, root: str, after: int, *, limit: int = 500) -> list[Event]:
        """The same of a root thread without its deltas, whose words are in its items once those are complete."""

    async def thread(self, thread: str) -> Thread:
        """NotFound when it never was or is deleted."""

    async def project_of(self, thread: str) -> str:
        """The project a thread belongs to, also once it is deleted; nothing where it never was."""

    async def threads(self, query: ThreadQuery) -> list[Thread]: ...
    async def tree(self, thread: str) -> list[Thread]:
        """Its root and every thread below that, deepest first; what is deleted left out."""

    async def items(self, thread: str, *, after: int = 0, limit: int = 500, newest: bool = False) -> list[Item]:
        """Items by ordinal; `newest` gives the last `limit` ones (still ascending)."""

    async def turn(self, turn: str) -> Turn: ...
    async def began(self, turn: str) -> int:
        """The number of the event it began with; 0 while it waits."""

    async def turns(self, thread: str, *, live: bool = False) -> list[Turn]: ...
    async def interaction(self, interaction: str) -> Interaction: ...
    async def interactions(self, *, root: str = "", pending: bool = True) -> list[Interaction]: ...
    async def grants(self, *, root: str = "", project: str = "") -> list[Grant]:
        """Live grants that could serve a call there; everything live when neither is given."""

    async def commands(self, thread: str) -> list[Command]:
        """Commands without outcome, oldest first."""

    async def command(self, command: str) -> Command: ...
    async def audit(self, *, after: int = 0, limit: int = 500) -> list[AuditRow]:
        """Rows of the audit chain after this number, oldest first."""

    async def verify_audit(self, expected: str = "", progress: Callable[[str, int, int], None] = ...) -> Verified:
        """The whole chain, looked at; `expected` is the name of a row that must be in it."""

    async def unknown_effects(self, thread: str = "") -> list[Event]:
        """effect.unknown events, newest first."""

    async def checkpoints(self, *, thread: str = "", after: int = 0) -> list[Event]:
        """checkpoint.made, checkpoint.settled and files.restored events after this seq, oldest first."""

    async def open_checkpoints(self) -> list[Event]:
        """checkpoint.made events, of any thread, whose call has not been settled and whose turn has not ended."""

    async def usage(self, *, after: int = 0, since_ms: int = 0, root: str = "", limit: int = 500) -> list[Event]:
        """What was used: step.finished, tool.finished and turn.finished events with seq > after, in order, of a root
        thread or of all. With `since_ms` those of turns that had ended before then are passed over unread."""

    async def find_handle(self, protocol: str, scope: str, external_id: str) -> Handle | None:
        """The live handle, else the newest deleted one, else None."""

    async def handles(self, thread: str) -> list[Handle]:
        """The thread's live handles, oldest first."""

    async def mirror(self, path: str) -> Mirror | None: ...
    async def mirrors(self, thread: str) -> list[Mirror]:
        """Every file that tells this thread, or told it until it was put aside."""

    async def projects(self) -> list[Project]: ...
    async def search(
        self, words: str, *, project: str = "", hidden: bool = False, limit: int = 50
    ) -> list[SearchHit]: ...
    async def alive(self, owner: str) -> bool: ...

    # --- live ------------------------------------------------------------------------------------------------------
    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call with every committed event of this process and, after `tail`, of others: strictly by seq, on the event
        loop, in batches. An empty batch means that events of others before the next one could not be read: whoever
        needs them looks for itself. Returns the function that stops it."""

    def changed_elsewhere(self) -> bool:
        """Whether another connection committed since last asked. Costs microseconds."""

    async def tail(self) -> None:
        """Publish what other processes committed."""

    async def close(self) -> None: ...
