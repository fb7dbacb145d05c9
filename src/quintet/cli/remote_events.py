"""Events of a server, over its own interface: for `events --url` and what else watches from afar."""

from __future__ import annotations

from typing import Any

from quintet.cli.event_json import encode_line, iso
from quintet.cli.invoke import Invocation
from quintet.cli.terminal import safe_line
from quintet.client import Client, Envelope
from quintet.domain.cursor import parse
from quintet.domain.errors import Invalid

WIDTH = 120
_SAY = ("delta", "text", "title", "toolId", "result", "error", "decision", "status", "state", "reason")


async def follow(invocation: Invocation) -> int:
    """One line per frame, until it is stopped."""
    flags = invocation.flags
    if not flags.follow:
        raise Invalid("A server's events are followed, not listed.", next_step="Say --follow too.")
    after = parse(flags.after) if flags.after else None
    async with Client.at(flags.url) as client:
        async for envelope in client.events(after, tid=flags.thread):
            _show(invocation, envelope)
    return 0


def _show(invocation: Invocation, envelope: Envelope) -> None:
    if invocation.json:
        line = {name: getattr(envelope, name) for name in ("seq", "id", "scope", "namespace", "kind", "data")}
        invocation.screen.raw(encode_line({**line, "timestamp": envelope.timestamp}))
        return
    tid = envelope.data.get("tid") or envelope.data.get("thread", {}).get("tid", "")
    words = safe_line(gist(envelope.data))
    invocation.screen.line(
        f"{envelope.seq}  {iso(envelope.timestamp)[11:23]}  {tid}  {envelope.kind}  {words}".rstrip()
    )


def gist(data: dict[str, Any]) -> str:
    """The gist of a frame, in a few words; `--json` has all of it."""
    for place in (data, data.get("event"), data.get("thread"), data.get("error")):
        if isinstance(place, dict):
            for name in _SAY:
                if isinstance(place.get(name), str) and place[name]:
                    return str(place[name])[:WIDTH]
    return ""
