"""Shell commands as rules see them: one parser for policy and digests. Finds every simple command of a line, also
behind wrappers; what it does not understand no rule allows, and what is over its limits is refused.
"""

from __future__ import annotations

from quintet.domain.ports import ParsedCommand
from quintet.workspace.destructive import destructive_argv, destructive_text, destructive_words
from quintet.workspace.shell_parsing.opaque import opaque
from quintet.workspace.shell_parsing.structure import Structure
from quintet.workspace.shell_parsing.wrappers import behind

LENGTH_LIMIT = 10_000  # characters
COMMANDS_LIMIT = 200
DEPTH_LIMIT = 6  # texts inside texts


class ShellCommandParser:
    """Plays domain.ports.CommandParser."""

    def parse(self, command: str) -> ParsedCommand:
        if len(command) > LENGTH_LIMIT:
            return ParsedCommand(understood=False, destructive=destructive_text(command), too_long=True)
        reading = _Reading()
        reading.text(command, 0)
        if len(reading.argvs) > COMMANDS_LIMIT:
            return ParsedCommand(understood=False, destructive=destructive_text(command), too_long=True)
        destructive = any(destructive_argv(argv) for argv in reading.argvs) or destructive_words(command)
        return ParsedCommand(
            understood=reading.understood and bool(reading.argvs),
            commands=tuple(reading.argvs),
            destructive=destructive or (not reading.understood and destructive_text(command)),
            writes=tuple(reading.writes),
        )


class _Reading:
    """One line, with the texts it hands on to further shells."""

    def __init__(self) -> None:
        self.argvs: list[tuple[str, ...]] = []
        self.writes: list[str] = []
        self.understood = True

    def text(self, text: str, depth: int) -> None:
        joined = _without_continuations(text)
        if joined is None or depth > DEPTH_LIMIT or not _readable(joined):
            self.understood = False
            return
        found = Structure(joined)
        self.writes += found.writes
        self.understood = self.understood and not found.trouble
        for argv in found.argvs:
            self._command(argv, depth)

    def _command(self, argv: tuple[str, ...], depth: int) -> None:
        waiting = [argv]
        while waiting and len(self.argvs) <= COMMANDS_LIMIT:
            argv = waiting.pop(0)
            self.argvs.append(argv)
            inner = behind(argv)
            if inner is None:
                self.understood = self.understood and not opaque(argv)
                continue
            self.understood = self.understood and inner.clear
            guessing = not inner.clear  # guesses overlap: looked at, not followed
            (self.argvs if guessing else waiting).extend(inner.argvs)
            for text in inner.texts:
                self.text(text, depth + 1)


def _without_continuations(text: str) -> str | None:
    """Bash removes a backslash before a newline everywhere but in a few places; with those in sight nothing is said."""
    if "\\\n" not in text:
        return text
    if any(odd in text for odd in ("'", "<<", "#", "\\\\\n")):
        return None
    return text.replace("\\\n", "")


def _readable(text: str) -> bool:
    """No control, direction or invisible characters, and no blanks but those a shell knows."""
    return all(c.isprintable() or c in "\n\t" for c in text) and not any(c.isspace() and c not in " \n\t" for c in text)
