"""StoredJournal: the Journal port over any store. Each write is one rule in one transaction; reads are checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from quintet.domain.audit import AuditRow, Verified
from quintet.domain.command import Command, Outcome
from quintet.domain.errors import NotFound
from quintet.domain.event import Draft, Event, EventPage, Marks, TurnFinished
from quintet.domain.grant import Grant
from quintet.domain.interaction import Decision, Interaction
from quintet.domain.item import Item
from quintet.domain.mirror import Mirror
from quintet.domain.ports import Enqueued, Listener, PruneReport, Recovery
from quintet.domain.principal import ENGINE
from quintet.domain.project import Project
from quintet.domain.thread import Handle, SearchHit, Thread, ThreadQuery
from quintet.domain.turn import ClientKey, Lease, Mode, Turn
from quintet.journal import answers, appending, audit, pruning, reading, recovery, searching, threads, turns
from quintet.journal.audit import Progress
from quintet.journal.rows import Reads
from quintet.journal.store import OpenReport, Store


class StoredJournal:
    def __init__(self, store: Store) -> None:
        self.store = store
        self._looked_for_deltas = 0  # below this number pruning has found all there were

    @property
    def owner(self) -> str:
        return self.store.owner

    @property
    def report(self) -> OpenReport:
        """What opening the store found."""
        return self.store.report

    # --- writing -----------------------------------------------------------------------------------------------
    def push(self, drafts: Sequence[Draft], lease: Lease) -> None:
        self.store.push(drafts, lease)

    async def room(self, *, lease: Lease | None = None) -> None:
        """With a lease, only what its own pushes failed with is raised."""
        await self.store.room(lease)

    async def append(self, drafts: Sequence[Draft], *, lease: Lease | None = None) -> list[Event]:
        if lease is not None:
            self.store.raise_failed_push(lease)
        return await self.store.write("append", lambda tx: appending.append(tx, drafts, lease))

    async def create_thread(
        self,
        thread: Thread,
        *,
        handle: Handle | None = None,
        items: Sequence[Item] = (),
        takes_name: bool = False,
        key: ClientKey | None = None,
    ) -> Thread:
        work = partial(threads.create_thread, thread=thread, handle=handle, items=items, takes_name=takes_name, key=key)
        return await self.store.write("create", work)

    async def add_handle(self, handle: Handle) -> Handle:
        """Another name for a thread that exists. Conflict if it names another live one."""
        return await self.store.write("create", lambda tx: threads.add_handle(tx, handle))

    async def replace_items(self, thread: str, items: Sequence[Item]) -> list[Event]:
        return await self.store.write("append", lambda tx: threads.replace_items(tx, thread, items))

    async def add_items(self, thread: str, items: Sequence[Item]) -> list[Event]:
        return await self.store.write("append", lambda tx: threads.add_items(tx, thread, items))

    async def put_mirror(self, mirror: Mirror) -> None:
        await self.store.write("mirror", lambda tx: tx.rows.put_mirror(mirror))

    async def delete_thread(self, thread: str) -> None:
        for doomed in await self.store.write("delete", lambda tx: threads.delete_thread(tx, thread)):
            await self._erase(doomed)

    async def finish_erasures(self) -> None:
        """Go on with what a process left half erased."""
        for doomed in await self.store.read(lambda rows: rows.unerased()):
            await self._erase(doomed)

    async def _erase(self, thread: str) -> None:
        while await self.store.write("erase", lambda tx: threads.erase_step(tx, thread)):
            pass

    async def enqueue(self, turn: Turn, *, only_idle: bool = False, key: ClientKey | None = None) -> Enqueued:
        return await self.store.write("enqueue", lambda tx: turns.enqueue(tx, turn, only_idle=only_idle, key=key))

    async def claim(self, turn: str, *, mode: str, model: str) -> Lease:
        return await self.store.write("claim", lambda tx: turns.claim(tx, turn, mode=Mode(mode), model=model))

    async def finish(self, lease: Lease, finished: TurnFinished, drafts: Sequence[Draft] = ()) -> list[Event]:
        work = partial(turns.finish, lease=lease, finished=finished, drafts=drafts)
        return await self.store.write("finish", work, settling=True)

    async def drop_queued(self, turn: str, finished: TurnFinished) -> bool:
        work = partial(turns.drop_queued, turn=turn, finished=finished)
        return await self.store.write("finish", work, settling=True)

    async def recover(self, thread: str = "") -> Recovery:
        ended: list[str] = []
        unknown: list[str] = []
        for root in await self.store.read(lambda rows: self._dead_roots(rows, thread)):
            found = await self.store.write("recover", partial(recovery.end_dead, thread=root), settling=True)
            ended += found.turns
            unknown += found.unknown
        return Recovery(tuple(ended), tuple(unknown))

    def _dead_roots(self, rows: Reads, thread: str) -> list[str]:
        """Where there is something to end. Looked up beside the writer, since mostly there is nothing."""
        root = reading.thread(rows, thread).root if thread else ""
        roots: dict[str, None] = {}
        for here in rows.owned():
            if root in ("", here.root) and here.root not in roots and not self.store.alive(here.owner):
                roots[here.root] = None
        for row in rows.queued():
            waiting = rows.thread(row.turn.thread)
            if waiting is not None and root in ("", waiting.root) and not self.store.alive(row.turn.runner):
                roots[waiting.root] = None
        return list(roots)

    async def resolve(self, interaction: str, decision: Decision, *, grant: Grant | None = None) -> Interaction:
        work = partial(answers.resolve, interaction=interaction, decision=decision, grant=grant)
        return await self.store.write("resolve", work, settling=decision.by == ENGINE)

    async def post(self, command: Command) -> Command:
        return await self.store.write("post", lambda tx: answers.post(tx, command))

    async def settle(
        self, command: str, outcome: Outcome, drafts: Sequence[Draft], lease: Lease, detail: str = ""
    ) -> list[Event]:
        return await self.store.write("settle", lambda tx: answers.settle(tx, command, outcome, drafts, lease, detail))

    async def use_grant(self, grant: str) -> bool:
        return await self.store.write("grant", lambda tx: answers.use_grant(tx, grant))

    async def revoke_grant(self, grant: str) -> None:
        await self.store.write("grant", lambda tx: answers.revoke_grant(tx, grant))

    async def project(self, root: str, name: str) -> Project:
        for known in await self.store.read(lambda rows: rows.projects()):
            if known.root == root:
                return known
        return await self.store.write("project", lambda tx: threads.project(tx, root, name))

    async def prune(self, *, now_ms: int, grace_s: float = 900.0) -> PruneReport:
        deltas = size = 0
        more = True
        while more:
            work = partial(
                pruning.prune_step, now_ms=now_ms, grace_ms=int(grace_s * 1000), looked=self._looked_for_deltas
            )
            step = await self.store.write("prune", work, settling=True)  # it makes room, so a full disk takes it too
            self._looked_for_deltas, more = step.through, step.more
            deltas, size = deltas + step.deltas, size + step.size
        signals = await self.store.write("prune", lambda tx: pruning.prune_signals(tx, now_ms), settling=True)
        freed = await self.store.tidy() if deltas or signals else 0
        return PruneReport(deltas, signals, max(freed, size), (await self.marks()).pruned_through)

    # --- reading -----------------------------------------------------------------------------------------------
    async def marks(self) -> Marks:
        return await self.store.read(reading.marks)

    async def events(self, after: int, *, root: str = "", limit: int = 500) -> list[Event]:
        return await self.store.read(lambda rows: reading.events(rows, after, root, limit))

    async def events_of(self, project: str, after: int, *, limit: int = 500) -> EventPage:
        return await self.store.read(lambda rows: reading.events_of(rows, after, project, limit))

    async def facts(self, root: str, after: int, *, limit: int = 500) -> list[Event]:
        return await self.store.read(lambda rows: reading.facts(rows, after, root, limit))

    async def thread(self, thread: str) -> Thread:
        return await self.store.read(lambda rows: reading.thread(rows, thread))

    async def project_of(self, thread: str) -> str:
        found = await self.store.read(lambda rows: rows.thread(thread))
        return found.project if found is not None else ""

    async def threads(self, query: ThreadQuery) -> list[Thread]:
        return await self.store.read(lambda rows: rows.threads(query))

    async def tree(self, thread: str) -> list[Thread]:
        return await self.store.read(lambda rows: reading.tree(rows, thread))

    async def items(self, thread: str, *, after: int = 0, limit: int = 500, newest: bool = False) -> list[Item]:
        return await self.store.read(lambda rows: reading.items(rows, thread, after, limit, newest=newest))

    async def turn(self, turn: str) -> Turn:
        return await self.store.read(lambda rows: reading.turn(rows, turn))

    async def began(self, turn: str) -> int:
        return await self.store.read(lambda rows: reading.began(rows, turn))

    async def turns(self, thread: str, *, live: bool = False) -> list[Turn]:
        return await self.store.read(lambda rows: reading.turns(rows, thread, live=live))

    async def interaction(self, interaction: str) -> Interaction:
        return await self.store.read(lambda rows: reading.interaction(rows, interaction))

    async def interactions(self, *, root: str = "", pending: bool = True) -> list[Interaction]:
        return await self.store.read(lambda rows: rows.interactions(root, pending=pending))

    async def grants(self, *, root: str = "", project: str = "") -> list[Grant]:
        now = self.store.clock.now_ms()
        return await self.store.read(lambda rows: reading.grants(rows, root, project, now))

    async def commands(self, thread: str) -> list[Command]:
        return await self.store.read(lambda rows: rows.commands(thread))

    async def command(self, command: str) -> Command:
        found = await self.store.read(lambda rows: rows.command(command))
        if found is None:
            raise NotFound(f"There is no command {command}.", command=command)
        return found

    async def checkpoints(self, *, thread: str = "", after: int = 0) -> list[Event]:
        return await self.store.read(lambda rows: reading.checkpoints(rows, thread, after))

    async def open_checkpoints(self) -> list[Event]:
        return await self.store.read(reading.open_checkpoints)

    async def usage(self, *, after: int = 0, since_ms: int = 0, root: str = "", limit: int = 500) -> list[Event]:
        return await self.store.read(lambda rows: reading.usage(rows, after, since_ms, root, limit))

    async def audit(self, *, after: int = 0, limit: int = 500) -> list[AuditRow]:
        return await self.store.read(lambda rows: rows.audit(after, limit))

    async def verify_audit(self, expected: str = "", progress: Progress = lambda _, __, ___: None) -> Verified:
        return await self.store.read(lambda rows: audit.verify(rows, expected, progress))

    async def unknown_effects(self, thread: str = "") -> list[Event]:
        return await self.store.read(lambda rows: reading.unknown_effects(rows, thread))

    async def find_handle(self, protocol: str, scope: str, external_id: str) -> Handle | None:
        return await self.store.read(lambda rows: rows.handle(protocol, scope, external_id))

    async def handles(self, thread: str) -> list[Handle]:
        return await self.store.read(lambda rows: rows.handles(thread))

    async def mirror(self, path: str) -> Mirror | None:
        return await self.store.read(lambda rows: rows.mirror(path))

    async def mirrors(self, thread: str) -> list[Mirror]:
        return await self.store.read(lambda rows: rows.mirrors(thread))

    async def projects(self) -> list[Project]:
        return await self.store.read(lambda rows: rows.projects())

    async def search(self, words: str, *, project: str = "", hidden: bool = False, limit: int = 50) -> list[SearchHit]:
        return await self.store.read(
            lambda rows: searching.search(rows, words, project=project, hidden=hidden, limit=limit)
        )

    async def alive(self, owner: str) -> bool:
        return self.store.alive(owner)

    # --- live ------------------------------------------------------------------------------------------------------
    def listen(self, listener: Listener) -> Callable[[], None]:
        return self.store.listen(listener)

    def changed_elsewhere(self) -> bool:
        return self.store.changed_elsewhere()

    async def tail(self) -> None:
        await self.store.tail()

    async def close(self) -> None:
        await self.store.close()
