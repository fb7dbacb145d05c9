"""Whatever is done to both stores, they answer alike: random histories of two processes, one of which may die."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from quintet.domain import event as ev
from quintet.domain.checkpoint import Secured
from quintet.domain.command import Outcome
from quintet.domain.errors import QuintetError
from quintet.domain.event import Draft
from quintet.domain.thread import Handle, ThreadQuery
from quintet.domain.tool import Effect
from quintet.domain.turn import ClientKey, Lease
from quintet.domain.view import ViewReason
from quintet.journal import StoredJournal
from tests.fakes.memory_disk import in_memory
from tests.unit.journal.conftest import Processes
from tests.unit.journal.nouns import (
    DONE,
    a_call,
    a_grant,
    a_request,
    a_steer,
    a_thread,
    a_turn,
    an_intent,
    asked,
    everything,
    no,
    said,
    text_delta,
    yes,
)

_ID = re.compile(r"\b(thr|trn|itm|int|grt|cmd|own|prj)_[0-9a-z]{26}\b")


class World:
    """One store with two processes, told the same story as its twin."""

    def __init__(self, processes: Processes) -> None:
        self.processes = processes
        self.journals: list[StoredJournal] = []
        self.threads: list[str] = []
        self.turns: list[str] = []
        self.leases: list[Lease] = []
        self.requests: list[str] = []
        self.commands: list[str] = []
        self.grants: list[str] = []
        self.names: dict[str, str] = {}

    def plain(self, value: Any) -> str:
        """As text, with ids replaced by the order in which they were first met."""
        text = msgspec.json.encode(value).decode()
        return _ID.sub(lambda m: self.names.setdefault(m[0], f"{m[1]}:{len(self.names)}"), text)

    async def tell(self, step: tuple[str, int, int]) -> str:
        try:
            return self.plain(await self.act(*step))
        except QuintetError as error:
            return f"{error.code} {self.plain(sorted(error.data))}"

    def act(self, what: str, n: int, who: int) -> Awaitable[Any]:
        return getattr(self, f"do_{what}")(n, self.journals[who % 2])  # type: ignore[no-any-return]

    @staticmethod
    def pick(things: list[str], n: int) -> str:
        return things[n % len(things)] if things else "none"

    def lease(self, n: int) -> Lease:
        return self.leases[n % len(self.leases)] if self.leases else Lease("none", "none", "none", 0)

    async def do_create(self, n: int, journal: StoredJournal) -> Any:
        handle = Handle("wire", "", f"name-{n % 3}") if n % 2 else None
        above = await journal.thread(self.pick(self.threads, n)) if n % 5 == 4 and self.threads else None
        made = await journal.create_thread(a_thread(parent=above), handle=handle)
        self.threads.append(made.id)
        return made

    async def do_enqueue(self, n: int, journal: StoredJournal) -> Any:
        key = ClientKey("me", f"{n % 2}", f"{n % 3}") if n % 4 == 0 else None
        turn = a_turn(self.pick(self.threads, n), f"input {n}")
        queued = await journal.enqueue(turn, only_idle=n % 3 == 0, key=key)
        if not queued.folded:
            self.turns.append(turn.id)
        return queued

    async def do_claim(self, n: int, journal: StoredJournal) -> Any:
        lease = await journal.claim(self.pick(self.turns, n), mode="ask", model="m")
        self.leases.append(lease)
        return lease

    async def do_append(self, n: int, journal: StoredJournal) -> Any:
        request = a_request(f"cal_{n}", holds=n % 2 == 0)
        choices = [
            [said(f"text {n}")],
            [a_call(f"cal_{n}")],
            [an_intent(f"cal_{n}", list(Effect)[n % 4])],
            [asked(request)],
        ]
        events = await journal.append(choices[n % 4], lease=self.lease(n))
        if n % 4 == 3:
            self.requests.append(request.id)
        return events

    async def do_checkpoint(self, n: int, journal: StoredJournal) -> Any:
        call, thread = f"cal_{n % 4}", self.pick(self.threads, n)
        if n % 3 == 0:
            return await journal.append([Draft(ev.FilesRestored("/w", ViewReason.REVERT), thread)])
        made = ev.CheckpointMade(call, "shell", Secured("/w"))
        said = made if n % 3 == 1 else ev.CheckpointSettled(call, "shell", "/w")
        return await journal.append([Draft(said)], lease=self.lease(n))

    async def do_push(self, n: int, journal: StoredJournal) -> Any:
        lease = self.lease(n)
        journal.push([text_delta(f"itm_{n % 3}", k, f"w{k} ") for k in range(n % 4)], lease)
        await journal.tail()
        await journal.room(lease=lease)

    async def do_view(self, n: int, journal: StoredJournal) -> Any:
        change = ev.ViewChanged(list(ViewReason)[n % 4], keep_through=n % 3)
        return await journal.append([Draft(change, self.pick(self.threads, n))])

    async def do_resolve(self, n: int, journal: StoredJournal) -> Any:
        grant = a_grant(self.pick(self.threads, n), uses=2) if n % 3 == 0 else None
        done = await journal.resolve(self.pick(self.requests, n), yes() if n % 2 else no(), grant=grant)
        self.grants += [grant.id] if grant else []
        return done

    async def do_grant(self, n: int, journal: StoredJournal) -> Any:
        if n % 3 == 0:
            await journal.revoke_grant(self.pick(self.grants, n))
        return await journal.use_grant(self.pick(self.grants, n))

    async def do_post(self, n: int, journal: StoredJournal) -> Any:
        turn = self.pick(self.turns, n)
        thread = (await journal.turn(turn)).thread
        command = await journal.post(a_steer(thread, turn, f"steer {n}"))
        self.commands.append(command.id)
        return command

    async def do_settle(self, n: int, journal: StoredJournal) -> Any:
        return await journal.settle(self.pick(self.commands, n), list(Outcome)[n % 4], [], self.lease(n))

    async def do_finish(self, n: int, journal: StoredJournal) -> Any:
        return await journal.finish(self.lease(n), DONE, [said("bye")] if n % 2 else [])

    async def do_drop(self, n: int, journal: StoredJournal) -> Any:
        return await journal.drop_queued(self.pick(self.turns, n), DONE)

    async def do_die(self, n: int, journal: StoredJournal) -> Any:
        self.processes.die(journal)
        self.journals[self.journals.index(journal)] = await self.processes.another()

    async def do_recover(self, n: int, journal: StoredJournal) -> Any:
        return await journal.recover(self.pick(self.threads, n) if n % 2 else "")

    async def do_delete(self, n: int, journal: StoredJournal) -> Any:
        return await journal.delete_thread(self.pick(self.threads, n))

    async def do_prune(self, n: int, journal: StoredJournal) -> Any:
        self.processes.clock.now += n * 200_000
        report = await journal.prune(now_ms=self.processes.clock.now)
        return report.deltas, report.pruned_through

    async def do_look(self, n: int, journal: StoredJournal) -> Any:
        thread = self.pick(self.threads, n)
        return [
            await journal.threads(ThreadQuery(children=n % 2 == 0, limit=3)),
            await journal.find_handle("wire", "", f"name-{n % 3}"),
            await journal.interactions(root=thread, pending=n % 2 == 0),
            await journal.grants(root=thread),
            sorted((h.ordinal, h.snippet, h.hidden) for h in await journal.search(f"text {n % 3}", hidden=n % 2 == 0)),
            await journal.items(thread, newest=n % 2 == 0, limit=3),
            await journal.turns(thread, live=n % 2 == 0),
            await journal.commands(thread),
            await journal.checkpoints(thread=thread if n % 2 else "", after=n),
            sorted(self.plain(e) for e in await journal.open_checkpoints()),
        ]

    async def all_told(self) -> str:
        events = await everything(self.journals[0])
        assert not any(e.damaged for e in events)
        unknown = await self.journals[0].unknown_effects()
        found = await self.journals[0].checkpoints()
        assert found == [e for e in events if e.kind in ("checkpoint.made", "checkpoint.settled", "files.restored")]
        return self.plain([events, unknown, await self.journals[0].marks()])


STEPS = [name.removeprefix("do_") for name in dir(World) if name.startswith("do_")]
LIKELY = ["create", "enqueue", "claim", "claim", "append", "append", "push", "finish"]
steps = st.tuples(st.sampled_from(STEPS + LIKELY), st.integers(0, 11), st.integers(0, 1))


@settings(max_examples=60, deadline=None)
@given(story=st.lists(steps, min_size=10, max_size=50))
def test_both_stores_tell_the_same_story(story: list[tuple[str, int, int]]) -> None:
    async def play() -> None:
        with in_memory() as home:
            worlds = [World(Processes(home / "home")), World(Processes(None))]
            for world in worlds:
                world.journals = [await world.processes.another() for _ in range(2)]
            try:
                for step in [("create", 0, 0), ("enqueue", 1, 0), ("claim", 0, 0), *story]:
                    answers = [await world.tell(step) for world in worlds]
                    assert answers[0] == answers[1], step
                told = [await world.all_told() for world in worlds]
                assert told[0] == told[1]
            finally:
                for world in worlds:
                    await world.processes.close()

    asyncio.run(asyncio.wait_for(play(), 60))
