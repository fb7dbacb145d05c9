"""Threads: list, show, search, diff, revert, unrevert, compact, export, import, fork, rename, steer, cancel, delete."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from quintet.app import App
from quintet.cli import compacting, reverting
from quintet.cli.changed import changed_line
from quintet.cli.event_json import encode_line, escaped, iso
from quintet.cli.invoke import Invocation, directory, positive
from quintet.cli.notes import ended
from quintet.cli.parser import actions
from quintet.cli.terminal import safe_line
from quintet.domain.errors import Invalid, NotFound
from quintet.domain.item import (
    Item,
    TextPart,
    ToolResult,
    speaker,
    text_of,
)
from quintet.domain.principal import local
from quintet.domain.thread import Thread, ThreadQuery
from quintet.domain.turn import TurnState

ME = local("cli")
FORMATS = ("jsonl", "md", "html")


def add_flags(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    action = actions(parser, common)
    listing = action("list", "newest activity first")
    listing.add_argument("--project", default="", help="only threads of the project with this name or id")
    listing.add_argument("--children", action="store_true", help="subagents' threads too")
    listing.add_argument("-n", "--limit", type=positive, default=20, help="at most so many (20)")
    listing.add_argument("--before", default="", help="go on after this thread id")
    action("show", "one thread with its items").add_argument("thread")
    searching = action("search", "full text over all threads")
    searching.add_argument("words", nargs="+")
    searching.add_argument("--hidden", action="store_true", help="reverted items too")
    searching.add_argument("-n", "--limit", type=positive, default=20, help="at most so many (20)")
    reverting.add_actions(action)
    compacting.add_action(action)
    exporting = action("export", "one thread as a file: JSON lines that can be imported, or a document for people")
    exporting.add_argument("thread")
    exporting.add_argument("-o", "--output", help="file to write (else stdout); a new one, readable by you alone")
    exporting.add_argument(
        "--format", choices=FORMATS, help="jsonl (all of it), md or html (else by the file's ending, jsonl)"
    )
    exporting.add_argument("--force", action="store_true", help="replace the file if it is there")
    importing = action("import", "a new thread from an exported file")
    importing.add_argument("file", help="file, or - for stdin")
    importing.add_argument("--cwd", default="", help="working directory of the new thread (else the current one)")
    forking = action("fork", "a new thread from the beginning of another")
    forking.add_argument("thread")
    forking.add_argument("--through", type=int, help="the last item to take along (else all)")
    renaming = action("rename", "give a thread a title")
    renaming.add_argument("thread")
    renaming.add_argument("title", nargs="+")
    steering = action("steer", "more input for the running turn")
    steering.add_argument("thread")
    steering.add_argument("words", nargs="+")
    cancelling = action("cancel", "stop the running turn")
    cancelling.add_argument("thread")
    cancelling.add_argument("--reason", default="", help="words that are kept with the turn")
    deleting = action("delete", "erase a thread for good")
    deleting.add_argument("thread")


async def run(invocation: Invocation) -> int:
    async with invocation.open(starts_turns=invocation.flags.action == "compact") as app:
        handler = _HANDLERS[invocation.flags.action]
        return await handler(invocation, app)


async def _list(invocation: Invocation, app: App) -> int:
    flags = invocation.flags
    project = ""
    if flags.project:
        matches = [p.id for p in await app.projects.all() if flags.project in (p.name, p.id)]
        if not matches:
            raise NotFound(
                f"There is no project {flags.project!r}.", next_step="`quintet threads list` shows them all."
            )
        project = matches[0]
    before = None
    if flags.before:
        last = await app.journal.thread(await app.threads.find(flags.before))  # a plain read: listing ends nothing
        before = (last.updated_ms, last.id)
    page = await app.threads.page(ThreadQuery(project, flags.children, before=before, limit=flags.limit))
    for thread in page:
        state = await _state(app, thread)
        if invocation.json:
            invocation.screen.raw(encode_line({**msgspec.to_builtins(thread), "state": state}))
        else:
            title = safe_line(thread.title) or "(no title)"
            title += f"  (subagent {safe_line(thread.settings.agent)} of {thread.parent})" if thread.parent else ""
            invocation.screen.row(f"{thread.id}  {iso(thread.updated_ms)[:16]}  {state:<11} {title}")
    if not page and not invocation.json:
        invocation.screen.note('No threads yet. Start one with: quintet run "help"')
    return 0


async def _state(app: App, thread: Thread) -> str:
    """What the list says of a thread; looking never ends anything."""
    if not thread.owner:
        return "idle"
    if not await app.journal.alive(thread.owner):
        return "interrupted"
    return "waiting" if await app.interactions.pending(thread.root) else "running"


async def _show(invocation: Invocation, app: App) -> int:
    opened = await app.threads.get(await app.threads.find(invocation.flags.thread))
    thread = opened.thread
    items = await app.threads.items(thread.id)
    unknown = await app.journal.unknown_effects(thread.id)
    children = await app.threads.children(thread.id)
    if invocation.json:
        invocation.screen.raw(
            encode_line(
                {
                    "thread": thread,
                    "items": [{**msgspec.to_builtins(i), "hidden": thread.view.is_hidden(i.ordinal)} for i in items],
                    "children": [child.id for child in children],
                    "unknown_effects": [msgspec.to_builtins(e.payload) for e in unknown],
                }
            )
        )
        return 0
    screen = invocation.screen
    screen.line(f"{thread.id}  {thread.title or '(no title)'}")
    screen.line(
        f"  {await _state(app, thread)} · {thread.settings.cwd} · {len(items)} items · {iso(thread.updated_ms)}"
    )
    for place in thread.settings.directories:
        screen.line(f"  works in {safe_line(place)}, too")
    turns = await app.journal.turns(thread.id)
    if turns and turns[-1].state not in (TurnState.DONE, TurnState.RUNNING, TurnState.QUEUED):
        why = turns[-1].error.message if turns[-1].error else ""
        screen.line(f"  {ended(turns[-1].state, why, 'the last turn')}")
    if thread.parent:
        screen.line(f"  subagent {safe_line(thread.settings.agent)} of {thread.parent}")
    for child in children:
        words = f"{safe_line(child.settings.agent)} {child.id}  {await _state(app, child)}  {safe_line(child.title)}"
        screen.line(f"  subagent {words}")
    for event in unknown:
        title = getattr(event.payload, "title", "an effect")
        screen.line(
            f"  UNKNOWN EFFECT: {title} (the process stopped before its outcome was recorded; it is not repeated)"
        )
    for item in items:
        screen.line(_item_line(item, hidden=thread.view.is_hidden(item.ordinal)))
        if isinstance(item.body, ToolResult) and (line := changed_line(item.body, thread.settings.cwd)):
            screen.line(line)
    return 0


def _item_line(item: Item, *, hidden: bool) -> str:
    kind = speaker(item.body)
    marks = [w for w, on in (("hidden", hidden), ("partial", getattr(item.body, "partial", False))) if on]
    status = getattr(item.body, "status", None)
    marks += [str(status)] if status and status != "ok" else []
    suffix = f" [{', '.join(marks)}]" if marks else ""
    return f"\n{item.ordinal}. {kind}{suffix}\n{text_of(item.body)}"


async def _search(invocation: Invocation, app: App) -> int:
    flags = invocation.flags
    hits = await app.threads.search(" ".join(flags.words), hidden=flags.hidden, limit=flags.limit)
    for hit in hits:
        if invocation.json:
            invocation.screen.raw(encode_line(hit))
        else:
            line = f"{hit.thread}  #{hit.ordinal:<4} {safe_line(hit.title)}: {safe_line(hit.snippet)}"
            invocation.screen.row(line)
    if not hits and not invocation.json:
        invocation.screen.note("Nothing found.")
    return 0


async def _export(invocation: Invocation, app: App) -> int:
    from quintet.workspace.exports import write_export
    from quintet.workspace.files import on_disk
    from quintet.workspace.paths import PathGuard

    target: str | None = invocation.flags.output
    lines = await _document(app, await app.threads.find(invocation.flags.thread), _format(invocation))
    if target is None:
        for line in lines:
            invocation.screen.raw(escaped(line))
        return 0
    # Everything that was said is in it: for its owner's eyes only, from the first byte.
    guard, here = PathGuard(str(app.home)), os.getcwd()
    place = await on_disk(write_export, guard, target, lines, cwd=here, force=invocation.flags.force)
    invocation.screen.note(f"Wrote {place.shown}.")
    return 0


def _format(invocation: Invocation) -> str:
    ending = (invocation.flags.output or "").rpartition(".")[2].lower()
    return invocation.flags.format or (ending if ending in FORMATS else "jsonl")


async def _document(app: App, thread: str, form: str) -> Iterator[bytes]:
    from quintet.engine.documents.html import html
    from quintet.engine.documents.markdown import markdown
    from quintet.engine.transfer import export_thread

    if form == "jsonl":
        return await export_thread(app.threads, thread)
    found, items = (await app.threads.get(thread)).thread, await app.threads.items(thread)
    return (piece.encode() for piece in (html if form == "html" else markdown)(found, items))


async def _import(invocation: Invocation, app: App) -> int:
    from quintet.engine.transfer import import_thread

    cwd = directory(invocation.flags.cwd)
    return _tell_thread(invocation, await import_thread(app.threads, _lines_of(invocation.flags.file), cwd=cwd))


def _lines_of(name: str) -> Iterator[bytes]:
    """Line by line: a file without lines must not fill the memory before it is refused."""
    from quintet.engine.transfer import LARGEST_LINE

    try:
        with contextlib.nullcontext(sys.stdin.buffer) if name == "-" else open(name, "rb") as file:
            while line := file.readline(LARGEST_LINE + 1):
                yield line
    except OSError as error:
        raise Invalid(f"{name} cannot be read: {error.strerror}.", next_step="Name a file you exported.") from None


async def _fork(invocation: Invocation, app: App) -> int:
    source = await app.threads.find(invocation.flags.thread)
    return _tell_thread(invocation, await app.threads.fork(source, through=invocation.flags.through))


async def _rename(invocation: Invocation, app: App) -> int:
    thread = await app.threads.find(invocation.flags.thread)
    await app.threads.rename(thread, " ".join(invocation.flags.title))
    if not invocation.json:
        invocation.screen.note(f"Renamed {thread}.")
    return 0


async def _steer(invocation: Invocation, app: App) -> int:
    thread = await app.threads.find(invocation.flags.thread)
    command = await app.turns.steer(thread, (TextPart(" ".join(invocation.flags.words)),), ME)
    if invocation.json:
        invocation.screen.raw(encode_line(command))
    else:
        invocation.screen.note("Accepted: the model gets it with its next step.")
    return 0


async def _cancel(invocation: Invocation, app: App) -> int:
    thread = await app.threads.find(invocation.flags.thread)
    turn = await app.turns.cancel((await app.turns.active(thread)).id, ME, invocation.flags.reason)
    if invocation.json:
        invocation.screen.raw(encode_line(turn))
    else:
        invocation.screen.note(f"The turn ended as {turn.state}.")
    return 0


async def _delete(invocation: Invocation, app: App) -> int:
    thread = await app.threads.find(invocation.flags.thread)
    await app.threads.delete(thread, ME)
    if not invocation.json:
        invocation.screen.note(f"Deleted {thread}.")
        if kept := await asyncio.to_thread(_backups, app.home / "backups"):
            # They are the person's own to keep or to remove; but nobody should believe that nothing is left.
            invocation.screen.note(f"Backups may still hold it: {', '.join(kept)}")
    return 0


def _backups(directory: Path) -> list[str]:
    return sorted(str(path) for path in directory.iterdir()) if directory.is_dir() else []


def _tell_thread(invocation: Invocation, thread: Thread) -> int:
    if invocation.json:
        invocation.screen.raw(encode_line(thread))
    else:
        invocation.screen.line(thread.id)
    return 0


_HANDLERS = {
    "list": _list,
    "show": _show,
    "search": _search,
    "diff": reverting.diff,
    "revert": reverting.revert,
    "unrevert": reverting.unrevert,
    "compact": compacting.compact,
    "export": _export,
    "import": _import,
    "fork": _fork,
    "rename": _rename,
    "steer": _steer,
    "cancel": _cancel,
    "delete": _delete,
}
