"""Slash commands. Each is the command line's own command or an operation of the engine, said inside a conversation."""

from __future__ import annotations

import contextlib
import difflib
import importlib
import io
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from quintet.app import App
from quintet.cli.diff_view import diff_lines
from quintet.cli.invoke import Invocation, parse
from quintet.cli.terminal import Screen
from quintet.domain.errors import Invalid, TurnOver
from quintet.domain.event import ThreadUpdated
from quintet.domain.thread import Thread, ThreadSettings
from quintet.domain.turn import WhenBusy

if TYPE_CHECKING:
    from quintet.cli.chat.conversation import Conversation

SUMMARIES = {
    "help": "this list and the keys",
    "new": "begin a new thread",
    "threads": "list threads; /threads -n 50",
    "resume": "go on with a thread: /resume ID",
    "attach": "give a file along with what you say next: /attach FILE; /attach alone forgets them",
    "btw": "ask something beside the work, also while it goes on: nothing of it is kept; /btw QUESTION",
    "queue": "run this when the running turn is over: /queue TEXT",
    "model": "who answers in this thread; /model PROVIDER/MODEL, /model alone lists",
    "agent": "who works in this thread; /agent NAME, /agent alone lists",
    "plan": "plan mode on or off: change nothing until you agreed to a plan",
    "undo": "bring back the files the last turn changed",
    "redo": "take back the last undo",
    "diff": "what this thread changed in files",
    "compact": "have the older part summarised; /compact WHAT TO MIND",
    "export": "this thread as a file: /export FILE",
    "stats": "turns, tokens, cost; /stats --days 7",
    "exit": "leave",
}
KEYS = """\
Enter        send; while a turn runs it goes into that turn (a steer)
Alt-Enter    a new line; pasted lines stay together
Up, Ctrl-R   what was typed before, searched
Tab          complete a command
Ctrl-C       stop the turn; again: leave
Ctrl-D       leave
//…          send a text that begins with a slash"""


def is_command(text: str) -> bool:
    """Two slashes begin a text that begins with one."""
    return text.startswith("/") and not text.startswith("//")


async def obey(talk: Conversation, text: str) -> None:
    name, _, rest = text[1:].partition(" ")
    act = _ACTS.get(name.strip().lower())
    if act is None:
        near = difflib.get_close_matches(name, SUMMARIES, n=1)
        hint = f"Did you mean /{near[0]}?" if near else "/help lists them."
        raise Invalid(f"There is no command /{name}.", next_step=f"{hint} To send it as text, begin with //.")
    await act(talk, rest.strip())


class _Inside(Invocation):
    """A command of the command line, run in the home that is open already; what it says goes into the conversation."""

    def __init__(self, app: App, command: str, words: list[str]) -> None:
        self.said = io.StringIO()
        try:
            with contextlib.redirect_stdout(self.said), contextlib.redirect_stderr(self.said):
                flags = parse(importlib.import_module(f"quintet.cli.{command}"), command, words)
        except SystemExit:
            raise Invalid(_as_typed(self.said.getvalue(), command), next_step="") from None
        flags.json = False
        super().__init__(flags)
        self.screen = Screen(color=False, out=self.said, err=self.said)
        self._app = app

    @asynccontextmanager
    async def open(self, protocol: str = "cli", *, starts_turns: bool = False) -> AsyncIterator[App]:
        yield self._app


def _as_typed(said: str, command: str) -> str:
    """What the command line says of a mistake, as of what was typed here."""
    words, _, _ = " ".join(said.split()).partition(f" See `quintet {command}")
    return f"/{command}: {words.partition(': ')[2] or words}"


async def _run(talk: Conversation, command: str, *words: str) -> None:
    inside = _Inside(talk.app, command, [command, *words])
    await importlib.import_module(f"quintet.cli.{command}").run(inside)
    talk.transcript.note(inside.said.getvalue().rstrip("\n"), "")


def _words(rest: str) -> list[str]:
    try:
        return shlex.split(rest)
    except ValueError as error:
        raise Invalid(f"That cannot be read: {error}.", next_step="Close the quotation.") from None


def _thread(talk: Conversation) -> Thread:
    if talk.thread is None:
        raise Invalid("Nothing was said yet, so there is no thread.", next_step="Say something, or /resume ID.")
    return talk.thread


async def _help(talk: Conversation, rest: str) -> None:
    wide = max(map(len, SUMMARIES)) + 3
    for name, summary in SUMMARIES.items():
        talk.transcript.note(f"  {f'/{name}':<{wide}}{summary}", "")
    talk.transcript.note(f"\n{KEYS}", "")


async def _new(talk: Conversation, rest: str) -> None:
    talk.settings = ThreadSettings(cwd=talk.settings.cwd, agent=talk.settings.agent, model=talk.settings.model)
    if talk.running:
        talk.transcript.note("  the turn of the thread before goes on; /resume looks at it again")
    talk.close()
    talk.transcript.note("A new thread begins with what you type next.")


async def _threads(talk: Conversation, rest: str) -> None:
    await _run(talk, "threads", "list", *_words(rest))
    talk.transcript.note("  /resume ID goes on with one (the end of its id is enough)")


async def _resume(talk: Conversation, rest: str) -> None:
    if not rest:
        await _threads(talk, "-n 10")
        return
    thread = (await talk.app.threads.get(await talk.app.threads.find(rest))).thread
    if talk.attached.paths:
        talk.attached.forget()
        talk.transcript.note("  what was attached stays behind: it was read for another thread")
    await talk.open(thread)


async def _attach(talk: Conversation, rest: str) -> None:
    words = _words(rest)
    if words:
        await talk.attached.add(words, talk.settings, talk.model)
        talk.transcript.note(f"  goes with what you say next: {', '.join(talk.attached.paths)}")
    else:
        talk.attached.forget()
        talk.transcript.note("  nothing is attached")


async def _queue(talk: Conversation, rest: str) -> None:
    if not rest:
        raise Invalid("There is nothing to queue.", next_step="Write /queue TEXT.")
    await talk.say(rest, WhenBusy.QUEUE)


async def _btw(talk: Conversation, rest: str) -> None:
    if not rest:
        raise Invalid("There is nothing to ask.", next_step="Write /btw QUESTION.")
    thread = await talk.here()
    try:
        await talk.app.turns.ask_beside(thread.id, rest)
    except TurnOver:
        await talk.app.turns.aside(thread.id, talk.starter(), rest)


async def _model(talk: Conversation, rest: str) -> None:
    if not rest:
        await _run(talk, "models")
        return
    name, _ = talk.app.models.resolve(rest)
    await talk.configure(ThreadUpdated(model=name))
    talk.model = ""  # what was given with -m gives way
    talk.transcript.note(f"  {name} answers from the next turn on")


async def _agent(talk: Conversation, rest: str) -> None:
    if not rest:
        await _run(talk, "agents")
        return
    await talk.app.agents.named(rest, talk.settings.cwd)
    await talk.configure(ThreadUpdated(agent=rest))
    talk.transcript.note(f"  {rest} works from the next turn on")


async def _plan(talk: Conversation, rest: str) -> None:
    wanted = {"": not talk.settings.plan_mode, "on": True, "off": False}.get(rest.lower())
    if wanted is None:
        raise Invalid(f"/plan {rest} is not understood.", next_step="Write /plan, /plan on or /plan off.")
    await talk.configure(ThreadUpdated(plan_mode=wanted))
    if talk.thread is None:
        talk.transcript.note(f"  plan mode is {'on' if wanted else 'off'}")


async def _undo(talk: Conversation, rest: str) -> None:
    await _undoing(talk, *_words(rest))


async def _redo(talk: Conversation, rest: str) -> None:
    await _undoing(talk, "--redo", *_words(rest))


async def _undoing(talk: Conversation, *words: str) -> None:
    """The commands it names next are said as they are typed here."""
    thread = _thread(talk).id
    inside = _Inside(talk.app, "undo", ["undo", thread, *words])
    await importlib.import_module("quintet.cli.undo").run(inside)
    said = inside.said.getvalue().replace(f"`quintet undo {thread} --redo", "`/redo")
    talk.transcript.note(said.replace(f"`quintet undo {thread}", "`/undo").rstrip("\n"), "")


async def _diff(talk: Conversation, rest: str) -> None:
    found = await talk.app.diffs.of(_thread(talk).id)
    for file in found.files:
        if file.shown:
            talk.face.write(diff_lines(file.diff, talk.face.width()))
        else:
            talk.transcript.note(f"({file.path}: {file.status}, too long to show)")
        if file.shared:
            talk.transcript.note(f"{file.path}: may be somebody else's change")
    for why in found.partial:
        talk.transcript.note(f"Not everything is known: {why}.")
    if not found.files:
        talk.transcript.note("No files were changed.")


async def _compact(talk: Conversation, rest: str) -> None:
    await talk.app.turns.compact(_thread(talk).id, talk.starter(), rest)


async def _export(talk: Conversation, rest: str) -> None:
    words = _words(rest)
    if not words:
        raise Invalid("A file is needed.", next_step="Write /export FILE.")
    await _run(talk, "threads", "export", _thread(talk).id, "-o", *words)


async def _stats(talk: Conversation, rest: str) -> None:
    await _run(talk, "stats", *_words(rest))


async def _exit(talk: Conversation, rest: str) -> None:
    talk.leave()


_ACTS: dict[str, Callable[[Conversation, str], Awaitable[None]]] = {
    "help": _help,
    "new": _new,
    "threads": _threads,
    "resume": _resume,
    "attach": _attach,
    "queue": _queue,
    "btw": _btw,
    "model": _model,
    "agent": _agent,
    "plan": _plan,
    "undo": _undo,
    "redo": _redo,
    "diff": _diff,
    "compact": _compact,
    "export": _export,
    "stats": _stats,
    "exit": _exit,
    "quit": _exit,
}
