"""What has a secret's shape, in a whole text and in one that arrives in pieces: `sk-…`, and what follows `Bearer`.

Pure. However a text is cut, what is said of its pieces is the whole text, masked.
"""

from __future__ import annotations

import re
from functools import cache

MASK = "[REDACTED]"
PIECES = ("assistantDelta", "reasoningDelta")  # of texts that are masked as wholes, before they become frames
Told = tuple[str, dict[str, str]]  # an event's kind and payload
_OF_BEARER, _OF_KEY = "[A-Za-z0-9._~+/=-]", "[A-Za-z0-9_-]"
_KEY_FROM = 8  # characters behind `sk-` that make it one
LONGEST_OPEN = 10  # `sk-` and seven more, or `Bearer` and a blank: further blanks change nothing


@cache
def _shapes() -> re.Pattern[str]:
    """Made when a frame first needs it, so that the first reply need not wait."""
    return re.compile(rf"\b(bearer\s+){_OF_BEARER}+|\bsk-{_OF_KEY}{{{_KEY_FROM},}}", re.IGNORECASE)


def masked(text: str) -> str:
    return _shapes().sub(lambda found: f"{found[1] or ''}{MASK}", text)


@cache
def _pieces() -> re.Pattern[str]:
    """The first certain characters of a secret, or the end of the text where it may be the beginning of one. The word
    `Bearer` is no secret itself and is only remembered; the beginning of a key is held back."""
    word = "|".join(rf"{'bearer'[:n]}\Z" for n in range(1, 6))
    return re.compile(
        rf"\b(?:(?P<bearer>bearer\s+){_OF_BEARER}|(?P<key>sk-{_OF_KEY}{{{_KEY_FROM}}})"
        rf"|(?P<word>bearer\s*\Z|{word})|(?P<held>sk-{_OF_KEY}{{0,{_KEY_FROM - 1}}}\Z|sk?\Z))",
        re.IGNORECASE,
    )


@cache
def _rest(characters: str) -> re.Pattern[str]:
    return re.compile(f"{characters}*", re.IGNORECASE)


def _harmless(piece: str) -> bool:
    """Neither a shape nor the end of it that could become one; cheaper than looking closely."""
    return "sk" not in piece and "bea" not in piece and not piece.endswith(("s", "b", "be"))


class MaskedText:
    """One text, piece by piece."""

    def __init__(self) -> None:
        self._before = ""  # the last character before what is open or comes next
        self._open = ""  # out already, and perhaps the beginning of a shape
        self._held = ""  # not out: it certainly is one's beginning, if one it is
        self._inside: re.Pattern[str] | None = None  # what belongs to a secret whose beginning is masked already

    @property
    def holding(self) -> bool:
        return bool(self._held)

    def add(self, piece: str) -> str:
        """What may be said now."""
        if not (self._open or self._held or self._inside) and piece and _harmless(piece.casefold()):  # nearly always
            self._before = piece[-1]
            return piece
        text, out = self._before + self._open + self._held + piece, ""
        begin = len(self._before)  # where a shape may begin
        said = begin + len(self._open)  # up to here it is out
        while True:
            if self._inside is not None:
                found = self._inside.match(text, said)
                begin = said = found.end() if found else said
                if said == len(text):
                    return out + self._rest(text, said, said, said)
                self._inside = None
            found = _pieces().search(text, begin)
            match found.lastgroup if found else None:
                case "bearer" | "key" as kind if found:
                    out += text[said : found.end(kind) if kind == "bearer" else found.start()] + MASK
                    begin = said = found.end()
                    self._inside = _rest(_OF_BEARER if kind == "bearer" else _OF_KEY)
                case "held" if found:
                    return out + self._rest(text, said, found.start(), max(found.start(), said))
                case "word" if found:
                    return out + self._rest(text, said, found.start(), len(text))
                case _:
                    return out + self._rest(text, said, len(text), len(text))

    def release(self) -> str:
        """What was held, because the wait is over or the text has ended. Should the rest come after all, what is out is
        still known to be a key's beginning, and the rest is masked."""
        text, self._held = self._held, ""
        self._open += text
        return text

    def _rest(self, text: str, said: int, shape: int, through: int) -> str:
        """What is out now up to `through`; a shape may have begun at `shape`."""
        self._before, self._held = text[:shape][-1:], text[through:]
        self._open = text[shape:through][:LONGEST_OPEN]
        return text[said:through]


class MaskedPieces:
    """The pieces of a turn's items, one item after the other, as they may be told."""

    def __init__(self) -> None:
        self._kind = self._item = ""
        self._text = MaskedText()

    @property
    def holding(self) -> bool:
        return self._text.holding

    def add(self, kind: str, item: str, piece: str) -> list[Told]:
        """Another item begins: what was held of the one before is its end."""
        told: list[Told] = []
        if (kind, item) != (self._kind, self._item):
            told = self.release()
            self._kind, self._item, self._text = kind, item, MaskedText()
        if words := self._text.add(piece):
            told.append((kind, {"delta": words}))
        return told

    def release(self) -> list[Told]:
        words = self._text.release()
        return [(self._kind, {"delta": words})] if words else []
