"""Runs: begin one and stream it, hold until it has ended, or let it go on alone; abort; how it stands."""

from __future__ import annotations

from functools import partial
from typing import Literal

import msgspec
from msgspec import UNSET

from quintet.domain.cursor import FRAMES_PER_EVENT, public_number
from quintet.domain.errors import Busy, NotFound, TurnOver
from quintet.domain.thread import Thread
from quintet.domain.turn import Turn, WhenBusy
from quintet.engine.costs import Tally
from quintet.engine.interactions import OnAsk
from quintet.engine.statistics import used_by
from quintet.engine.turns import Started
from quintet.protocols.knp import models as knp
from quintet.protocols.knp.frames import NAMESPACE
from quintet.protocols.knp.given import GivenModel, GivenPart
from quintet.protocols.knp.house import House, principal
from quintet.protocols.knp.inputs import parts_of
from quintet.protocols.knp.namespaces import Namespace
from quintet.protocols.knp.run_stream import stream_run
from quintet.protocols.knp.threads import OneThread, check_agent, check_model, client_key
from quintet.protocols.knp.watching import Wanted
from quintet.protocols.knp.wording import RUN_STATUS, run_error
from quintet.rpc.http.call import Answer, Held, HttpCall, Streamed
from quintet.rpc.http.routes import HOLDER, Routes

RUNS = Routes("runs", who=HOLDER, since="0.1")
RUN_ID = "x-run-id"


class NewRun(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    input: list[GivenPart]
    agentId: str = ""  # instead of the thread's own, for this run
    model: GivenModel | None = None
    onAsk: Literal["wait", "fail"] = "wait"  # fail: the run ends where somebody would have to be asked


class StartRun(msgspec.Struct, frozen=True):
    tid: str
    namespace: str = ""
    detach: bool = False


@RUNS.post(
    "/threads/{tid}/runs",
    summary="say something: streamed, held until it is done, or detached (202)",
    params=StartRun,
    body=NewRun,
    result=knp.Run,
    streams="asked",
    statuses=(200, 202),
    keyed=True,
)
async def start(call: HttpCall[House], params: StartRun, body: NewRun) -> Streamed | Answer | Held:
    house = call.state
    thread, namespace = await house.thread(call, params.tid, params.namespace)
    before = await _position(house)
    started = await _begin(call, thread, namespace, body)
    headers = {RUN_ID: started.turn.id}
    if params.detach or "respond-async" in call.header("prefer").lower():
        status = RUN_STATUS[(await house.journal.turn(started.turn.id)).state]
        return Answer(knp.Run(runId=started.turn.id, tid=thread.id, status=status), 202, headers)
    if call.wants_stream:
        # One that an earlier request had begun is told from its beginning, which lies anywhere in the thread.
        begin = partial(stream_run, run=started.turn.id, root=thread.root, after=0 if started.folded else before)
        wanted = Wanted(NAMESPACE, namespace.name, thread.id)
        result = partial(ended_run, house, thread, started.turn.id)
        return Streamed(lambda stream: begin(house, stream, wanted, result=result), headers)

    async def whole() -> Answer:
        return Answer(await ended_run(house, thread, started.turn.id), 200, headers)

    return Held(whole)


async def _position(house: House) -> int:
    return public_number((await house.journal.marks()).last, FRAMES_PER_EVENT - 1)


async def _begin(call: HttpCall[House], thread: Thread, namespace: Namespace, body: NewRun) -> Started:
    """Everything that could be wrong is found before anything is stored."""
    house, cwd, root = call.state, thread.settings.cwd, namespace.rooted()
    await check_agent(house, body.agentId, cwd)
    model = check_model(house, body.model)
    agent = await house.agents.named(body.agentId, cwd) if body.agentId else None
    used = house.check_model(model or thread.settings.model or (agent.model if agent else ""))
    parts = await parts_of(body.input, house.attachments(), root=root, model=house.models().info(used))
    starter = house.starter(principal(call.caller), model=model, agent=agent, on_ask=OnAsk(body.onAsk))
    key = client_key(call, namespace, thread.id)
    try:
        return await house.turns.start(thread.id, parts, starter, when_busy=WhenBusy.REJECT, key=key)
    except Busy as busy:
        running = {"runId": busy.data["turn"]} if "turn" in busy.data else {}
        words = "Wait for its end, or abort it." if running else busy.step
        raise Busy(
            "A run is going on in this thread." if running else busy.message, next_step=words, **running
        ) from None


async def ended_run(house: House, thread: Thread, turn: str) -> knp.Run:
    """The final object, once the run has ended."""
    ended = await house.turns.wait(turn)
    tally = await used_by(house.journal, house.models(), ended, thread.root)
    error = run_error(ended.error) if ended.error is not None else UNSET
    return knp.Run(runId=ended.id, tid=thread.id, status=RUN_STATUS[ended.state], usage=_usage(tally), error=error)


def _usage(tally: Tally) -> knp.Usage:
    return knp.Usage(
        tally.input_tokens,
        tally.output_tokens,
        tally.reasoning_tokens,
        tally.cached_tokens,
        tally.written_tokens,
        tally.cost,
    )


@RUNS.post(
    "/threads/{tid}/runs/abort",
    summary="stop what runs: its model, its tools and their processes",
    params=OneThread,
    result=knp.Aborted,
)
async def abort(call: HttpCall[House], params: OneThread, body: None) -> knp.Aborted:
    house = call.state
    thread, _ = await house.thread(call, params.tid, params.namespace)
    live = await house.journal.turns(thread.id, live=True)
    if not live:
        return knp.Aborted(aborted=False)
    try:
        await house.turns.cancel(live[0].id, principal(call.caller), "aborted")
    except TurnOver:
        return knp.Aborted(aborted=False)
    return knp.Aborted(aborted=True)


@RUNS.get(
    "/threads/{tid}/runs/current",
    summary="the run that goes on, else the last one",
    params=OneThread,
    result=knp.CurrentRun,
)
async def current(call: HttpCall[House], params: OneThread, body: None) -> knp.CurrentRun:
    house = call.state
    thread, _ = await house.thread(call, params.tid, params.namespace)
    turns = await house.journal.turns(thread.id)
    if not turns:
        raise NotFound("Nothing was run in this thread yet.", next_step="Begin with POST /threads/:tid/runs.")
    found: Turn = next((turn for turn in turns if not turn.state.ended), turns[-1])
    return knp.CurrentRun(
        runId=found.id,
        status=RUN_STATUS[found.state],
        startedAt=knp.iso(found.started_ms or found.queued_ms),
        error=run_error(found.error) if found.error is not None else UNSET,
    )
