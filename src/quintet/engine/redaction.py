"""Redaction of known secret values, in whole structs and in text that arrives in pieces.

Pure: works on given values, knows neither where they come from nor where the text goes.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from typing import Any, TypeVar
from urllib.parse import quote, quote_plus

import msgspec

from quintet.domain.ids import PREFIXES

MASK = "[redacted]"
HOLD_S = 0.05  # how long a possible secret's first characters may be held back
HELD_FROM = 3  # characters of a possible beginning that make it worth holding back
SHORTEST = 8  # anything shorter would mangle ordinary words
# Fields that name something instead of saying it.
_NAMES = frozenset({"cwd", "model", "profile", "protocol"})
_ID = re.compile(f"(?:{'|'.join(sorted(PREFIXES))})_[0-9a-z]{{26}}")
Struct = TypeVar("Struct", bound=msgspec.Struct)


class Redactor:
    """Replaces every known value, in plain, base64 and URL form, and as it stands inside JSON text."""

    def __init__(self, values: Iterable[str]) -> None:
        self.forms = sorted({f for v in values if len(v) >= SHORTEST for f in _forms(v)}, key=len, reverse=True)
        self._text = re.compile("|".join(map(re.escape, self.forms))) if self.forms else None
        self._in_json = tuple({_json_inside(f) for f in self.forms})
        self._prefixes = {f[:n] for f in self.forms for n in range(HELD_FROM, len(f))}
        self._first = {f[0] for f in self.forms}
        beginnings = sorted({re.escape(f[:HELD_FROM]) for f in self.forms})
        self._beginning = re.compile("|".join(beginnings)) if beginnings else None
        self.longest = max(map(len, self.forms), default=0)

    @property
    def idle(self) -> bool:
        """No secret is known, so nothing can be found."""
        return self._text is None

    def text(self, text: str) -> str:
        # Looking for one value after the other is ten times faster than for any of them; and mostly there is none.
        return self._text.sub(MASK, text) if self._text and any(form in text for form in self.forms) else text

    def struct(self, value: Struct) -> Struct:
        """The same struct with known values masked in its texts; the very same object if there are none.

        Only what people and models say is touched: not ids, tags and names, by which the engine finds things again.
        """
        if self.idle:
            return value
        try:
            whole = msgspec.json.encode(value)
        except UnicodeEncodeError:
            return value  # no store takes it either
        if not any(form in whole for form in self._in_json):
            return value
        masked: Struct = self._walk(value, "")
        return masked

    def _walk(self, value: Any, name: str) -> Any:
        if type(value) is str:
            return value if name in _NAMES or _ID.fullmatch(value) else self.text(value)
        if isinstance(value, msgspec.Struct):
            fields = {f: (getattr(value, f), self._walk(getattr(value, f), f)) for f in value.__struct_fields__}
            changed = {f: new for f, (old, new) in fields.items() if new is not old}
            return msgspec.structs.replace(value, **changed) if changed else value
        if isinstance(value, dict):
            return {self._walk(key, ""): self._walk(inner, "") for key, inner in value.items()}
        if isinstance(value, tuple | list):
            return type(value)(self._walk(inner, name) for inner in value)
        return value

    def clear(self, text: str) -> bool:
        """Whether nothing in it can be a known value or the beginning of one that is worth holding back."""
        return self._beginning is None or self._beginning.search(text) is None

    def masked(self, text: str, start: int) -> tuple[str, str]:
        """From `start` on: what is certain, masked, and the tail that may be the beginning of a known value."""
        if self._text is None:
            return text[start:], ""
        out = []
        for found in self._text.finditer(text):
            if found.end() > start:
                out += [text[start : found.start()], MASK]
                start = found.end()
        cut = self._open_tail(text, start)
        return "".join(out) + text[start:cut], text[cut:]

    def _open_tail(self, text: str, start: int) -> int:
        """Where it begins; what lies before `start` may be its first characters but is out already."""
        for place in range(max(0, len(text) - self.longest + 1), len(text) - HELD_FROM + 1):
            if text[place] in self._first and text[place:] in self._prefixes:
                return max(place, start)
        return len(text)


class RedactedStream:
    """Text in pieces. A piece is held back only while its tail could be the start of a known value.

    Tails of one or two characters are not held: nearly every word's end would be the beginning of some value's base64
    form. They are remembered instead, so a value cut there is still recognised and its rest masked.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._said = ""  # the last characters that went out
        self._held = ""

    @property
    def holding(self) -> bool:
        return bool(self._held)

    def add(self, piece: str) -> str:
        """What may be said now."""
        text = self._said + self._held + piece
        if not self._held and self._redactor.clear(text):  # nearly always
            self._said = text[-(HELD_FROM - 1) :]
            return piece
        certain, self._held = self._redactor.masked(text, len(self._said))
        if certain:
            self._said = (self._said + certain)[-(HELD_FROM - 1) :]
        return certain

    def release(self) -> str:
        """What was held, because the wait is over or the text has ended. Should the rest come after all, what is out is
        still known to be a value's beginning, and the rest is masked."""
        text, self._held = self._held, ""
        self._said = (self._said + text)[-self._redactor.longest :]
        return text


def _forms(value: str) -> set[str]:
    import json  # only where there are secrets

    try:
        raw = value.encode("utf-8", "surrogateescape")  # an environment variable may hold any bytes
    except UnicodeEncodeError:
        raw = value.encode("utf-8", "replace")
    value = raw.decode("utf-8", "replace")
    forms = {value, quote(raw, safe=""), quote_plus(raw)}
    forms |= {_json_inside(value).decode(), json.dumps(value)[1:-1]}  # as a call's input has it, with and without \u
    for shift in range(3):
        # Base64 of the value inside a longer text depends on its place modulo three; the inner characters do not
        # depend on the neighbours, so those are what is looked for.
        padded = base64.b64encode(b"\0" * shift + raw).decode().rstrip("=")
        inner = padded[(0, 2, 3)[shift] : len(padded) - (1 if (len(raw) + shift) % 3 else 0)]
        if len(inner) >= SHORTEST:
            forms |= {inner, inner.replace("+", "-").replace("/", "_")}
    return forms


def _json_inside(text: str) -> bytes:
    return msgspec.json.encode(text)[1:-1]
