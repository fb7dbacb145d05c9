"""Comparing what was acknowledged with what is there after a crash. One ledger follows one home through its kills."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from quintet.domain import event as ev
from quintet.domain.command import Outcome
from quintet.domain.event import Event
from quintet.domain.item import ResultStatus, Summary, ToolCall, ToolResult, UserMessage, text_of
from quintet.domain.ports import Journal
from quintet.domain.thread import ThreadQuery
from quintet.domain.tool import Effect
from quintet.domain.turn import TurnState
from quintet.journal.opening import open_journal
from tests.faults.acks import read_acks, told

READY_WITHIN_S = 2.0
Called = tuple[str, str]  # thread, call: a call's id is unique in its thread only


async def all_events(journal: Journal) -> list[Event]:
    events: list[Event] = []
    while page := await journal.events(events[-1].seq if events else 0):
        events += page
    return events


class Ledger:
    def __init__(self, home: Path) -> None:
        self.home = home
        self.acks_path = home.parent / f"{home.name}.acks"
        self.effects_path = home.parent / f"{home.name}.effects"
        self.offset = 0
        self.acks: list[dict[str, Any]] = []
        self.known: dict[int, list[Any]] = {}  # every number ever seen, and what it stood for
        self.acked_facts: set[int] = set()
        self.acked_deltas: set[int] = set()
        self.forgotten_threads: set[str] = set()  # deletion was asked for
        self.pruned = False
        self.counts: Counter[str] = Counter()
        self.ready_s: list[float] = []

    def take_acks(self) -> list[dict[str, Any]]:
        """Read what the killed process was told. The same number told twice must mean the same event."""
        if not self.acks_path.exists():
            return []
        fresh, self.offset = read_acks(self.acks_path, self.offset)
        for ack in fresh:
            if ack["what"] == "event":
                self._note(ack["seq"], ack["told"])
                (self.acked_facts if ack["fact"] else self.acked_deltas).add(ack["seq"])
            elif ack["what"] == "deleting":
                self.forgotten_threads.add(ack["thread"])
            elif ack["what"] == "prune":
                self.pruned = True
        self.acks += fresh
        return fresh

    def _note(self, seq: int, said: list[Any]) -> None:
        before = self.known.setdefault(seq, said)
        assert before == said, f"number {seq} stands for two events:\n{before}\n{said}"

    async def check(self, *, boot: str | None = None, cut: bool = False, marked: bool = True) -> None:
        """Open as the next process would, recover, and compare everything. `marked`: each effect is a line in a file
        that names its call."""
        self.take_acks()
        begun = time.monotonic()
        journal = await open_journal(self.home, protocol="check", boot_id=boot)
        try:
            assert not journal.report.damaged, f"a kill was taken for damage: {journal.report}"
            await journal.threads(ThreadQuery())
            await journal.events(0)
            await journal.recover()
            self.ready_s.append(time.monotonic() - begun)
            assert self.ready_s[-1] < READY_WITHIN_S, f"ready only after {self.ready_s[-1]:.2f} s"
            events = await all_events(journal)
            self._check_log(events, cut=cut)
            self._check_turns(events)
            await self._check_rows(journal, events)
            await self._check_replies(journal, events)
            self._check_effects(events, marked=marked)
        finally:
            await journal.close()

    # --- the log ---------------------------------------------------------------------------------------------------
    def _check_log(self, events: list[Event], *, cut: bool) -> None:
        seqs = [e.seq for e in events]
        assert seqs == sorted(set(seqs)), "numbers do not strictly increase"
        assert not [e.seq for e in events if e.damaged]
        there = {e.seq: told(e) for e in events}
        for seq, said in there.items():
            self._note(seq, said)
        lost = [s for s in self.acked_facts if s not in there and self._thread_of(s) not in self.forgotten_threads]
        assert not lost, f"acknowledged facts lost: {[(s, self.known[s]) for s in sorted(lost)[:5]]}"
        interrupted = {
            e.turn
            for e in events
            if isinstance(e.payload, ev.TurnFinished) and e.payload.state is TurnState.INTERRUPTED
        }
        items = {e.payload.item.id for e in events if isinstance(e.payload, ev.ItemAdded)}
        for seq in [s for s in self.acked_deltas if s not in there]:
            kind, _, thread, _, turn, body = self.known[seq]
            if thread in self.forgotten_threads:
                continue
            covered = self.pruned and (kind == "tool.output_delta" or any(item in body for item in items))
            assert covered or (cut and turn in interrupted), f"delta {seq} is gone: {self.known[seq]}"
            if not self.pruned:
                self.counts["deltas lost with power"] += 1
            self.acked_deltas.discard(seq)  # told once
        self.counts["events"] = len(events)
        self.counts["facts acknowledged"] = len(self.acked_facts)
        self.counts["deltas acknowledged"] = len(self.acked_deltas)

    def _thread_of(self, seq: int) -> str:
        return str(self.known[seq][2])

    def _check_turns(self, events: list[Event]) -> None:
        queued = [e.turn for e in events if isinstance(e.payload, ev.TurnQueued)]
        assert len(queued) == len(set(queued))
        ends: dict[str, list[str]] = defaultdict(list)
        for event in events:
            if isinstance(event.payload, ev.TurnFinished):
                ends[event.turn].append(event.payload.state)
        wrong = {turn: ends[turn] for turn in queued if len(ends[turn]) != 1}
        assert not wrong, f"turns without exactly one terminal event: {wrong}"
        self.counts["turns"] = len(queued)
        for state in TurnState:
            self.counts[f"turns {state}"] = sum(s == [state] for s in ends.values())
        last: dict[str, int] = {}
        for event in events:
            if event.turn and not isinstance(event.payload, ev.CommandPosted | ev.CommandSettled):
                last[event.turn] = event.seq
        ended_at = {e.turn: e.seq for e in events if isinstance(e.payload, ev.TurnFinished)}
        late = [t for t, seq in ended_at.items() if last[t] > seq]
        assert not late, f"events behind the terminal one: {late}"

    # --- what is read directly ---------------------------------------------------------------------------------------
    async def _check_rows(self, journal: Journal, events: list[Event]) -> None:
        assert not await journal.interactions(), "an interaction of an ended turn is still open"
        added = {e.payload.item.id: e.payload.item for e in events if isinstance(e.payload, ev.ItemAdded)}
        before, self.counts["compactions"] = None, 0
        while page := await journal.threads(ThreadQuery(children=True, before=before, limit=100)):
            before = (page[-1].updated_ms, page[-1].id)
            for thread in page:
                assert not thread.owner + thread.active_turn, f"{thread.id} still has an owner"
                items = await journal.items(thread.id, limit=100_000)
                ordinals = [i.ordinal for i in items]
                assert ordinals == list(range(1, len(items) + 1)), f"{thread.id}: {ordinals}"
                assert thread.last_ordinal == len(items)
                # A summary and the change of view that puts it in place are there together or not at all.
                marks = {mark.summary for mark in thread.view.marks if mark.summary}
                summaries = {i.ordinal for i in items if isinstance(i.body, Summary)}
                assert marks == summaries, f"{thread.id}: {marks} are marked, {summaries} are summaries"
                self.counts["compactions"] += len(summaries)
                other = [(i, added[i.id]) for i in items if i.id in added and added[i.id] != i]
                assert not other, f"an item differs from its event: {other[:2]}"
                for turn in await journal.turns(thread.id):
                    assert turn.state.ended, turn

    async def _check_replies(self, journal: Journal, events: list[Event]) -> None:
        steered = {e.payload.command: e.payload.item for e in events if isinstance(e.payload, ev.TurnSteered)}
        items = {e.payload.item.id: e.payload.item for e in events if isinstance(e.payload, ev.ItemAdded)}
        for ack in self.acks:
            if ack.get("thread") in self.forgotten_threads:
                continue
            match ack["what"]:
                case "started":
                    turn = await journal.turn(ack["turn"])
                    assert [getattr(p, "text", "") for p in turn.parts] == [ack["prompt"]]
                case "ended":
                    if (await self._turn_thread(journal, ack["turn"])) not in self.forgotten_threads:
                        assert (await journal.turn(ack["turn"])).state == ack["state"], ack
                case "created":
                    assert (await journal.thread(ack["thread"])).last_ordinal >= ack["items"]
                case "answered":
                    decision = (await journal.interaction(ack["interaction"])).decision
                    assert decision is not None
                    assert decision.verdict == "allow", decision
                case "steered":
                    assert (await journal.command(ack["command"])).outcome is Outcome.ACCEPTED
                    item = items.get(steered.get(ack["command"], ""))
                    assert item is not None, f"an accepted steer is nowhere in its thread: {ack['words']}"
                    assert isinstance(item.body, UserMessage)
                    assert text_of(item.body) == ack["words"]
                case "deleted":
                    pass
        self.acks = [a for a in self.acks if a["what"] in ("started", "steered", "answered")]

    async def _turn_thread(self, journal: Journal, turn: str) -> str:
        for ack in self.acks:
            if ack["what"] == "started" and ack["turn"] == turn:
                return str(ack["thread"])
        return ""

    # --- effects -----------------------------------------------------------------------------------------------------
    def _check_effects(self, events: list[Event], *, marked: bool) -> None:
        lines = self.effects_path.read_text().split() if self.effects_path.exists() else []
        done = Counter(lines)
        twice = [tag for tag, times in done.items() if times > 1]
        assert not twice, f"effects that happened twice: {twice}"
        intents: set[Called] = set()
        finished: dict[Called, list[ResultStatus]] = defaultdict(list)
        unknown: Counter[Called] = Counter()
        results: dict[Called, list[ResultStatus]] = defaultdict(list)
        calls: list[Called] = []
        for event in events:
            where = event.thread
            match event.payload:
                case ev.ToolStarted(effect=Effect.NONE):
                    assert not marked  # a look; it may be repeated
                case ev.ToolStarted(call_id=call):
                    assert (where, call) not in intents, f"the call {call} was begun twice"
                    intents.add((where, call))
                case ev.ToolFinished(call_id=call, status=status):
                    finished[where, call].append(status)
                case ev.EffectUnknown(call_id=call):
                    unknown[where, call] += 1
                case ev.ItemAdded(item=item) if isinstance(item.body, ToolCall) and not item.origin:
                    if not item.body.partial:
                        calls.append((where, item.body.call_id))
                case ev.ItemAdded(item=item) if isinstance(item.body, ToolResult) and not item.origin:
                    results[where, item.body.call_id].append(item.body.status)
        tags = {call for _, call in intents}
        unasked = [tag for tag in done if tag not in tags and "x0" not in tag]  # x0: of a deleted thread
        assert not unasked, f"effects without a committed intent: {unasked}"
        for call in intents:
            ends = len(finished[call]) + unknown[call]
            assert ends == 1, f"{call}: finished {finished[call]}, unknown {unknown[call]}"
            if marked and finished[call] == [ResultStatus.OK]:
                assert done[call[1]] == 1, f"{call} is recorded as done and left no trace"
            if unknown[call]:
                assert results[call] == [ResultStatus.UNKNOWN], results[call]
        for call in calls:
            assert len(results[call]) == 1, f"{call} has the results {results[call]}"
        self.counts["effects"] = len(lines)
        self.counts["unknown effects"] = sum(unknown.values())

    def words(self) -> str:
        worst = max(self.ready_s, default=0.0)
        return f"{dict(self.counts)}, ready after at most {worst * 1000:.0f} ms"
