"""Inference: what of a person's own messages is worth remembering. A few plain patterns, no model. Pure.

Rather too little than too much: what was quoted, pasted or asked is nobody's wish, feelings are nobody's business, and
what looks like a secret is kept nowhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from quintet.domain.item import Item, UserMessage, text_of
from quintet.domain.shapes import mask_shapes

MOST = 5
SHORTEST, LONGEST = 8, 240  # characters of one candidate
LONGEST_INPUT = 4_000  # a longer one was pasted, not typed

_FENCE = re.compile(r"^\s*(```|~~~)")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n")
_ASKED_TO = re.compile(
    r"\b(?:please remember|remember(?: this)?|keep in mind|note)(?:\s*:\s*|\s+that\s+)(?P<what>.+)", re.IGNORECASE
)
_WHO = r"(?:i|we|our team|the team|my team)"
_HABIT = re.compile(
    rf"\b{_WHO}\s+(?:(?:really|strongly|usually|always|generally|normally)\s+)*"
    rf"(?:prefer|use|avoid|like|want|always|never|usually|don't use|do not use)\b"
    rf"|^(?:please\s+)?(?:always|never|avoid|prefer)\s+\w+",
    re.IGNORECASE,
)
# For this once, not for ever.
_NOW = re.compile(r"\b(?:now|today|this time|right now|for the moment|once|just this)\b", re.IGNORECASE)
_FEELING = re.compile(
    r"\b(?:love[sd]?|hate[sd]?|sad|lonely|depress\w*|anxi\w*|afraid|angry|cry(?:ing)?|miss you|need you|depend on you"
    r"|romantic|intimate|crush|flirt\w*|feel(?:ing|s)?|felt|scared|ashamed|grief|heartbr\w*)\b",
    re.IGNORECASE,
)
_LISTED = re.compile(r"^\W*(?:core|soft)_\d+\b")  # a list of memories that was pasted back


def candidates(messages: Iterable[str], known: Iterable[str] = ()) -> list[str]:
    """New ones, in the order they were said; `known` are the texts that are remembered already."""
    seen = {_normal(text) for text in known}
    found: list[str] = []
    for message in messages:
        for sentence in _own_sentences(message):
            text = _worth(sentence)
            if text and _normal(text) not in seen and len(found) < MOST:
                seen.add(_normal(text))
                found.append(text)
    return found


def messages_of(items: Iterable[Item]) -> list[str]:
    """What the person said: the input of each turn and what was said into it. Behind those a turn may put words of
    hooks and corrections, which are messages to the model and nobody's wish."""
    said, begun = [], set[str]()
    for item in items:
        first = not item.turn or item.turn not in begun
        begun.add(item.turn)
        if isinstance(item.body, UserMessage) and (first or item.body.steered):
            said.append(text_of(item.body))
    return said


def _own_sentences(message: str) -> list[str]:
    """Without what stands between fences or behind a quotation mark at the line's beginning."""
    if len(message) > LONGEST_INPUT:
        return []
    lines, fenced = [], False
    for line in message.splitlines():
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced and not line.lstrip().startswith((">", "|", "$ ", "<")):
            lines.append(line)
    return [part.strip(" \t-*") for part in _SENTENCE.split("\n".join(lines))]


def _worth(sentence: str) -> str:
    if sentence.endswith("?") or _LISTED.match(sentence) or _FEELING.search(sentence):
        return ""
    asked = _ASKED_TO.search(sentence)
    if asked is None and (_NOW.search(sentence) or not _HABIT.search(sentence)):
        return ""
    text = " ".join((asked["what"] if asked else sentence).split()).strip(" .;\"'")
    if not SHORTEST <= len(text) <= LONGEST or mask_shapes(text) != text:
        return ""
    return text[0].upper() + text[1:]


def _normal(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))
