"""demo: half a minute with the offline model in a project made for it. Real turns, real tools, a real approval, a real
undo; nothing of yours is touched, and nothing is left unless you say --keep.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from quintet.app import App, open_app
from quintet.cli import exits
from quintet.cli.demo_project import RIGHT, WRONG, DemoProject
from quintet.cli.demo_view import DemoView
from quintet.cli.event_json import encode_line
from quintet.cli.invoke import Invocation
from quintet.cli.signals import heard
from quintet.domain.errors import QuintetError, StorageReadOnly
from quintet.domain.event import Event, TurnFinished
from quintet.domain.item import TextPart
from quintet.domain.principal import local
from quintet.domain.thread import Thread, ThreadSettings
from quintet.domain.turn import Mode, Turn
from quintet.engine.interactions import OnAsk
from quintet.engine.starter import Starter

ME = local("cli")
MODEL = "offline/offline"
ANSWER_WITHIN_S = 300.0
VERSION = 1  # of the last line of --json


def add_flags(parser: argparse.ArgumentParser, common: argparse.ArgumentParser) -> None:
    parser.add_argument("--yes", action="store_true", help="do not ask me: let the demo answer, and say so")
    parser.add_argument("--keep", action="store_true", help="leave project and thread there, and say where")


async def run(invocation: Invocation) -> int:
    me = asyncio.current_task()
    assert me is not None
    stopping = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    place, finished = "", False
    try:
        with heard(dict.fromkeys(stopping, me.cancel), stopping, at_last=lambda: _take_away(place)):
            place = _made()
            code = await _Demo(invocation, DemoProject(Path(place))).play()
            finished = True
            return code
    except asyncio.CancelledError:
        invocation.screen.note("quintet: stopped; nothing is left of the demo.")
        return exits.INTERRUPTED
    finally:
        for number in stopping:  # what comes now must not keep it from being taken away
            signal.signal(number, signal.SIG_IGN)
        if not (finished and invocation.flags.keep) and not _take_away(place):
            invocation.screen.note(f"quintet: {place} could not be removed; nothing needs it any more.")


def _made() -> str:
    try:
        return os.path.realpath(tempfile.mkdtemp(prefix="quintet-demo-"))
    except OSError as error:
        raise _no_room(error) from error


def _no_room(error: OSError) -> QuintetError:
    words = f"The demo's project cannot be made in {tempfile.gettempdir()}: {error.strerror}."
    return StorageReadOnly(words, next_step="Name a directory with room in it: TMPDIR=DIR quintet demo")


def _take_away(place: str) -> bool:
    shutil.rmtree(place, ignore_errors=True)
    return not os.path.exists(place)


class _Demo:
    def __init__(self, invocation: Invocation, project: DemoProject) -> None:
        self._invocation = invocation
        self._project = project
        self._screen = invocation.screen
        self._by_itself = invocation.json or invocation.flags.yes or not sys.stdin.isatty()
        self._begun = time.monotonic()

    async def play(self) -> int:
        project = self._project
        try:
            await asyncio.to_thread(project.make)
        except OSError as error:
            raise _no_room(error) from error
        before = project.file.read_bytes()
        self._say(f"A project to try, in {project.directory}{' (a git repository)' if project.in_git else ''}.")
        self._say(f"{project.file.name} computes a wrong price, and a test says so. The offline model plays the model.")
        async with open_app(str(project.home), "cli") as app:
            view = DemoView(self._invocation, app, by_itself=self._by_itself)
            thread = await app.threads.create(ThreadSettings(cwd=str(project.directory)))
            turns = await self._turns(app, thread, view)
            self._head(3, "What it changed")
            diff = "".join(file.diff for file in (await app.diffs.of(thread.id)).files)
            self._write(diff)
            self._head(4, "All of it is undone")
            undone = await self._undo(app, thread)
            back = project.file.read_bytes() == before
            self._say(f"  {project.file.name} is {'what it was, byte for byte' if back else 'NOT what it was'}.")
        facts = {"edited": bool(diff), "approved": not view.denied, "tested": view.passed, "undone": undone and back}
        return self._end(facts, turns, thread)

    async def _turns(self, app: App, thread: Thread, view: DemoView) -> tuple[Turn, Turn]:
        starter = app.starter(
            ME,
            mode=Mode.ASK,
            model=MODEL,
            on_ask=OnAsk.WAIT,
            interaction_timeout_s=ANSWER_WITHIN_S,
            remembers=False,
        )
        self._head(1, "It edits the file")
        change = f'replace "{WRONG}" with "{RIGHT}" in {self._project.file.name}'
        edit = await self._turn(app, thread, starter, view, change)
        self._head(2, "It wants to run the test, and asks first")
        return edit, await self._turn(app, thread, starter, view, f"run {self._project.test_command()}")

    async def _turn(self, app: App, thread: Thread, starter: Starter, view: DemoView, prompt: str) -> Turn:
        self._say(f"  you say: {prompt}")
        with app.feed.follow(root=thread.root) as subscription:
            started = await app.turns.start(thread.id, (TextPart(prompt),), starter)
            view.begin(thread, started.turn)
            async for entry in subscription:
                if isinstance(entry, Event):
                    view.show(entry)
                    if isinstance(entry.payload, TurnFinished) and entry.turn == started.turn.id:
                        break
            ended = await app.turns.wait(started.turn.id)
        view.end(ended)
        return ended

    async def _undo(self, app: App, thread: Thread) -> bool:
        """As `quintet undo` does it."""
        try:
            point = await app.undo.point((await app.threads.get(thread.id)).thread, "", force=False)
        except QuintetError as error:
            self._say(f"  {error.line()}")
            return False
        done = await app.threads.revert(thread.id, point.keep_through, files=True, force=False, dry_run=False)
        files = done.files
        for back in files.restored if files else ():
            self._say(f"  {'removed' if back.removed else 'restored'} {Path(back.path).name}")
        return files is not None and bool(files.restored) and not files.conflicts

    def _end(self, facts: dict[str, bool], turns: tuple[Turn, ...], thread: Thread) -> int:
        seconds = time.monotonic() - self._begun
        code = next((c for turn in turns if (c := exits.of_turn(turn.state, turn.error))), exits.DONE)
        if not code:
            code = exits.DENIED if not facts["approved"] else exits.DONE if all(facts.values()) else exits.FAILED
        kept = str(self._project.directory.parent) if self._invocation.flags.keep else ""
        if self._invocation.json:
            answer = {"v": VERSION, "kind": "demo.finished", **facts, "seconds": round(seconds, 2), "kept": kept}
            self._screen.raw(encode_line(answer))
            return code
        self._say("")
        self._say(f"That took {seconds:.0f} s, and every step of it is in a journal.")
        if kept:
            self._say(f"Kept in {kept}. See: quintet threads show {thread.id} --home {self._project.home}")
        else:
            self._say("Nothing is left of it, and your own threads were not touched. (--keep leaves it there.)")
        self._say("Next: quintet doctor, then quintet auth set anthropic, or quintet models --local")
        return code

    def _head(self, number: int, words: str) -> None:
        self._say(f"\n{number}. {words}")

    def _say(self, words: str) -> None:
        if not self._invocation.json:
            self._screen.line(words)

    def _write(self, text: str) -> None:
        if not self._invocation.json:
            self._screen.write(text)
