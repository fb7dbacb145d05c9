"""The prompt: from the command line, a file or stdin; text, not too large, not empty."""

from __future__ import annotations

import sys
from pathlib import Path

from quintet.domain.errors import Invalid

LARGEST_PROMPT = 10 * 1024 * 1024


def read_prompt(words: list[str]) -> str:
    text = " ".join(words)
    try:
        if text in ("", "-"):
            if sys.stdin.isatty():
                raise Invalid("There is no prompt.", next_step='Give one: quintet run "help".')
            text = sys.stdin.read(LARGEST_PROMPT + 1)
        elif text.startswith("@"):
            text = Path(text[1:]).read_text(encoding="utf-8")
    except OSError as error:
        raise Invalid(
            f"{text[1:] or 'stdin'} cannot be read: {error.strerror}.", next_step="Name a readable file."
        ) from None
    except UnicodeDecodeError:
        raise Invalid("The prompt is not UTF-8 text.", next_step="Give it as text.") from None
    if len(text) > LARGEST_PROMPT:
        raise Invalid(
            f"The prompt is larger than {LARGEST_PROMPT} characters.", next_step="Put it into a file to read."
        )
    if not text.isascii():
        _check_text(text)
    if not text.strip():
        raise Invalid("The prompt is empty.", next_step='Give one: quintet run "help".')
    return text


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Invalid("The prompt is not UTF-8 text.", next_step="Give it as text.") from None
