"""A thread as Markdown. Whatever was said stays inside its quotation: no heading, element, image or fence of a model or
a tool becomes one of the document's, and no link leads anywhere but to the web."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from quintet.domain.item import Item
from quintet.domain.shown import spelled_out
from quintet.domain.thread import Thread
from quintet.engine.documents.passage import Form, passages

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_TICKS = re.compile(r"`+")
_PUNCTUATION = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~&:])")
_LINK = re.compile(r"\]\(\s*(?!https?://|mailto:)", re.IGNORECASE)


def markdown(thread: Thread, items: Iterable[Item]) -> Iterator[str]:
    """The document in pieces, each whole lines."""
    yield f"# {escaped(spelled_out(' '.join(thread.title.split())) or 'A thread without a title')}\n\n"
    yield f"{escaped(thread.id)}, begun {_time(thread.created_ms)}\n"
    for passage in passages(thread, items):
        yield f"\n## {escaped(passage.heading)}\n\n{_time(passage.at_ms)}\n"
        for form, text in passage.pieces:
            yield f"\n{fenced(text)}" if form is Form.VERBATIM else f"\n{quoted(text)}"


def escaped(text: str) -> str:
    """One line of words in which no character has a meaning."""
    return _PUNCTUATION.sub(r"\\\1", text)


def fenced(text: str) -> str:
    """Inside a fence longer than any run of its own: nothing in the text can end it."""
    longest = max((len(run) for run in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    body = text.replace("\r", "\n")
    return f"{fence}text\n{body}{'' if body.endswith(chr(10)) else chr(10)}{fence}\n"


def quoted(text: str) -> str:
    """Markdown as a quotation. Its code blocks are written anew with fences of ours; in the rest, what could be an
    element, an entity, an image or a link that is no web address loses its meaning."""
    out: list[str] = []
    for is_code, block in _blocks(text.replace("\r", "\n").split("\n")):
        lines = fenced("\n".join(block)).rstrip("\n").split("\n") if is_code else [_harmless(line) for line in block]
        out += ["", *lines, ""] if is_code else lines
    return "".join(f"> {line}".rstrip(" ") + "\n" for line in out)


def _blocks(lines: list[str]) -> Iterator[tuple[bool, list[str]]]:
    """Stretches of prose and of fenced code; a fence that is never closed reaches to the end."""
    prose: list[str] = []
    code: list[str] | None = None
    fence = ""
    for line in lines:
        found = _FENCE.fullmatch(line)
        if code is None and found and (found[1][0] == "~" or "`" not in found[2]):
            yield False, prose
            prose, code, fence = [], [], found[1]
        elif code is not None and found and found[1].startswith(fence) and not found[2].strip():
            yield True, code
            code = None
        else:
            (prose if code is None else code).append(line)
    yield (False, prose) if code is None else (True, code)


def _harmless(line: str) -> str:
    """Spans may still run over lines, so backticks of code spans get no special treatment: all is escaped alike. The
    colon of a link's definition is spelled as an entity: a backslash before the bracket could be undone by another."""
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace("![", "!\\[").replace("]:", "]&#58;")
    return _LINK.sub(r"]\\(", line)


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
