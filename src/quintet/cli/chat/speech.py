"""Speech: one item that is being streamed, an answer or thoughts. What was missed comes with the complete item."""

from __future__ import annotations

from collections.abc import Callable

from quintet.cli.markdown import Growing
from quintet.cli.styled import Line, plain, without_tabs, wrapped
from quintet.cli.terminal import safe

LONGEST_GROWING = 2_000  # characters of an unfinished line that are drawn anew with each piece


def dimmed(source: str, fence: str, width: int) -> tuple[list[Line], str]:
    """Thoughts: no Markdown, so that nothing of them stands out."""
    bar = plain("  ", "dim")
    return wrapped(plain(without_tabs(safe(source.removesuffix("\r"))), "dim italic"), width, bar, bar), ""


class Speech:
    def __init__(self, item: str, width: Callable[[], int], *, thinking: bool = False) -> None:
        self.item = item
        self._width = width
        self._render = dimmed if thinking else None
        self._text = Growing(width, self._render)
        self._pieces: list[str] = []
        self._broken = False  # some of it was missed: wait for the whole

    def add(self, index: int, piece: str) -> list[Line]:
        """The lines this piece has completed."""
        self._broken = self._broken or index != len(self._pieces)
        if self._broken:
            return []
        self._pieces.append(piece)
        return self._text.feed(piece)

    def pause(self) -> list[Line]:
        """Something else goes on; the last line is finished as it stands."""
        return self._text.end()

    def complete(self, text: str) -> list[Line]:
        """What was not shown yet of the item, which is whole now."""
        said = "".join(self._pieces)
        if text.startswith(said):
            return [*self._text.feed(text[len(said) :]), *self._text.end()]
        if not self._broken:
            return self._text.end()  # a secret that was recognised late: what is kept differs only there
        whole = Growing(self._width, self._render)
        head = plain("  (part of this was missed; here it is whole)", "dim")
        return [*self._text.end(), head, *whole.feed(text), *whole.end()]

    def growing(self) -> list[Line]:
        tail = self._text.unfinished()
        if len(tail) <= LONGEST_GROWING:
            return self._text.growing()
        return wrapped(plain(without_tabs(safe(tail[-LONGEST_GROWING:]))), self._width())
