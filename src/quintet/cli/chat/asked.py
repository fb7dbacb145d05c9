"""Asked: the requests of a conversation, shown whole and answered by what is typed. Says by whom each was decided."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from quintet.cli.approvals import describe
from quintet.cli.asking import REMEMBER_BY, Asking
from quintet.cli.chat.face import Face
from quintet.cli.notes import decided
from quintet.cli.styled import Line, plain, without_tabs, wrapped
from quintet.cli.terminal import safe
from quintet.domain.errors import AlreadyResolved, QuintetError
from quintet.domain.event import InteractionResolved
from quintet.domain.interaction import Approval, ExternalCall, HookRequest, Interaction
from quintet.domain.principal import ENGINE, Principal
from quintet.engine.interactions import Answer, Interactions

_DIFF_STYLES = {"  +": "green", "  -": "red", "  @": "cyan"}


class Asked:
    def __init__(
        self,
        face: Face,
        interactions: Interactions,
        me: Principal,
        keep: Callable[[Coroutine[Any, Any, None]], object],
        diff_shown: Callable[[str, str], None],
    ) -> None:
        self._face = face
        self._interactions = interactions
        self._me = me
        self._keep = keep
        self._diff_shown = diff_shown  # told the call and its diff
        self._asking = Asking(free_answers=True)
        self._answered_here: set[str] = set()
        self._hooks: set[str] = set()  # open requests to hooks of a client

    @property
    def open(self) -> bool:
        return self._asking.asked is not None

    def add(self, interaction: Interaction) -> None:
        if self._asking.knows(interaction.id):
            return
        if isinstance(interaction.request, HookRequest):
            self._hooks.add(interaction.id)  # what came of it is told with all hooks of its moment
        elif isinstance(interaction.request, ExternalCall):
            self._write(describe(interaction))  # its client answers, nobody at a terminal can
        elif self._asking.add(interaction):
            self._show()
        else:
            self._write(f"  (one more request waits: {interaction.id})")

    def answer(self, words: str) -> None:
        """What was typed while a request stood there."""
        asked = self._asking.asked
        assert asked is not None
        if asked.id in self._answered_here:
            self._write(f"  (your answer is on its way; this was not sent: {words})")
            return
        answer = self._asking.take(words.strip())
        if isinstance(answer, Answer):
            self._answered_here.add(asked.id)
            self._keep(self._send(asked, answer))
        else:
            self._write(*([f"  {answer}"] if answer else []), self._asking.words())

    def resolved(self, event: InteractionResolved) -> None:
        if event.interaction in self._hooks:
            self._hooks.discard(event.interaction)
            return
        here = event.interaction in self._answered_here
        self._answered_here.discard(event.interaction)
        was_asked = self._asking.resolved(event.interaction)
        words = decided(event.decision)
        if not here and event.decision.by != ENGINE:
            words += " (answered elsewhere)"
        self._write(f"  {words}")
        if was_asked:
            self._face.ask("")
        if self._asking.next():
            self._show()

    def clear(self) -> None:
        """Another thread is looked at."""
        if self._asking.asked is not None:
            self._face.ask("")
        self._asking.clear()

    async def _send(self, asked: Interaction, answer: Answer) -> None:
        try:
            await self._interactions.answer(asked.id, answer, self._me)
        except AlreadyResolved as error:
            self._answered_here.discard(asked.id)
            self._write(f"  {error.line()}")  # someone else was first; who it was is told with the resolution
        except QuintetError as error:
            self._answered_here.discard(asked.id)
            self._write(f"  {error.line()}")
            if self._asking.asked is asked:
                self._show()

    def _show(self) -> None:
        asked = self._asking.asked
        assert asked is not None
        self._asking.again()
        approval = asked.request if isinstance(asked.request, Approval) else None
        # Before the words that ask: an answer to them may be typed as soon as they can be read.
        self._face.ask("allow" if approval else "answer")
        self._face.write([()])
        if approval:  # a question's words say all of it
            self._write(describe(asked, REMEMBER_BY), diff=True)
            self._diff_shown(asked.call_id, approval.diff)
        self._write(self._asking.words())

    def _write(self, *texts: str, diff: bool = False) -> None:
        for line in (line for text in texts for line in text.split("\n")):
            style = _DIFF_STYLES.get(line[:3], "yellow" if line.startswith("  note: ") else "") if diff else ""
            style = "bold" if diff and line.startswith("  $ ") else style
            self._face.write(_rows(line, style, self._face.width()))


def _rows(line: str, style: str, width: int) -> list[Line]:
    text = without_tabs(safe(line))
    bare = text.lstrip(" ")
    indent = plain(text[: len(text) - len(bare)])
    return wrapped(plain(bare, style), width, indent, (*indent, *plain("  ")))
