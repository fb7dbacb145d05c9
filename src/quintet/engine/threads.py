"""Threads: create, open, list, rename, fork, change the view, search, delete. Reading one ends what died in it."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from quintet.domain.errors import Busy, Invalid, NotFound, TurnOver
from quintet.domain.event import Draft, ThreadUpdated, ViewChanged
from quintet.domain.ids import has_prefix, new_id
from quintet.domain.item import Body, Item, answered
from quintet.domain.ports import Recovery
from quintet.domain.principal import Principal
from quintet.domain.thread import TITLE_LENGTH, Handle, SearchHit, Thread, ThreadQuery, ThreadSettings
from quintet.domain.turn import ClientKey
from quintet.domain.view import EVERYTHING, View, ViewReason, forked
from quintet.engine.feed import Feed
from quintet.engine.profiles import DEFAULT, Profiles
from quintet.engine.projects import Handles, Projects
from quintet.engine.turns import Turns
from quintet.engine.undo import Undo, Undone

PAGE = 500
SHORTEST_ID_PREFIX = 6
NOTHING_REVERTED = "Nothing is reverted in this thread."


class Opened(msgspec.Struct, frozen=True):
    thread: Thread
    created: bool = False
    recovery: Recovery = Recovery()


class Reverted(msgspec.Struct, frozen=True, omit_defaults=True):
    thread: Thread
    files: Undone | None = None  # what was done to files, if anything was to be
    files_behind: bool = False  # they were left where an earlier revert had taken them


class Threads:
    def __init__(
        self, feed: Feed, turns: Turns, undo: Undo, projects: Projects, handles: Handles, profiles: Profiles
    ) -> None:
        self._undo = undo
        self._feed = feed
        self._journal = feed.journal
        self._turns = turns
        self._projects = projects
        self._handles = handles
        self._profiles = profiles

    async def create(
        self,
        settings: ThreadSettings,
        *,
        profile: str = DEFAULT,
        title: str = "",
        title_final: bool = False,
        handle: Handle | None = None,
        items: Sequence[Item] = (),
        view: View = EVERYTHING,
        forked_from: str = "",
        forked_at: int = 0,
        takes_name: bool = False,
        project: str = "",
        metadata: dict[str, Any] | None = None,
        key: ClientKey | None = None,
        created_ms: int = 0,
    ) -> Thread:
        """A new thread, empty or with given items (a fork's, an imported file's), in one commit. Its project is the
        one of its directory unless another is said; a key that made one before gives that one. `created_ms`: when it
        was begun elsewhere."""
        now = self._feed.clock.now_ms()
        thread_id = new_id("thr")
        thread = Thread(
            id=thread_id,
            root=thread_id,
            project=project or (await self._projects.of(settings.cwd)).id,
            profile=self._profiles.named(profile).name,
            settings=settings,
            created_ms=created_ms or now,
            updated_ms=now,
            title=self._feed.mask(title)[:TITLE_LENGTH],
            title_final=title_final,
            view=view,
            metadata=metadata or {},
            forked_from=forked_from,
            forked_at=forked_at,
        )
        owned = [msgspec.structs.replace(i, thread=thread_id) for i in items]
        return await self._feed.create_thread(thread, handle, owned, takes_name=takes_name, key=key)

    async def open(self, handle: Handle, settings: ThreadSettings, *, profile: str = DEFAULT) -> Opened:
        """The thread an outside client means by its own id; a new one under that id if there is none."""
        found = await self._handles.find(handle.protocol, handle.scope, handle.external_id)
        if found is not None:
            return await self.get(found)
        return Opened(await self.create(settings, profile=profile, handle=handle), created=True)

    async def get(self, thread: str) -> Opened:
        """The thread as it stands, after ending what a dead process left running in it."""
        recovery = Recovery()
        for turn in await self._journal.turns(thread, live=True):
            if not await self._journal.alive(turn.runner):
                recovery = await self._journal.recover(thread)
                break
        return Opened(await self._journal.thread(thread), recovery=recovery)

    async def find(self, text: str) -> str:
        """A thread's id from what a person typed: the id, or enough of its beginning or end to be the only one."""
        if has_prefix(text, "thr"):
            return (await self._journal.thread(text)).id
        wanted = text.removeprefix("thr_")
        if len(wanted) < SHORTEST_ID_PREFIX:
            raise Invalid(
                f"{text!r} is too short to name a thread.", next_step="List them with `quintet threads list`."
            )
        matches, before = [], None
        while page := await self._journal.threads(ThreadQuery(children=True, before=before, limit=PAGE)):
            matches += [t.id for t in page if t.id[4:].startswith(wanted) or t.id.endswith(wanted)]
            before = (page[-1].updated_ms, page[-1].id)
        if len(matches) != 1:
            words = "No thread has" if not matches else f"{len(matches)} threads have"
            raise NotFound(f"{words} an id like {text!r}.")
        return matches[0]

    async def page(self, query: ThreadQuery) -> list[Thread]:
        return await self._journal.threads(query)

    async def search(self, words: str, *, project: str = "", hidden: bool = False, limit: int = 50) -> list[SearchHit]:
        if not words.strip():
            raise Invalid("There is nothing to search for.", next_step="Give one or more words.")
        return await self._journal.search(words, project=project, hidden=hidden, limit=limit)

    async def items(self, thread: str) -> list[Item]:
        """All items, hidden ones included; the thread's view says which those are."""
        items: list[Item] = []
        while page := await self._journal.items(thread, after=items[-1].ordinal if items else 0, limit=PAGE):
            items.extend(page)
        return items

    async def rename(self, thread: str, title: str) -> None:
        """A person's title is final: nothing automatic replaces it."""
        await self.amend(thread, title=title)

    async def amend(self, thread: str, *, title: str | None = None, metadata: dict[str, Any] | None = None) -> None:
        """Another title, notes laid over those that are there, or both at once. Nothing to change is no change."""
        words = None if title is None else " ".join(self._feed.mask(title).split())[:TITLE_LENGTH]
        if words == "":
            raise Invalid("A title needs at least one visible character.")
        if words is not None or metadata:
            final = True if words is not None else None
            await self._update(thread, ThreadUpdated(title=words, title_final=final, metadata=metadata))

    async def configure(self, thread: str, update: ThreadUpdated) -> None:
        await self._update(thread, update)

    async def fork(self, thread: str, *, through: int | None = None, title: str = "") -> Thread:
        """A new thread with what was visible up to an item; grants, open interactions and calls that nothing has come
        of there stay behind."""
        source = (await self.get(thread)).thread
        last = source.last_ordinal if through is None else through
        if not 0 <= last <= source.last_ordinal:
            raise Invalid(f"The thread has items 1 to {source.last_ordinal}; {last} is not one of them.")
        visible = [i for i in await self.items(thread) if i.ordinal <= last and not source.view.is_hidden(i.ordinal)]
        visible = answered(visible)
        copies = [msgspec.structs.replace(i, id=new_id("itm"), origin=i.id) for i in visible]
        return await self.create(
            source.settings,
            profile=source.profile,
            title=title or source.title,
            items=copies,
            view=forked(source.view, last),
            forked_from=source.id,
            forked_at=last,
            project=source.project,
            metadata=source.metadata,
        )

    async def revert(
        self,
        thread: str,
        keep_through: int,
        *,
        files: bool = False,
        force: bool = False,
        dry_run: bool = False,
        named: Collection[str] = (),
    ) -> Reverted:
        """Hide what follows an item, until unrevert; the next turn makes it final. With `files`, what calls changed
        after it is brought back first, the named ones also where they may be the person's own work; a view that has
        changed says that this was done."""
        source = await self._resting(thread)
        if not 0 <= keep_through <= source.last_ordinal:
            raise Invalid(f"The thread has items 1 to {source.last_ordinal}; {keep_through} is not one of them.")
        undone = None
        if files:
            undone = await self._undo.revert(source, keep_through, force=force, dry_run=dry_run, named=named)
        if dry_run:
            return Reverted(source, undone)
        change = ViewChanged(ViewReason.REVERT, keep_through=keep_through)
        return Reverted(await self._change_view(source, change), undone)

    async def unrevert(
        self, thread: str, *, files: bool = False, force: bool = False, dry_run: bool = False
    ) -> Reverted:
        """Show again what was hidden, and with `files` undo all that reverting did to them. Without, they stay as they
        are and can be brought later."""
        if files:
            return await self.redo(thread, whole=True, force=force, dry_run=dry_run)
        source = await self._resting(thread)
        behind = await self._undo.behind(thread)
        if source.view.reverted is None and not behind:
            raise Invalid(NOTHING_REVERTED, next_step="Nothing to do.")
        if dry_run:
            return Reverted(source, files_behind=behind)
        return Reverted(await self._change_view(source, ViewChanged(ViewReason.UNREVERT)), files_behind=behind)

    async def redo(self, thread: str, *, whole: bool = False, force: bool = False, dry_run: bool = False) -> Reverted:
        """Take back the last undo, or all of them, files and view together; what is shown already stays so."""
        source = await self._resting(thread)
        undone = await self._undo.redo(source, whole=whole, force=force, dry_run=dry_run)
        if undone is None:
            raise Invalid(NOTHING_REVERTED, next_step="Nothing to do.")
        if dry_run:
            return Reverted(source, undone)
        shown = source.view.reverted[0] - 1 if source.view.reverted else source.last_ordinal
        keep = max(shown, undone.keep_through)
        change = ViewChanged(ViewReason.UNREVERT)
        if keep < source.last_ordinal:
            change = ViewChanged(ViewReason.REVERT, keep_through=keep)
        return Reverted(await self._change_view(source, change), undone)

    async def _resting(self, thread: str) -> Thread:
        """The thread, which nothing runs in or waits for."""
        source = (await self.get(thread)).thread
        if source.owner or await self._journal.turns(thread, live=True):
            raise Busy("A turn is running or waiting in this thread.")
        return source

    async def clear(self, thread: str) -> Thread:
        """The model starts afresh; people still see everything."""
        return await self._change_view((await self.get(thread)).thread, ViewChanged(ViewReason.CLEAR))

    async def begin(
        self, settings: ThreadSettings, bodies: Sequence[Body], *, handle: Handle, takes_name: bool = False
    ) -> Thread:
        """A new thread of that name with these items; `takes_name` where another thread has it until now."""
        items = [msgspec.structs.replace(self._item("", b), ordinal=n) for n, b in enumerate(bodies, start=1)]
        return await self.create(settings, handle=handle, items=items, takes_name=takes_name)

    async def name(self, handle: Handle) -> None:
        """One more name for the thread it speaks of."""
        await self._journal.add_handle(handle)
        await self._feed.mirror(handle.thread)

    async def extend(self, thread: str, bodies: Sequence[Body]) -> None:
        """Put these items behind what is there; it must rest."""
        await self._feed.add_items(thread, [self._item(thread, body) for body in bodies])

    async def replace(self, thread: str, bodies: Sequence[Body]) -> Thread:
        """Hide everything and put these items in its place."""
        source = (await self.get(thread)).thread
        await self._feed.replace_items(source.id, [self._item(source.id, body) for body in bodies])
        await self._feed.mirror(source.id)
        return await self._journal.thread(thread)

    async def delete(self, thread: str, by: Principal) -> None:
        """Erase it. A running turn is cancelled first; what a dead process left is ended."""
        await self.get(thread)
        # Itself before what lies below it: its subagents end with its turn, others were started there by somebody.
        for here in await self._below(thread):
            # Those that wait first, so that none of them begins when the running one ends.
            for turn in reversed(await self._journal.turns(here, live=True)):
                with contextlib.suppress(TurnOver):
                    await self._turns.cancel(turn.id, by, "the thread is being deleted")
        await self._feed.unmirror(thread)
        await self._journal.delete_thread(thread)

    async def children(self, thread: str) -> list[Thread]:
        """The threads of its subagents, in the order they were begun."""
        return sorted((t for t in await self._journal.tree(thread) if t.parent == thread), key=lambda t: t.id)

    async def _below(self, thread: str) -> list[str]:
        """The thread and everything below it, each behind its parent."""
        found = [thread]
        for here in reversed(await self._journal.tree(thread)):
            if here.parent in found:
                found.append(here.id)
        return found

    def _item(self, thread: str, body: Body) -> Item:
        return Item(new_id("itm"), thread, "", 0, self._feed.clock.now_ms(), body)

    async def _update(self, thread: str, update: ThreadUpdated) -> None:
        await self._journal.thread(thread)
        await self._feed.append([Draft(update, thread)])
        await self._feed.mirror(thread)

    async def _change_view(self, thread: Thread, change: ViewChanged) -> Thread:
        if thread.owner:
            raise Busy("A turn is running in this thread.")
        await self._feed.append([Draft(change, thread.id)])
        await self._feed.mirror(thread.id)
        return await self._journal.thread(thread.id)
