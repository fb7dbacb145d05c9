"""Asking at the terminal without holding up the turn: one request at a time, each shown whole when its turn comes.

Whoever answers first, here or elsewhere, wins; only a request's own resolution moves the prompt on.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import termios
from collections import deque
from collections.abc import Callable

from quintet.cli.approvals import describe
from quintet.domain.errors import AlreadyResolved, QuintetError
from quintet.domain.grant import Scope
from quintet.domain.interaction import Approval, ExternalCall, HookRequest, Interaction, Question, QuestionItem, Verdict
from quintet.domain.principal import Principal
from quintet.engine.interactions import Answer, Interactions

LONGEST_LINE = 65_536
REMEMBER_BY = "t, p or a"
_SCOPES = {"t": Scope.THREAD, "p": Scope.PROJECT, "a": Scope.ALWAYS}
_SCOPE_WORDS = {Scope.THREAD: "this [t]hread", Scope.PROJECT: "this [p]roject", Scope.ALWAYS: "[a]lways"}


class Prompt:
    def __init__(self, note: Callable[[str], None], interactions: Interactions, me: Principal) -> None:
        self._note = note
        self._interactions = interactions
        self._me = me
        self._waiting: deque[Interaction] = deque()
        self._asked: Interaction | None = None
        self._answers: list[tuple[str, ...]] = []  # of a question, so far
        self._typed = b""
        self._reading = False
        self._tasks: set[asyncio.Task[None]] = set()

    def ask(self, interaction: Interaction) -> None:
        if isinstance(interaction.request, ExternalCall | HookRequest):
            self._note(describe(interaction))  # its client answers, nobody at a terminal can
            return
        self._waiting.append(interaction)
        if self._asked is None:
            self._next()
        else:
            self._note(f"  (one more request waits: {interaction.id})")

    def resolved(self, interaction: str) -> None:
        """Answered, here or elsewhere."""
        self._waiting = deque(i for i in self._waiting if i.id != interaction)
        if self._asked is not None and self._asked.id == interaction:
            self._stop_reading()
            self._asked = None

    def go_on(self) -> None:
        """The outcome of the last one has been told: ask the next."""
        if self._asked is None and self._waiting:
            self._next()

    def close(self) -> None:
        self._waiting.clear()
        self._asked = None
        self._stop_reading()

    def _next(self) -> None:
        self._asked = self._waiting.popleft()
        self._show()

    def _show(self) -> None:
        assert self._asked is not None
        self._answers = []
        self._note(describe(self._asked, REMEMBER_BY))
        self._prompt()

    def _prompt(self, problem: str = "") -> None:
        """What was typed before this was shown cannot be meant for it."""
        assert self._asked is not None
        self._typed = b""
        with contextlib.suppress(termios.error):
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
        request = self._asked.request
        if isinstance(request, Question):
            words = _choices(request.items[len(self._answers)])
        else:
            words = f"  allow? [y]es, [n]o{_remembering(self._asked)}:"
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
        if self._asked is None:
            self._stop_reading()
        elif not data:
            self._send(Answer(Verdict.DENY))
        else:
            self._typed = (self._typed + data)[-LONGEST_LINE:]
            if b"\n" in self._typed:
                self._line(self._typed.partition(b"\n")[0].decode(errors="replace").strip())

    def _line(self, words: str) -> None:
        assert self._asked is not None
        request = self._asked.request
        if isinstance(request, Question):
            chosen = understood(request.items[len(self._answers)], words)
            if chosen is None:
                self._prompt(f"{words!r} is not one of the answers." if words else "An answer is needed.")
                return
            self._answers.append(chosen)
            if len(self._answers) < len(request.items):
                self._prompt()
            else:
                self._send(Answer(Verdict.ANSWER, answers=tuple(self._answers)))
        elif words.lower() in ("y", "yes"):
            self._send(Answer(Verdict.ALLOW))
        elif words.lower() in ("n", "no"):
            self._send(Answer(Verdict.DENY))
        elif (scope := _scope(words)) in _offered(self._asked):
            self._send(Answer(Verdict.ALLOW, remember=scope))
        else:
            letters = [letter for letter, scope in _SCOPES.items() if scope in _offered(self._asked)]
            self._prompt(f"please answer {', '.join(['y', *letters])} or n")

    def _send(self, answer: Answer) -> None:
        assert self._asked is not None
        self._stop_reading()
        task = asyncio.ensure_future(self._answer(self._asked, answer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, asked: Interaction, answer: Answer) -> None:
        try:
            await self._interactions.answer(asked.id, answer, self._me)
        except AlreadyResolved:
            pass  # someone else was first; the view shows who
        except QuintetError as error:
            if self._asked is asked:
                self._note(f"  {error.line()}")
                self._show()


def _offered(asked: Interaction) -> tuple[Scope, ...]:
    return tuple(o.scope for o in asked.request.offers) if isinstance(asked.request, Approval) else ()


def _remembering(asked: Interaction) -> str:
    scopes = [words for scope, words in _SCOPE_WORDS.items() if scope in _offered(asked)]
    return f", or yes and for {', '.join(scopes)}" if scopes else ""


def _scope(words: str) -> Scope:
    """How far it is to be remembered, by letter or word."""
    near = [scope for letter, scope in _SCOPES.items() if words.lower() in (letter, scope.value)]
    return near[0] if near else Scope.CALL


def _choices(item: QuestionItem) -> str:
    lines = [f"  {item.text}"]
    for number, option in enumerate(item.options, 1):
        lines.append(f"    {number}) {option.label}{f': {option.description}' if option.description else ''}")
    kind = "your answer" if not item.options else "number or label"
    return "\n".join([*lines, f"  {kind}{', several with commas' if item.multiple else ''}:"])


def understood(item: QuestionItem, words: str) -> tuple[str, ...] | None:
    """The labels meant by numbers or labels; None when something is no option. Without options any words will do."""
    if not item.options:
        return (words,) if words else None
    whole = _option(item, words)
    if whole is not None:
        return (whole,)
    if not item.multiple:
        return None
    chosen = [_option(item, word.strip()) for word in words.split(",")]
    return tuple(dict.fromkeys(c for c in chosen if c is not None)) if None not in chosen else None


def _option(item: QuestionItem, words: str) -> str | None:
    labels = [option.label for option in item.options]
    for label in labels:
        if label == words:
            return label
    near = [label for label in labels if label.casefold() == words.casefold()]
    if len(near) == 1:
        return near[0]
    if words.isascii() and words.isdigit() and len(words) < 4 and 1 <= int(words) <= len(labels):
        return labels[int(words) - 1]
    return None
