"""sessions/export: the whole conversation as a document, in the workspace or beside the session's file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from html import escape

from quintet.domain.errors import Invalid
from quintet.domain.shown import spelled_out
from quintet.engine.documents.markdown import fenced, quoted
from quintet.protocols.kward import models as wire
from quintet.protocols.kward.client import Client, Opened, thread_of
from quintet.protocols.kward.errors import BadArgument, Failed
from quintet.protocols.kward.house import House
from quintet.protocols.kward.messages import Message
from quintet.protocols.kward.session_list import resolved
from quintet.protocols.kward.transcript import whole
from quintet.rpc.call import Call
from quintet.rpc.rows import Family

EXPORTING = Family("exporting", form="either")
TITLE = "Kward Session"
FORMATS = {"markdown": ".md", "html": ".html"}
HEADINGS = {"user": "User", "assistant": "Assistant", "tool": "Tool", "compactionSummary": "Compaction Summary"}
# Nothing in it is loaded or run, whatever it says.
POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'"


@EXPORTING.method(
    "sessions/export",
    params=wire.ExportParams,
    result=wire.Exported,
    summary="Write the conversation as Markdown or HTML; beside the session's file unless a path is given.",
)
async def export(call: Call[Client], params: wire.ExportParams) -> wire.Exported:
    house = call.state.house
    name = {None: "markdown", "": "markdown", "md": "markdown"}.get(params.format, params.format or "")
    if name not in FORMATS:
        raise Failed(f"Unsupported export format: {params.format}")
    async with call.state.in_order(params.session_id) as session:
        thread = await thread_of(house, session)
        told = whole(thread, await house.threads.items(thread.id))
        pieces = html(told) if name == "html" else markdown(told)
        path = await _written(house, session, thread.settings.cwd, params.path, FORMATS[name], "".join(pieces).encode())
    return wire.Exported(path, name)


async def _written(house: House, session: Opened, cwd: str, given: str | None, ending: str, data: bytes) -> str:
    path, places = _meant(house, session, cwd, given, ending)
    above = os.path.dirname(path)
    for root in places:
        real = await house.disk.directory(root)
        if real is None or not (inside(above, root) or inside(above, real)):
            continue
        there = await house.disk.directory(above)
        if there is None:
            raise Failed(f"No such directory: {above}")
        if there != _straight(above, root, real):
            break  # a link on the way could lead anywhere, now or later
        try:
            return await house.export(path, [data], cwd=cwd, root=real)
        except Invalid as error:
            raise BadArgument(error.line()) from None
    raise BadArgument(f"export path outside workspace or session directory: {path}")


def _meant(house: House, session: Opened, cwd: str, given: str | None, ending: str) -> tuple[str, tuple[str, str]]:
    """The file, and the places it may lie in."""
    path = resolved(given, cwd) if given else session.place.path.removesuffix(".jsonl") + ending
    return path, (cwd, os.path.join(house.config_dir, "sessions"))


def _straight(above: str, root: str, real: str) -> str:
    """Where the directory is if no link is on the way to it from the root."""
    return os.path.normpath(os.path.join(real, os.path.relpath(above, root if inside(above, root) else real)))


def inside(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def markdown(told: list[Message]) -> Iterator[str]:
    yield f"# {TITLE}\n"
    for message in told:
        yield f"\n## {HEADINGS[message.role]}\n"
        yield from _body(message)


def _body(message: Message) -> Iterator[str]:
    """Whatever was said stays in its quotation, whatever a tool gave in its fence."""
    for thought in message.thoughts():
        yield f"\n{quoted(f'*Thinking:* {spelled_out(thought)}')}"
    if words := spelled_out(message.text()):
        yield f"\n{fenced(words) if message.role == 'tool' else quoted(words)}"
    for call in message.calls():
        yield f"\n{fenced(spelled_out(f'{call.name} {call.input}'))}"


def html(told: list[Message]) -> Iterator[str]:
    yield (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">\n'
        f"<title>{TITLE}</title>\n</head>\n<body>\n<pre>\n{TITLE}\n"
    )
    for message in told:
        yield f"\n{HEADINGS[message.role]}\n"
        lines = [*message.thoughts(), message.text(), *(f"{call.name} {call.input}" for call in message.calls())]
        yield "".join(f"{escape(spelled_out(line))}\n" for line in lines if line)
    yield "</pre>\n</body>\n</html>\n"
