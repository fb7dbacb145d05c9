"""One shell word: quotes and escapes removed as bash removes them, or unknown as soon as bash would expand it.

Pure. Reads the raw text by itself, so that a mistake of the grammar shows as a misfit instead of a wrong word.
"""

from __future__ import annotations

import re

from quintet.domain.ports import UNKNOWN_WORD

LONGEST = 4096
_META = frozenset(" \t\n\r;&|<>()")
_PLAIN = re.compile(r"[A-Za-z0-9_@%+:,./^=\-!}\]\u00a1-\U0010ffff]+")
_EXPANDS = re.compile(r"\$[A-Za-z0-9_@*#?$!({\[\-]")
_IN_DOUBLE = re.compile(r'[^"$`\\]+')
_SIMPLE_ESCAPES = {"a": 7, "b": 8, "e": 27, "E": 27, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_NUMBERED = re.compile(r"x([0-9A-Fa-f]{1,2})|([0-7]{1,3})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})")


class Misfit(Exception):
    """The text is not one word to bash: nothing about the line can be trusted."""


def read_word(raw: str) -> str:
    """The word as the program gets it, or UNKNOWN_WORD."""
    if len(raw) > LONGEST:
        raise Misfit("over-long word")
    if raw.startswith(("<(", ">(")):
        return UNKNOWN_WORD
    return _Reader(raw).word()


class _Reader:
    def __init__(self, raw: str) -> None:
        self._raw = raw
        self._at = 0
        self._text: list[str] = []
        self._bare = ""  # what stood outside quotes, the rest as blanks: braces and tildes only count there
        self._expands = False

    def word(self) -> str:
        if not self._raw or self._raw[0] == "#":
            raise Misfit("no word")
        while self._at < len(self._raw):
            if self._piece():
                return UNKNOWN_WORD
        text = "".join(self._text)
        odd = any(not c.isprintable() and c not in "\n\t" for c in text)
        return UNKNOWN_WORD if self._expands or odd or self._braces_or_tilde() else text

    def _piece(self) -> bool:
        """Take one piece; True when the whole word is settled as unknown."""
        raw, at = self._raw, self._at
        character = raw[at]
        if plain := _PLAIN.match(raw, at):
            self._take(plain[0], plain.end(), bare=True)
        elif character == "'":
            self._single()
        elif character == '"':
            return self._double()
        elif character == "\\":
            if at + 1 >= len(raw):
                raise Misfit("a backslash with nothing behind it")
            self._take(raw[at + 1], at + 2)
        elif character == "$":
            if raw[at + 1 : at + 2] == "'":
                return self._ansi()
            if raw[at + 1 : at + 2] == '"' or _EXPANDS.match(raw, at):
                return True
            self._take("$", at + 1)
        elif character == "`":
            return True
        elif character in _META:
            raise Misfit("more than one word")
        else:  # * ? [ { ~ #
            self._expands = self._expands or character in "*?["
            self._take(character, at + 1, bare=True)
        return False

    def _take(self, text: str, end: int, *, bare: bool = False) -> None:
        self._text.append(text)
        self._bare += text if bare else " "
        self._at = end

    def _single(self) -> None:
        end = self._raw.find("'", self._at + 1)
        if end < 0:
            raise Misfit("an open quote")
        self._take(self._raw[self._at + 1 : end], end + 1)

    def _double(self) -> bool:
        raw, at, inside = self._raw, self._at + 1, ""
        while at < len(raw):
            character = raw[at]
            if run := _IN_DOUBLE.match(raw, at):
                inside += run[0]
                at = run.end()
            elif character == '"':
                self._take(inside, at + 1)
                return False
            elif character == "\\" and at + 1 < len(raw):
                inside += raw[at + 1] if raw[at + 1] in '$`"\\' else raw[at : at + 2]
                at += 2
            elif character == "`" or _EXPANDS.match(raw, at):
                return True
            else:
                inside += character
                at += 1
        raise Misfit("an open quote")

    def _ansi(self) -> bool:
        """$'…': True when it holds an escape that is better left unknown."""
        raw, at, inside = self._raw, self._at + 2, ""
        while at < len(raw):
            if raw[at] == "'":
                self._take(inside, at + 1)
                return False
            if raw[at] != "\\":
                inside += raw[at]
                at += 1
                continue
            escape = raw[at + 1 : at + 2]
            if escape in _SIMPLE_ESCAPES:
                inside += chr(_SIMPLE_ESCAPES[escape])
                at += 2
            elif escape and escape in "\\'\"?":
                inside += escape
                at += 2
            elif number := _NUMBERED.match(raw, at + 1):
                code = int(number[number.lastindex or 0], 8 if number.lastindex == 2 else 16)
                if not 31 < code < 127:
                    return True
                inside += chr(code)
                at = number.end()
            else:
                return True
        raise Misfit("an open quote")

    def _braces_or_tilde(self) -> bool:
        bare = self._bare
        braces = "{" in bare and ("," in bare or ".." in bare)
        return braces or bare.startswith("~") or "=~" in bare or ":~" in bare
