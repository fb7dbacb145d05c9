"""Approvals: what waits for an answer, anywhere; and what has been allowed for good."""

from __future__ import annotations

import argparse
import os

from quintet.app import App
from quintet.cli.event_json import encode_line, interaction_json, iso
from quintet.cli.inside_call import refuse_inside_a_call
from quintet.cli.invoke import Invocation
from quintet.cli.parser import actions
from quintet.cli.terminal import safe_line
from quintet.domain.errors import NotFound
from quintet.domain.grant import Grant, GrantOffer, Scope
from quintet.domain.interaction import Approval, ExternalCall, HookRequest, Interaction, Question, Verdict
from quintet.domain.principal import local
from quintet.domain.shown import shown, shown_line
from quintet.engine.interactions import Answer

ME = local("cli")


def add_flags(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    action = actions(parser, common)
    action("list", "open requests of all threads and protocols")
    allowing = action("allow", "let it happen")
    allowing.add_argument("interaction", help="id, or enough of its end to be the only one")
    scopes = [s.value for s in Scope]
    allowing.add_argument(
        "--for", dest="scope", choices=scopes, default=Scope.CALL.value, help="how far to remember it"
    )
    denying = action("deny", "do not let it happen")
    denying.add_argument("interaction")
    denying.add_argument("--reason", default="", help="words the model will read")
    answering = action("answer", "answer a question")
    answering.add_argument("interaction")
    answering.add_argument("choices", nargs="+", help="one answer per question; several labels as A,B")
    action("rules", "rules and grants in force, with those of the project around this directory")
    action("revoke", "take a grant back").add_argument("grant")


async def run(invocation: Invocation) -> int:
    if invocation.flags.action in ("allow", "deny", "answer"):
        refuse_inside_a_call("answer requests for approval")
    async with invocation.open() as app:
        return await _HANDLERS[invocation.flags.action](invocation, app)


async def _list(invocation: Invocation, app: App) -> int:
    pending = await app.interactions.pending()
    for interaction in pending:
        gone = await app.interactions.orphaned(interaction)
        if invocation.json:
            line = interaction_json(interaction)
            invocation.screen.raw(encode_line({**line, "process_gone": True} if gone else line))
        else:
            head, *rest = describe(interaction).split("\n")
            invocation.screen.line("\n".join([f"{head}  (its process is gone)" if gone else head, *rest]))
    if not pending and not invocation.json:
        invocation.screen.note("Nothing waits for an answer.")
    return 0


BY_FLAG = "--for thread, project or always"


def describe(interaction: Interaction, remember_by: str = BY_FLAG) -> str:
    """Everything a person needs to decide, whole, with nothing a terminal would obey or an eye would miss."""
    head = f"{interaction.id}  {iso(interaction.created_ms)[:16]}  thread {interaction.thread}"
    if interaction.subagent:
        head += f"  (subagent {shown_line(interaction.subagent)} of {interaction.root})"
    match interaction.request:
        case Approval() as approval:
            lines = [head, *_approval_lines(approval, remember_by)]
        case Question(items=items):
            lines = [head]
            for item in items:
                options = " | ".join(shown_line(o.label) for o in item.options)
                lines.append(f"  {shown(item.text)}  [{options}]")
        case ExternalCall(tool=tool):
            lines = [head, f"  waits for the client's own tool {shown_line(tool)}"]
        case HookRequest(subscription=hook, event=event, target=target):
            lines = [head, f"  waits for the client's hook {shown_line(hook)} ({event} {shown_line(target)})"]
    return "\n".join(lines)


def _approval_lines(approval: Approval, remember_by: str) -> list[str]:
    lines = [f"  {shown_line(approval.tool)}: {shown_line(approval.title)}"]
    if approval.command:
        # Further lines are marked, so that a command cannot pass for what stands below it.
        lines.append("  $ " + shown(approval.command).replace("\n", "\n  | "))
    where = f"  in {shown_line(approval.cwd)}" if approval.cwd else ""
    lines += (
        [f"{where}{' ' if where else '  '}on {shown_line(approval.host)}"] if approval.host else [where] * bool(where)
    )
    lines += [f"  note: {shown_line(note)}" for note in approval.notes]
    lines += [f"  | {line}" for line in shown(approval.plan).split("\n")] if approval.plan else []
    lines += [f"  {line}" for line in shown(approval.diff).rstrip("\n").split("\n")] if approval.diff else []
    if approval.offers:
        # The offers differ only in how far they reach.
        first = approval.offers[0]
        lines.append(f"  could be remembered ({remember_by}):")
        lines.append(f"    {shown_line(first.words().removesuffix(f' ({first.scope})'))}")
    return lines


async def _allow(invocation: Invocation, app: App) -> int:
    return await _answer(invocation, app, Answer(Verdict.ALLOW, remember=Scope(invocation.flags.scope)))


async def _deny(invocation: Invocation, app: App) -> int:
    return await _answer(invocation, app, Answer(Verdict.DENY, reason=invocation.flags.reason))


async def _choose(invocation: Invocation, app: App) -> int:
    choices = tuple(tuple(c.split(",")) for c in invocation.flags.choices)
    return await _answer(invocation, app, Answer(Verdict.ANSWER, answers=choices))


async def _answer(invocation: Invocation, app: App, answer: Answer) -> int:
    wanted = invocation.flags.interaction
    matches = [i.id for i in await app.interactions.pending() if i.id == wanted or i.id.endswith(wanted)]
    if len(matches) > 1:
        raise NotFound(f"{len(matches)} open requests end with {wanted!r}.", next_step="Give more of the id.")
    try:
        resolved = await app.interactions.answer(matches[0] if matches else wanted, answer, ME)
    except NotFound as error:
        raise NotFound(error.message, next_step="List what waits with `quintet approvals list`.") from None
    if invocation.json:
        invocation.screen.raw(encode_line(resolved))
    else:
        done = {Verdict.ALLOW: "Allowed", Verdict.DENY: "Denied", Verdict.ANSWER: "Answered"}[answer.verdict]
        invocation.screen.note(f"{done}.")
    return 0


async def _rules(invocation: Invocation, app: App) -> int:
    grants = await app.journal.grants()
    rules = (*app.policy.rules, *app.project_policy(os.getcwd()).rules)
    if invocation.json:
        for rule in rules:
            line = {"rule": rule.text, "judgement": rule.judgement, "file": rule.file or "config.toml"}
            invocation.screen.raw(encode_line(line))
        for grant in grants:
            invocation.screen.raw(encode_line(grant))
        return 0
    for rule in rules:
        where = safe_line(rule.file) or "config.toml"
        invocation.screen.row(f"{where:<15} {rule.judgement:<6} ", f'"{safe_line(rule.text)}"')
    for grant in grants:
        word = "deny" if grant.denies else "allow"
        invocation.screen.row(f"{grant.id}  {word:<5}  {safe_line(_words(grant))}")
    if not grants and not rules:
        invocation.screen.note("No rules and no grants: each protocol's own mode decides.")
    return 0


def _words(grant: Grant) -> str:
    offer = GrantOffer(grant.tool, grant.subject, grant.pattern, grant.scope, grant.exact, grant.network, grant.scripts)
    return ", ".join(filter(None, (offer.words(), grant.thread, grant.protocol and f"on {grant.protocol} only")))


async def _revoke(invocation: Invocation, app: App) -> int:
    try:
        await app.journal.revoke_grant(invocation.flags.grant)
    except NotFound as error:
        raise NotFound(error.message, next_step="List what is remembered with `quintet approvals rules`.") from None
    if not invocation.json:
        invocation.screen.note("Revoked.")
    return 0


_HANDLERS = {"list": _list, "allow": _allow, "deny": _deny, "answer": _choose, "rules": _rules, "revoke": _revoke}
