"""Answers, commands and grants: what anybody may add beside the owner of a turn. Each rule is one transaction."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from quintet.domain import event as ev
from quintet.domain.command import Command, Outcome
from quintet.domain.errors import AlreadyResolved, NotFound, TurnOver
from quintet.domain.event import Draft, Event
from quintet.domain.grant import Grant
from quintet.domain.interaction import Decision, Interaction
from quintet.domain.turn import Lease
from quintet.journal.appending import check_lease, write
from quintet.journal.emitting import emit
from quintet.journal.recovery import decide
from quintet.journal.transaction import Transaction


def resolve(tx: Transaction, interaction: str, decision: Decision, grant: Grant | None) -> Interaction:
    asked = tx.rows.interaction(interaction)
    if asked is None:
        raise NotFound(f"There is no request {interaction}.", interaction=interaction)
    if asked.decision is not None:
        raise AlreadyResolved("This request was answered before.", interaction=interaction, decision=asked.decision)
    if grant is not None:
        emit(tx, ev.GrantMade(grant), asked.thread, asked.turn)
        decision = replace(decision, grant=grant.id)
    decide(tx, asked, decision)
    return replace(asked, decision=decision)


def post(tx: Transaction, command: Command) -> Command:
    row = tx.rows.turn(command.turn)
    if row is None or row.turn.thread != command.thread:
        raise NotFound(f"There is no turn {command.turn} in that thread.", turn=command.turn)
    if row.turn.state.ended:
        state = row.turn.state.value
        raise TurnOver(f"The turn {command.turn} has ended ({state}).", turn=command.turn, state=state)
    tx.thread(command.thread)
    fresh = replace(command, posted_ms=command.posted_ms or tx.now_ms, outcome=None, detail="")
    emit(tx, ev.CommandPosted(fresh), command.thread, command.turn)
    return fresh


def settle(
    tx: Transaction, command: str, outcome: Outcome, drafts: Sequence[Draft], lease: Lease, detail: str
) -> list[Event]:
    check_lease(tx, lease)
    posted = tx.rows.command(command)
    if posted is None or posted.thread != lease.thread:
        raise NotFound(f"There is no command {command} for this turn.", command=command)
    if posted.outcome is not None:
        raise AlreadyResolved("This command has its outcome.", command=command, outcome=posted.outcome.value)
    before = len(tx.events)
    write(tx, drafts, lease)
    emit(tx, ev.CommandSettled(command, outcome, detail), posted.thread, posted.turn)
    return tx.events[before:]


def use_grant(tx: Transaction, grant: str) -> bool:
    kept = tx.rows.grant(grant)
    if kept is None or not kept.live(tx.now_ms):
        return False
    if kept.uses_left > 0:
        tx.rows.put_grant(replace(kept, uses_left=kept.uses_left - 1))
    return True


def revoke_grant(tx: Transaction, grant: str) -> None:
    kept = tx.rows.grant(grant)
    if kept is None:
        raise NotFound(f"There is no grant {grant}.", grant=grant)
    if not kept.revoked_ms:
        here = tx.any_thread(kept.thread) if kept.thread else None
        emit(tx, ev.GrantRevoked(grant), kept.thread if here is not None else "")
