"""attach: watch a running server from this terminal, answer what waits, and say something in a thread."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from quintet.cli.attached_view import AttachedView
from quintet.cli.invoke import Invocation
from quintet.domain.errors import Invalid, QuintetError

if TYPE_CHECKING:
    from quintet.client import Client

DECISIONS = {"allow": "allow", "deny": "deny", "always": "allow-always", "never": "deny-always"}
LONGEST_LINE = 1024 * 1024


def add_flags(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    parser.add_argument("thread", nargs="?", default="", help="only this thread; what is typed goes to it")
    parser.add_argument("--url", default="", help="a server somewhere, instead of this home's; see `quintet url`")
    parser.add_argument("--namespace", default="", help="the project, where it is not the server's own")


async def run(invocation: Invocation) -> int:
    from quintet.client import Client  # with its HTTP

    flags = invocation.flags
    if flags.url:
        found = Client.at(flags.url, namespace=flags.namespace)
    else:
        found = Client.local(invocation.home, namespace=flags.namespace)
    async with found as client:
        view = AttachedView(invocation.screen)
        for approval in await client.approvals(tid=flags.thread):
            view.asked(approval)
        typing = asyncio.create_task(_obey(client, view, flags.thread))
        try:
            async for envelope in client.events(tid=flags.thread):
                view.show(envelope)
        finally:
            typing.cancel()
    return 0


async def _obey(client: Client, view: AttachedView, thread: str) -> None:
    """What is typed: an answer to what waits longest, or words for the thread."""
    async for line in typed_lines():
        words, _, rest = line.strip().partition(" ")
        try:
            if words in DECISIONS:
                await client.answer(view.oldest(), DECISIONS[words], rest.strip())
            elif words == "abort" and thread:
                await client.abort(thread)
            elif line.strip() and not thread:
                raise Invalid(
                    "There is nobody to say this to.", next_step="Attach to one thread: quintet attach THREAD."
                )
            elif line.strip():
                await client.run(thread, line.strip(), detach=True)
        except QuintetError as error:
            view.note(error.line())


async def typed_lines(descriptor: int | None = None) -> AsyncIterator[str]:
    """Lines of stdin as they come, without a thread that could not be stopped. A file, or nothing, gives none."""
    loop = asyncio.get_running_loop()
    news: asyncio.Queue[bytes] = asyncio.Queue()
    source = sys.stdin.fileno() if descriptor is None else descriptor

    def read() -> None:
        try:
            data = os.read(source, 65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            loop.remove_reader(source)
        news.put_nowait(data)

    try:
        loop.add_reader(source, read)
    except (PermissionError, ValueError, OSError):
        return
    try:
        rest = b""
        while data := await news.get():
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                yield line.decode(errors="replace")
            if len(rest) > LONGEST_LINE:
                rest = b""
        if rest:
            yield rest.decode(errors="replace")
    finally:
        loop.remove_reader(source)
