"""attach: watch a running server from this terminal, answer what waits, and say something in a thread."""

from __future__ import annotations

import argparse
import asyncio
from typing import TYPE_CHECKING

from quintet.cli.attached_view import AttachedView
from quintet.cli.inside_call import refuse_inside_a_call
from quintet.cli.invoke import Invocation
from quintet.cli.typed import Typed
from quintet.domain.errors import Invalid, QuintetError

if TYPE_CHECKING:
    from quintet.client import Client

DECISIONS = {"allow": "allow", "deny": "deny", "always": "allow-always", "never": "deny-always"}


def add_flags(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    parser.add_argument("thread", nargs="?", default="", help="only this thread; what is typed goes to it")
    parser.add_argument("--url", default="", help="a server somewhere, instead of this home's; see `quintet url`")
    parser.add_argument("--namespace", default="", help="the project, where it is not the server's own")


async def run(invocation: Invocation) -> int:
    from quintet.client import Client  # with its HTTP

    refuse_inside_a_call("attach to a server, where requests are answered")
    flags = invocation.flags
    if flags.url:
        found = Client.at(flags.url, namespace=flags.namespace)
    else:
        found = Client.local(invocation.home, namespace=flags.namespace)
    async with found as client:
        typed = Typed()
        view = AttachedView(invocation.screen, typed.forget)
        for approval in await client.approvals(tid=flags.thread):
            view.asked(approval)
        typing = asyncio.create_task(_obey(client, view, typed, flags.thread))
        try:
            async for envelope in client.events(tid=flags.thread):
                view.show(envelope)
        finally:
            typing.cancel()
    return 0


async def _obey(client: Client, view: AttachedView, typed: Typed, thread: str) -> None:
    """What is typed: an answer to the request that is shown, or words for the thread."""
    async for line in typed.lines():
        words, _, rest = line.strip().partition(" ")
        try:
            if words in DECISIONS:
                await client.answer(view.asks(), DECISIONS[words], rest.strip())
            elif words == "abort" and thread:
                await client.abort(thread)
            elif line.strip() and not thread:
                raise Invalid(
                    "There is nobody to say this to.",
                    next_step="A request is answered with allow, deny, always or never. "
                    "To talk, attach to one thread: quintet attach THREAD.",
                )
            elif line.strip():
                await client.run(thread, line.strip(), detach=True)
        except QuintetError as error:
            view.note(error.line())
