"""Calls: the tools that run now, with the time they take and the end of what they print; and the lines they leave."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from quintet.cli.changed import changed_line
from quintet.cli.diff_view import diff_lines
from quintet.cli.styled import Line, cut, plain, without_tabs, wrapped
from quintet.cli.terminal import safe, safe_line
from quintet.domain.item import ResultStatus, ToolCall, ToolResult
from quintet.domain.shown import shown_line

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
TAIL = 4  # lines of output
LONGEST_LINE = 2_000
QUICK_S = 0.1  # below that nobody cares how long it took
DIFF_LINES = 60  # per call; /diff has all
_MARKS = {
    ResultStatus.OK: ("green", "✓"),
    ResultStatus.ERROR: ("red", "✗"),
    ResultStatus.DENIED: ("yellow", "✗"),
    ResultStatus.CANCELLED: ("yellow", "✗"),
    ResultStatus.UNKNOWN: ("red", "?"),
}


class Call:
    def __init__(self, title: str, began_s: float) -> None:
        self.title = title
        self.began_s = began_s
        self._ended = 0  # lines
        self._tail: deque[str] = deque([""], maxlen=TAIL + 1)

    def printed(self, text: str) -> None:
        *whole, rest = text.split("\n")
        for line in whole:
            self._grow(line)
            self._tail.append("")
            self._ended += 1
        self._grow(rest)

    def _grow(self, text: str) -> None:
        """More of the last line; a carriage return begins it anew, as progress bars mean it."""
        grown = (self._tail[-1] + text).removesuffix("\r")
        self._tail[-1] = grown.rpartition("\r")[2][-LONGEST_LINE:]

    @property
    def lines(self) -> int:
        return self._ended + bool(self._tail[-1])

    def tail(self) -> list[str]:
        lines = list(self._tail)
        return (lines if lines[-1] else lines[:-1])[-TAIL:]


class Calls:
    def __init__(
        self, width: Callable[[], int], now_s: Callable[[], float], diffs_shown: dict[str, str] | None = None
    ) -> None:
        self._width = width
        self._now_s = now_s
        self._diffs_shown = {} if diffs_shown is None else diffs_shown
        self._running: dict[str, Call] = {}  # by call id, in the order they began
        self._wanted: dict[str, str] = {}  # by call id: what the model wrote, for calls nobody saw begin

    def wanted(self, call: ToolCall) -> None:
        self._wanted[call.call_id] = f"{call.name} {call.input}"

    def start(self, call_id: str, title: str) -> None:
        self._running[call_id] = Call(title, self._now_s())

    def printed(self, call_id: str, text: str) -> None:
        if call_id in self._running:
            self._running[call_id].printed(text)

    def live(self) -> list[Line]:
        out: list[Line] = []
        for call in self._running.values():
            spent = self._now_s() - call.began_s
            head = cut(shown_line(call.title), self._width() - 10)
            out.append((("cyan", spinner(self._now_s())), ("", f" {head}"), ("dim", f"  {spent:.0f} s")))
            out += [self._tail_line(line) for line in call.tail()]
        return out

    def result(self, result: ToolResult, cwd: str) -> list[Line]:
        """What a call leaves behind, once it is over."""
        call = self._running.pop(result.call_id, None)
        style, mark = _MARKS[result.status]
        spent_s = self._now_s() - call.began_s if call else 0.0
        spent = f"  {spent_s:.1f} s" if spent_s >= QUICK_S else ""
        said = "" if result.status is ResultStatus.OK else f" {result.status}"
        unknown = result.text if result.status is ResultStatus.UNKNOWN else ""
        words = safe_line(result.message or unknown)
        wanted = self._wanted.pop(result.call_id, result.name)
        title = shown_line(call.title) if call else cut(shown_line(wanted), self._width() - 20)
        line: Line = ((style, f"{mark} "), ("", title), (style, said), ("dim", f"  {words}{spent}" if words else spent))
        out = wrapped(line, self._width(), rest=plain("  "))
        if call is not None:
            hidden = call.lines - len(call.tail())
            out += [plain(f"  … {hidden} more before", "dim")] if hidden > 0 else []
            out += [self._tail_line(text) for text in call.tail()]
        if result.diff and self._diffs_shown.pop(result.call_id, "") != result.diff:
            out += diff_lines(result.diff, self._width(), DIFF_LINES)
        elif changed := changed_line(result, cwd):
            out += wrapped(plain(f"  {changed}", "dim"), self._width(), rest=plain("  "))
        return out

    def drop(self) -> None:
        """The turn is over: whatever still stands here has no result."""
        self._running.clear()
        self._wanted.clear()

    def _tail_line(self, text: str) -> Line:
        return plain(f"  │ {cut(without_tabs(safe(text)), self._width() - 4)}", "dim")


def spinner(now_s: float) -> str:
    return SPINNER[int(now_s * 10) % len(SPINNER)]
