"""Regular expressions as ripgrep reads them, rewritten for Python's `re`. What cannot keep its meaning
is refused in words, never given another meaning. Only rewrites; nothing is matched here.

A line that is no UTF-8 is decoded with surrogate escapes, and a class or `.` never fits such a byte, as in ripgrep.
"""

from __future__ import annotations

import re

_BYTES = "\\udc80-\\udcff"  # bytes that are no UTF-8
_SPACE = "\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000"
# Positive form, and the form of the opposite.
_CLASSES = {
    "d": ("\\d", f"[^\\d\\n{_BYTES}]"),
    "w": ("\\w", f"[^\\w\\n{_BYTES}]"),
    "s": (_SPACE, f"[^{_SPACE}{_BYTES}]"),
}
_MEMBER = re.compile(r"\[:([a-z]+):\]")
_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": "\\x00-\\x09\\x0b-\\x7f",
    "blank": "\\t ",
    "cntrl": "\\x00-\\x09\\x0b-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\t\\x0b\\x0c\\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_CONTROL = {"t": "\t", "r": "\r", "f": "\x0c", "v": "\x0b", "a": "\x07"}
_PUNCTUATION = frozenset("\\.+*?()|[]{}^$#&-~")
_HEX = {"x": 2, "u": 4, "U": 8}
_COUNT = re.compile(r"\{([0-9]{1,5})(,([0-9]{1,5})?)?\}")
_FLAGS = re.compile(r"\(\?(-?i)([:)])")
_NAMED = re.compile(r"\(\?P<([A-Za-z_][A-Za-z0-9_]*)>")


class Unsupported(ValueError):
    """The words say what of the expression and why."""


def rewritten(pattern: str) -> str:
    """The same expression for `re`, to be compiled without flags other than IGNORECASE."""
    return _Rewriting(pattern).whole()


class _Rewriting:
    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0

    def whole(self) -> str:
        made = self._alternation(depth=0)
        if self._at < len(self._text):
            raise Unsupported("a parenthesis that was not opened")
        return made

    def _alternation(self, depth: int) -> str:
        """Up to the end or the parenthesis that closes it, which is left unread."""
        if depth > 50:
            raise Unsupported("groups that lie too deep in each other")
        flags = _FLAGS.match(self._text, self._at)
        if flags and flags.group(2) == ")":  # `(?i)` in front holds for all of it
            self._at = flags.end()
            return f"(?{flags.group(1)}:{self._alternation(depth + 1)})"
        branches: list[list[str]] = [[]]
        while self._at < len(self._text) and self._text[self._at] != ")":
            if self._text[self._at] == "|":
                self._at += 1
                branches.append([])
            else:
                self._step(branches[-1], depth)
        return "|".join("".join(atoms) for atoms in branches)

    def _step(self, atoms: list[str], depth: int) -> None:
        char = self._text[self._at]
        if char in "*+?{":
            atoms[-1:] = [self._repeated(atoms)]
        elif char == "(":
            atoms.append(self._group(depth))
        elif char == "[":
            atoms.append(self._bracket())
        elif char == "\\":
            atoms.append(self._escape())
        else:
            self._at += 1
            atoms.append({".": f"[^\\n{_BYTES}]", "^": "\\A", "$": "\\Z"}.get(char) or re.escape(char))

    def _repeated(self, atoms: list[str]) -> str:
        if not atoms:
            raise Unsupported("a repetition of nothing")
        sign = self._text[self._at]
        if sign == "{":
            count = _COUNT.match(self._text, self._at)
            if count is None:
                raise Unsupported("a brace that counts nothing; write \\{ for the character")
            least, most = int(count.group(1)), count.group(3)
            if max(least, int(most or 0)) > 1000 or (most and int(most) < least):
                raise Unsupported("a count that is too large or upside down")
            sign = count.group()
        self._at += len(sign)
        if self._text.startswith("?", self._at):
            self._at += 1
            sign += "?"
        return f"(?:{atoms[-1]}){sign}"  # in a group: what is repeated may be a repetition

    def _group(self, depth: int) -> str:
        named = _NAMED.match(self._text, self._at)
        flags = _FLAGS.match(self._text, self._at)
        opening = "("
        if self._text.startswith("(?:", self._at):
            self._at += 3
            opening = "(?:"
        elif named:
            self._at = named.end()
        elif flags and flags.group(2) == ":":
            self._at = flags.end()
            opening = f"(?{flags.group(1)}:"
        elif self._text.startswith("(?", self._at):
            raise Unsupported(f"the group {self._text[self._at : self._at + 4]}… (look-around does not exist here)")
        else:
            self._at += 1
        inner = self._alternation(depth + 1)
        if not self._text.startswith(")", self._at):
            raise Unsupported("a parenthesis that is not closed")
        self._at += 1
        # Back references do not exist, so no group needs a number.
        return f"{'(?:' if opening == '(' else opening}{inner})"

    def _escape(self) -> str:
        """Outside of brackets."""
        letter = self._text[self._at + 1 : self._at + 2]
        if letter in ("b", "B"):
            self._at += 2
            return f"\\{letter}"
        if letter and letter in "dwsDWS":
            self._at += 2
            positive, opposite = _CLASSES[letter.lower()]
            return f"[{positive}]" if letter.islower() else opposite
        return re.escape(self._character())

    def _character(self) -> str:
        """The one character that is written here, inside or outside of brackets."""
        char = self._text[self._at]
        self._at += 1
        if char != "\\":
            return char
        letter = self._text[self._at : self._at + 1]
        self._at += 1
        if letter in _PUNCTUATION:
            return letter
        if letter in _CONTROL:
            return _CONTROL[letter]
        if letter in _HEX:
            return self._coded(_HEX[letter])
        if not letter:
            raise Unsupported("a backslash at the end")
        if letter.isdigit():
            raise Unsupported("back references, which ripgrep does not know")
        raise Unsupported(f"\\{letter}")

    def _coded(self, digits: int) -> str:
        code = self._text[self._at : self._at + digits]
        end = self._at + digits
        if code.startswith("{"):
            end = self._text.find("}", self._at) + 1
            code = self._text[self._at + 1 : end - 1]
        if not re.fullmatch(r"[0-9A-Fa-f]{1,8}", code) or (end - self._at == digits and len(code) != digits):
            raise Unsupported("a character code that is none")
        self._at = end
        number = int(code, 16)
        if number > 0x10FFFF or 0xD800 <= number < 0xE000 or number == 0x0A:
            raise Unsupported("a character code that no line can hold")
        return chr(number)

    def _bracket(self) -> str:
        self._at += 1
        negated = self._text.startswith("^", self._at)
        self._at += negated
        parts: list[str] = []
        opposites: list[str] = []
        while not self._text.startswith("]", self._at) or not (parts or opposites):
            if self._at >= len(self._text):
                raise Unsupported("a bracket that is not closed")
            two = self._text[self._at : self._at + 2]
            if two in ("\\D", "\\W", "\\S") and not negated:
                self._at += 2
                opposites.append(_CLASSES[two[1].lower()][1])
            else:
                parts.append(self._member())
        self._at += 1
        if negated:
            return f"[^{''.join(parts)}\\n{_BYTES}]"
        return "(?:" + "|".join([*(["[" + "".join(parts) + "]"] if parts else []), *opposites]) + ")"

    def _member(self) -> str:
        """A class, a character or a range of them."""
        posix = _MEMBER.match(self._text, self._at)
        if posix:
            self._at = posix.end()
            if posix.group(1) not in _POSIX:
                raise Unsupported(f"the class {posix.group()}")
            return _POSIX[posix.group(1)]
        two = self._text[self._at : self._at + 2]
        if two in ("\\d", "\\w", "\\s"):
            self._at += 2
            return _CLASSES[two[1]][0]
        if two in ("\\D", "\\W", "\\S", "&&", "--", "~~") or two[:1] == "[":
            raise Unsupported(f"{two} in brackets")
        low = self._character()
        if self._text[self._at : self._at + 1] != "-" or self._text[self._at + 1 : self._at + 2] in ("]", ""):
            return re.escape(low)
        if self._text[self._at : self._at + 2] == "--" or self._text[self._at + 1 : self._at + 2] == "[":
            raise Unsupported("a range in brackets that is hard to read")
        self._at += 1
        high = self._character()
        if high < low:
            raise Unsupported("a range in brackets that is upside down")
        return f"{re.escape(low)}-{re.escape(high)}"
