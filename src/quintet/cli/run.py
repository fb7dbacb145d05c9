"""run: one headless turn, streamed. Exit codes tell what happened."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import errno
import hashlib
import os
import select
import stat
import sys

import msgspec

from quintet.app import App
from quintet.cli import exits
from quintet.cli.attaching import attached
from quintet.cli.inside_call import refuse_inside_a_call
from quintet.cli.invoke import Invocation, directory, money, positive, seconds
from quintet.cli.prompt_text import read_prompt, unread_stdin
from quintet.cli.stopping import Stopping
from quintet.cli.terminal import OutputFailed
from quintet.cli.thread_choice import chosen, configure
from quintet.cli.turn_tree import TurnTree
from quintet.cli.turn_view import JsonView, TextView, TurnView
from quintet.domain.errors import Conflict, Invalid, QuintetError
from quintet.domain.event import Event, TurnFinished
from quintet.domain.item import Part, TextPart, spoken
from quintet.domain.principal import local
from quintet.domain.thread import Handle, Thread, ThreadSettings
from quintet.domain.tool import Confine
from quintet.domain.turn import ClientKey, Mode, Turn, TurnState
from quintet.engine.answer_form import SCHEMA_LIMIT, AnswerForm
from quintet.engine.housekeeping import ON_THE_WAY_OUT_S
from quintet.engine.interactions import OnAsk
from quintet.engine.spending import refuse_unpriced
from quintet.engine.subscription import Subscription, replay

ME = local("cli")
LAST_EVENTS_WITHIN_S = 5.0
KEY_LIFE_MS = 24 * 3600 * 1000


def add_flags(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "prompt", nargs="*", help="what to do; @FILE reads a file, - adds what is piped in, nothing reads stdin alone"
    )
    parser.add_argument("-m", "--model", default="", help="provider/model")
    parser.add_argument("-c", "--continue", dest="go_on", action="store_true", help="go on with the newest thread here")
    parser.add_argument("--thread", default="", help="go on with this thread")
    parser.add_argument("--cwd", default="", help="working directory (else the current one)")
    parser.add_argument("--mode", choices=[m.value for m in Mode], help="how much may happen unasked (default: ask)")
    parser.add_argument("--on-ask", default="", metavar="deny|fail|wait:SECONDS", help="when approval is needed")
    parser.add_argument("--sandbox", choices=["ro", "ws", "off"], default="ws", help="how commands are confined")
    attach_help = "give the model this file of the workspace, a text, an image, sound or a video; may be said again"
    parser.add_argument("--attach", action="append", default=[], metavar="FILE", help=attach_help)
    parser.add_argument("--agent", default="", metavar="NAME", help="who works in the thread from now on")
    plan_help = "change nothing until somebody agreed to a plan; --no-plan ends that"
    parser.add_argument("--plan", action=argparse.BooleanOptionalAction, help=plan_help)
    parser.add_argument(
        "--output-schema", default="", metavar="FILE", help="the answer must be JSON that fits this JSON Schema"
    )
    parser.add_argument("--max-steps", type=positive, metavar="N", help="model calls at most")
    parser.add_argument("--budget", type=money, metavar="USD", help="dollars this turn may cost (exit 4)")
    parser.add_argument("--timeout", type=_seconds, metavar="SECONDS", help="cancel after this long (exit 124)")
    parser.add_argument("--idempotency-key", default="", metavar="K", help="the same key and prompt run once a day")


async def run(invocation: Invocation) -> int:
    flags = invocation.flags
    prompt = read_prompt(flags.prompt)
    unread = unread_stdin(flags.prompt)
    if unread:
        invocation.screen.note(unread)
    cwd = directory(flags.cwd)
    on_ask, wait_s = _on_ask(flags.on_ask)
    form = _answer_form(flags.output_schema)
    if flags.plan is False:
        refuse_inside_a_call("end plan mode")
    if flags.sandbox == "off":
        refuse_inside_a_call("lift the sandbox")
    async with invocation.open(starts_turns=True) as app:
        if app.config.sandbox.mode == "off":
            refuse_inside_a_call("work in a home whose config.toml lifts the sandbox")
        starter = app.starter(
            ME,
            mode=Mode(flags.mode) if flags.mode else Mode.ASK,
            model=flags.model,
            on_ask=on_ask,
            interaction_timeout_s=wait_s,
            max_steps=flags.max_steps,
            budget=flags.budget,
            confine={"ro": Confine.READ_ONLY, "off": Confine.OFF}.get(flags.sandbox, Confine.AUTO),
            answer_form=form,
            remembers=False,
        )
        # A wrong name, or a budget that could not be kept, is told before anything is begun.
        model, _ = starter.models.resolve(flags.model)
        if not flags.thread and not flags.go_on:  # a thread that is there may have a model of its own
            refuse_unpriced(starter.budget, starter.models.info(model))
        if flags.agent and not flags.thread:
            await app.agents.named(flags.agent, cwd)
        files = await _attached(app, flags, cwd)
        thread = await _thread(app, flags, cwd)
        await configure(app, thread, flags, cwd)
        for warning in app.project_policy(cwd if flags.cwd else thread.settings.cwd).warnings:
            invocation.screen.note(f"quintet: {warning}")
        view: TurnView
        if invocation.json:
            view = JsonView(invocation.screen)
        else:
            prompts = not flags.on_ask and on_ask is OnAsk.WAIT
            view = TextView(
                invocation.screen,
                app.interactions,
                ME,
                app.models,
                prompts=prompts,
                waits=on_ask is OnAsk.WAIT,
                only_json=form is not None,
            )
        with app.feed.follow(root=thread.root) as subscription:
            parts = (TextPart(prompt), *files)
            started = await app.turns.start(thread.id, parts, starter, key=_key(flags, parts, thread))
            view.begin(thread, started.turn)
            if not invocation.json:
                await _tell_waiting(app, started.turn, invocation)
            with Stopping(app, started.turn, flags.timeout) as stopping:
                ended = await _watch(app, started.turn, subscription, view, folded=started.folded)
        view.end(ended)
        if not unread and (late := unread_stdin(flags.prompt)):
            invocation.screen.note(late)  # whoever writes it took longer than we to begin
        await app.housekeeping.tidy(ON_THE_WAY_OUT_S)
    if stopping.timed_out and ended.state is TurnState.CANCELLED:
        return exits.TIMEOUT
    return exits.of_turn(ended.state, ended.error) or (exits.DENIED if view.denied else exits.DONE)


async def _tell_waiting(app: App, turn: Turn, invocation: Invocation) -> None:
    ahead = [t for t in await app.journal.turns(turn.thread, live=True) if t.id < turn.id]
    if ahead:
        words = "another turn" if len(ahead) == 1 else f"{len(ahead)} other turns"
        invocation.screen.note(
            f"  waiting for {words} of this thread (stop it with: quintet threads cancel {turn.thread})"
        )


async def _watch(app: App, turn: Turn, subscription: Subscription, view: TurnView, *, folded: bool) -> Turn:
    """Show the turn until it has ended. One that an earlier call had started is shown when it is over."""
    ending = asyncio.create_task(app.turns.wait(turn.id))
    if folded:
        ended = await ending
        tree = TurnTree(app.journal, turn.id)
        async for entry in replay(app.journal, 0, subscription.root):
            if isinstance(entry, Event) and await tree.holds(entry):
                view.show(entry, tree.prefix(entry))
        return ended
    showing = asyncio.create_task(_show(app, turn, subscription, view))
    leaving = asyncio.create_task(_reader_leaves())
    try:
        await asyncio.wait({ending, showing, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not ending.done() and not _failed(showing) and not leaving.done():
            await asyncio.wait({ending, leaving}, return_when=asyncio.FIRST_COMPLETED)  # the last event came first
        if not ending.done():
            # Nobody sees what happens, nor what is asked: it must not go on unseen.
            with contextlib.suppress(QuintetError):
                await app.turns.cancel(turn.id, ME, "whoever read the output has gone")
            raise OutputFailed(_why(showing))
        await asyncio.wait({showing}, timeout=LAST_EVENTS_WITHIN_S)
        if showing.done():
            showing.result()
        return ending.result()
    finally:
        for task in (ending, showing, leaving):
            task.cancel()
        await asyncio.gather(ending, showing, leaving, return_exceptions=True)


def _failed(showing: asyncio.Task[None]) -> bool:
    return showing.done() and not showing.cancelled() and showing.exception() is not None


def _why(showing: asyncio.Task[None]) -> OSError | ValueError:
    """What the view failed with; a defect of ours is told as what it is."""
    error = showing.exception() if showing.done() else None
    if error is None:
        return BrokenPipeError(errno.EPIPE, "the reader has gone")
    if isinstance(error, OutputFailed):
        return error.error
    raise error


async def _reader_leaves() -> None:
    """Returns when stdout is a pipe that nobody reads any more, also while nothing is written."""
    loop, gone = asyncio.get_running_loop(), asyncio.Event()
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError):
        await gone.wait()  # no descriptor, no pipe

    def look() -> None:
        poll = select.poll()
        poll.register(descriptor, 0)
        if any(what & select.POLLERR for _, what in poll.poll(0)):
            gone.set()
        loop.remove_reader(descriptor)

    try:
        if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            loop.add_reader(descriptor, look)
        await gone.wait()
    finally:
        loop.remove_reader(descriptor)


async def _show(app: App, turn: Turn, subscription: Subscription, view: TurnView) -> None:
    tree = TurnTree(app.journal, turn.id)
    async for entry in subscription:
        if isinstance(entry, Event) and (await tree.holds(entry) or not entry.turn):
            view.show(entry, tree.prefix(entry))
            if entry.turn == turn.id and isinstance(entry.payload, TurnFinished):
                return


async def _thread(app: App, flags: argparse.Namespace, cwd: str) -> Thread:
    thread = await chosen(app, flags, cwd)
    if thread is not None:
        return thread
    settings = ThreadSettings(cwd=cwd, agent=flags.agent, plan_mode=bool(flags.plan))
    if not flags.idempotency_key:
        return await app.threads.create(settings)
    # Callers with one key must meet in one thread, also when they come at the same moment.
    with contextlib.suppress(Conflict):
        return await _thread_of_key(app, flags.idempotency_key, settings)
    return await _thread_of_key(app, flags.idempotency_key, settings)


async def _thread_of_key(app: App, key: str, settings: ThreadSettings) -> Thread:
    """The key's thread of the last 24 hours, else a new one. A handle cannot be taken back, so each new thread stands
    under a scope that names the one before it."""
    scope = "idempotency-key"
    while True:
        found = await app.journal.find_handle("cli", scope, key)
        if found is None or found.deleted_ms:
            return await app.threads.create(settings, handle=Handle("cli", scope, key))
        turns = await app.journal.turns(found.thread)
        if not turns or app.clock.now_ms() - turns[0].queued_ms < KEY_LIFE_MS:
            return (await app.threads.get(found.thread)).thread
        scope = f"idempotency-key after {found.thread}"


async def _attached(app: App, flags: argparse.Namespace, cwd: str) -> tuple[Part, ...]:
    """Read before a thread is begun for them."""
    known = await chosen(app, flags, cwd) if flags.attach else None
    settings = known.settings if known else ThreadSettings(cwd)
    agent = flags.agent or settings.agent
    settings = ThreadSettings(cwd if flags.cwd else settings.cwd, agent, settings.model)
    return await attached(app, flags.attach, settings, model=flags.model, here=cwd)


def _key(flags: argparse.Namespace, parts: tuple[Part, ...], thread: Thread) -> ClientKey | None:
    if not flags.idempotency_key:
        return None
    prompt, files = spoken(parts), parts[1:]
    further = [f"{name} {flags.__dict__[name]}" for name in ("agent", "plan", "output_schema") if flags.__dict__[name]]
    if files:
        further.append(f"files {hashlib.sha256(msgspec.json.encode(files)).hexdigest()}")
    body = "\0".join((prompt, flags.model, flags.mode or "", *further))
    scope = f"{ME.protocol}:{ME.name}:{thread.id}"
    return ClientKey(scope, flags.idempotency_key, hashlib.sha256(body.encode(errors="surrogatepass")).hexdigest())


def _answer_form(path: str) -> AnswerForm | None:
    if not path:
        return None
    try:
        with open(path, "rb") as file:
            schema = file.read(SCHEMA_LIMIT + 1)
    except OSError as error:
        raise Invalid(f"{path} cannot be read: {error.strerror}.", next_step="Name a JSON Schema file.") from error
    return AnswerForm(schema, path)


def _on_ask(text: str) -> tuple[OnAsk, float | None]:
    """What to do and, where it was said, for how long."""
    if not text:
        return (OnAsk.WAIT if sys.stdin.isatty() else OnAsk.DENY), None
    word, _, waiting = text.partition(":")
    try:
        if word == "wait":
            return OnAsk.WAIT, _seconds(waiting)
    except (ValueError, argparse.ArgumentTypeError):
        pass
    if text in ("deny", "fail"):
        return OnAsk(text), None
    raise Invalid(f"--on-ask {text} is not understood.", next_step="Use deny, fail or wait:SECONDS.")


def _seconds(text: str) -> float:
    waiting = seconds(text)
    if not waiting:
        raise argparse.ArgumentTypeError("must be a number of seconds above 0")
    return waiting
