"""Answering at the terminal of a running turn: one request at a time, each shown whole when its turn comes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import termios
from collections.abc import Callable

from quintet.cli.approvals import describe
from quintet.cli.asking import REMEMBER_BY, Asking
from quintet.domain.errors import AlreadyResolved, QuintetError
from quintet.domain.interaction import ExternalCall, HookRequest, Interaction, Verdict
from quintet.domain.principal import Principal
from quintet.engine.interactions import Answer, Interactions

LONGEST_LINE = 65_536


class Prompt:
    def __init__(self, note: Callable[[str], None], interactions: Interactions, me: Principal) -> None:
        self._note = note
        self._interactions = interactions
        self._me = me
        self._asking = Asking()
        self._typed = b""
        self._reading = False
        self._tasks: set[asyncio.Task[None]] = set()

    def ask(self, interaction: Interaction) -> None:
        if isinstance(interaction.request, ExternalCall | HookRequest):
            self._note(describe(interaction))  # its client answers, nobody at a terminal can
        elif self._asking.add(interaction):
            self._show()
        else:
            self._note(f"  (one more request waits: {interaction.id})")

    def resolved(self, interaction: str) -> None:
        """Answered, here or elsewhere."""
        if self._asking.resolved(interaction):
            self._stop_reading()

    def go_on(self) -> None:
        """The outcome of the last one has been told: ask the next."""
        if self._asking.next():
            self._show()

    def close(self) -> None:
        self._asking.clear()
        self._stop_reading()

    def _show(self) -> None:
        assert self._asking.asked is not None
        self._asking.again()
        self._note(describe(self._asking.asked, REMEMBER_BY))
        self._prompt()

    def _prompt(self, problem: str = "") -> None:
        """What was typed before this was shown cannot be meant for it."""
        self._typed = b""
        with contextlib.suppress(termios.error):
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
        words = self._asking.words()
        if not self._reading:
            self._reading = True
            asyncio.get_running_loop().add_reader(sys.stdin.fileno(), self._read)
        self._note(f"  {problem}\n{words}" if problem else words)

    def _stop_reading(self) -> None:
        if self._reading:
            self._reading = False
            asyncio.get_running_loop().remove_reader(sys.stdin.fileno())

    def _read(self) -> None:
        try:
            data = os.read(sys.stdin.fileno(), 4096)
        except OSError:
            data = b""  # the terminal is gone
        if self._asking.asked is None:
            self._stop_reading()
        elif not data:
            self._send(Answer(Verdict.DENY))
        else:
            self._typed = (self._typed + data)[-LONGEST_LINE:]
            if b"\n" in self._typed:
                self._line(self._typed.partition(b"\n")[0].decode(errors="replace").strip())

    def _line(self, words: str) -> None:
        answer = self._asking.take(words)
        if isinstance(answer, Answer):
            self._send(answer)
        else:
            self._prompt(answer)

    def _send(self, answer: Answer) -> None:
        assert self._asking.asked is not None
        self._stop_reading()
        task = asyncio.ensure_future(self._answer(self._asking.asked, answer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, asked: Interaction, answer: Answer) -> None:
        try:
            await self._interactions.answer(asked.id, answer, self._me)
        except AlreadyResolved:
            pass  # someone else was first; the view shows who
        except QuintetError as error:
            if self._asking.asked is asked:
                self._note(f"  {error.line()}")
                self._show()
