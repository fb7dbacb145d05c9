"""Panel: the face for a real terminal, made of prompt_toolkit. Finished lines go above, into the terminal's own scroll
back; below them stand what moves, the input and a line of state. The only file that knows prompt_toolkit.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import termios
from collections.abc import Callable, Iterable, Mapping, Sequence

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer, Completion
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, has_focus, is_searching
from prompt_toolkit.formatted_text import ANSI
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    Dimension,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.widgets import CompletionsToolbar, SearchToolbar

from quintet.cli.chat.face import Talk
from quintet.cli.styled import Line, cut, paint, plain
from quintet.cli.terminal import OutputFailed

TALLEST_INPUT = 8
MOVES_EVERY_S = 0.1
WRITES_EVERY_S = 0.02


class Commands(Completer):
    """The names of slash commands, at the beginning of the input."""

    def __init__(self, summaries: Mapping[str, str]) -> None:
        self._summaries = summaries

    def get_completions(self, document: Document, complete_event: object) -> Iterable[Completion]:
        typed = document.text_before_cursor
        if typed.startswith("/") and " " not in typed and "\n" not in typed:
            for name in self._summaries:
                if f"/{name}".startswith(typed):
                    yield Completion(f"/{name}", start_position=-len(typed))


class Panel:
    def __init__(
        self, *, color: bool, history: Sequence[str], remember: Callable[[str], str], summaries: Mapping[str, str]
    ) -> None:
        self._color = color
        self._remember = remember
        self._talk: Talk | None = None
        self._label = ""
        self._draft = ""  # what was being typed when a request came
        self._pending: list[str] = []  # painted, not written yet
        self._news = asyncio.Event()
        self._closed = False
        self._buffer = Buffer(
            history=InMemoryHistory(list(history)),
            completer=Commands(summaries),
            complete_while_typing=True,
            multiline=True,
            enable_history_search=False,
        )
        # Nothing is asked of the terminal: an answer that comes late, or never, must not end up in the input.
        self._output = Vt100_Output(sys.stdout, _size, term=os.environ.get("TERM"), enable_cpr=False)
        self._app: Application[None] = Application(
            layout=self._layout(),
            key_bindings=self._keys(),
            output=self._output,
            erase_when_done=True,
            color_depth=None if color else ColorDepth.DEPTH_1_BIT,
        )

    # --- what the conversation asks of it ----------------------------------------------------------------------------
    def write(self, lines: Sequence[Line]) -> None:
        self._pending += [paint(line, color=self._color) for line in lines]
        self._news.set()

    def width(self) -> int:
        return self._output.get_size().columns - 1

    def refresh(self) -> None:
        self._news.set()

    def ask(self, label: str) -> None:
        if label and not self._label:
            self._draft = self._buffer.text
        if label:
            self._buffer.reset()
            with contextlib.suppress(termios.error):
                termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)  # typed before it could be read
        elif self._label:  # half an answer must not become a message
            self._buffer.reset(Document(self._draft))
        self._label = label
        self.refresh()

    async def run(self, talk: Talk) -> None:
        self._talk = talk
        self._write_out()
        moving = asyncio.ensure_future(self._move())
        shown = asyncio.ensure_future(self._app.run_async(handle_sigint=False, set_exception_handler=False))
        try:
            await asyncio.wait({moving, shown}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.close()
            moving.cancel()
            await asyncio.gather(moving, shown, return_exceptions=True)
        try:
            for task in (shown, moving):
                if not task.cancelled():
                    task.result()
            self._write_out()
        except OSError as error:
            raise OutputFailed(error) from error  # the terminal is gone

    def close(self) -> None:
        self._closed = True
        self._news.set()  # where it is only about to run, it ends as soon as it does
        if self._app.is_running and self._app.future is not None and not self._app.future.done():
            self._app.exit()

    # --- drawing -----------------------------------------------------------------------------------------------------
    async def _move(self) -> None:
        """Write what is finished and draw what moves, several changes at once."""
        assert self._talk is not None
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(MOVES_EVERY_S if self._talk.running else None):
                    await self._news.wait()
            if self._app.is_running:  # else it is about to be
                self._news.clear()
                if self._closed:
                    self.close()
                    return
                if self._pending:
                    self._app.renderer.erase()
                    self._write_out()
                self._app.invalidate()
            await asyncio.sleep(WRITES_EVERY_S)

    def _write_out(self) -> None:
        text, self._pending = "".join(f"{line}\r\n" for line in self._pending), []
        if text:
            self._output.write_raw(text)
            self._output.flush()

    def _live(self) -> ANSI:
        size = self._output.get_size()
        room = max(size.rows - TALLEST_INPUT - 2, 3)
        lines = self._talk.live()[-room:] if self._talk else []
        return ANSI("\n".join(paint(line, color=self._color) for line in lines))

    def _state(self) -> ANSI:
        words = self._talk.status() if self._talk else ""
        return ANSI(paint(plain(cut(words, self.width()), "dim"), color=self._color))

    def _lead(self, line: int, wrap: int) -> ANSI:
        label = f"{self._label}> " if self._label else "> "
        first = not line and not wrap
        return ANSI(paint(plain(label if first else " " * len(label), "cyan"), color=self._color))

    def _layout(self) -> Layout:
        search = SearchToolbar()
        live = ConditionalContainer(
            Window(FormattedTextControl(self._live), dont_extend_height=True),
            Condition(lambda: self._talk is not None and bool(self._talk.live())),
        )
        typed = Window(
            BufferControl(self._buffer, search_buffer_control=search.control, preview_search=True),
            get_line_prefix=self._lead,
            wrap_lines=True,
            dont_extend_height=True,
            height=Dimension(min=1, max=TALLEST_INPUT),
        )
        state = Window(FormattedTextControl(self._state), height=1, dont_extend_height=True)
        return Layout(HSplit([live, typed, CompletionsToolbar(), search, state]), focused_element=typed)

    # --- keys --------------------------------------------------------------------------------------------------------
    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        typing = has_focus(self._buffer)
        keys.add("enter", filter=typing)(self._send)
        keys.add("escape", "enter", filter=typing)(lambda event: self._buffer.insert_text("\n"))
        keys.add("c-c", filter=~is_searching)(self._stop)  # a search is left by it, as everywhere
        keys.add("c-d", filter=typing & Condition(lambda: not self._buffer.text))(lambda event: self._leave())
        keys.add("c-z")(lambda event: event.app.suspend_to_background())
        return keys

    def _send(self, event: KeyPressEvent) -> None:
        assert self._talk is not None
        text = self._buffer.text
        if not self._label and text.strip():
            kept = self._remember(text)
            if kept:
                self._buffer.history.append_string(kept)
        self._buffer.reset()
        self._talk.submit(text)

    def _stop(self, event: KeyPressEvent) -> None:
        assert self._talk is not None
        if self._talk.running or not self._buffer.text:
            self._talk.interrupt()
        else:
            self._buffer.reset()

    def _leave(self) -> None:
        assert self._talk is not None
        self._talk.leave()


def _size() -> Size:
    """As it is now; a terminal that does not know its size is taken for an ordinary one."""
    try:
        columns, rows = os.get_terminal_size(sys.stdout.fileno())
    except OSError:
        columns = rows = 0
    return Size(rows=rows or 24, columns=columns or 80)
