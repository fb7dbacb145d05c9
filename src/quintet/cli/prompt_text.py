"""The prompt: from the command line, a file or stdin; text, not too large, not empty.

Stdin is read only where the command line says so: it may belong to somebody else, and may never end.
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import os
import signal
import stat
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

from quintet.domain.errors import Invalid

LARGEST_PROMPT = 10 * 1024 * 1024
STDIN = "-"


def read_prompt(words: list[str]) -> str:
    """The words, or the file they name; with `-` among them what comes on stdin, too. No words at all: stdin alone."""
    said = " ".join(word for word in words if word != STDIN)
    piped = _stdin(alone=not said) if not said or STDIN in words else None
    text = _file(said[1:]) if said.startswith("@") else said
    if piped is not None:
        text = f"{text}\n\n<stdin>\n{piped}{'' if piped.endswith(chr(10)) else chr(10)}</stdin>" if text else piped
    if len(text) > LARGEST_PROMPT:
        raise Invalid(
            f"The prompt is larger than {LARGEST_PROMPT} characters.", next_step="Put it into a file to read."
        )
    if not text.isascii():
        _check_text(text)
    if not text.strip():
        raise Invalid("The prompt is empty.", next_step='Give one: quintet run "help".')
    return text


def unread_stdin(words: list[str]) -> str:
    """What to say when something waits on stdin that nobody asked for; looks, and takes nothing away."""
    if not words or STDIN in words or not _something_waits():
        return ""
    return 'quintet: stdin was not read. To give it along, say so: quintet run "what to do" -'


def _stdin(*, alone: bool) -> str:
    if sys.stdin.isatty():
        if alone:
            raise Invalid("There is no prompt.", next_step='Give one: quintet run "help".')
        raise Invalid("Nothing is piped in, and `-` stands for that.", next_step="Leave it out, or pipe something in.")
    try:
        with _interruptible():
            return sys.stdin.read(LARGEST_PROMPT + 1)
    except OSError as error:
        raise Invalid(f"stdin cannot be read: {error.strerror}.", next_step="Give the prompt as words.") from None
    except UnicodeDecodeError:
        raise Invalid("The prompt is not UTF-8 text.", next_step="Give it as text.") from None


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Ctrl-C ends it at once. The event loop's own handler only asks the running task to end, which cannot hear it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _file(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8")
    except OSError as error:
        raise Invalid(f"{name} cannot be read: {error.strerror}.", next_step="Name a readable file.") from None
    except UnicodeDecodeError:
        raise Invalid("The prompt is not UTF-8 text.", next_step="Give it as text.") from None


def _something_waits() -> bool:
    """Of a pipe or socket what has come, of a file what is left."""
    try:
        descriptor = sys.stdin.fileno()
        about = os.fstat(descriptor)
        if stat.S_ISREG(about.st_mode):
            return about.st_size > os.lseek(descriptor, 0, os.SEEK_CUR)
        if stat.S_ISFIFO(about.st_mode) or stat.S_ISSOCK(about.st_mode):
            count = array.array("i", [0])
            fcntl.ioctl(descriptor, termios.FIONREAD, count)
            return count[0] > 0
    except (OSError, ValueError):
        pass  # closed, or nothing that can be asked
    return False


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Invalid("The prompt is not UTF-8 text.", next_step="Give it as text.") from None
