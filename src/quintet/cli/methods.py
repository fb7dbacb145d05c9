"""methods: what a protocol offers, from the same rows that serve it."""

from __future__ import annotations

import argparse

from quintet.cli.event_json import encode_line
from quintet.cli.invoke import Invocation
from quintet.domain.errors import NotFound
from quintet.serving.protocols import PROTOCOLS, method_rows


def add_flags(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    parser.add_argument("protocol", nargs="?", default="", help=f"one of {', '.join(PROTOCOLS)}")


async def run(invocation: Invocation) -> int:
    name = invocation.flags.protocol
    if not name:
        for protocol, title in PROTOCOLS.items():
            count = len(method_rows(protocol))
            if invocation.json:
                invocation.screen.raw(encode_line({"protocol": protocol, "title": title, "methods": count}))
                continue
            invocation.screen.row(f"{protocol:<11} ", f"{title}: {count or 'no'} methods served")
        return 0
    if name not in PROTOCOLS:
        raise NotFound(f"There is no protocol {name!r}.", next_step=f"Choose one of {', '.join(PROTOCOLS)}.")
    rows = method_rows(name)
    for method, summary in rows:
        if invocation.json:
            invocation.screen.raw(encode_line({"method": method, "summary": summary}))
        else:
            invocation.screen.row(f"{method:<32} ", summary)
    if not rows and not invocation.json:
        invocation.screen.note(f"{PROTOCOLS[name]} is not served by this version.")
    return 0
