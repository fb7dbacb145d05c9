"""Matcher: which targets a hook is about, as a regular expression that is searched for. Compiled once, and small.

Python's expressions can take forever on a short text, and nothing can stop one that runs. So a matcher is short, has
few repeats and choices, none inside another, and sees only the beginning of its target: what is left is quick.
"""

from __future__ import annotations

import re

from quintet.domain.errors import Invalid

LONGEST = 200  # characters of a matcher
TARGET_AT_MOST = 100  # characters of a target that are looked at
REPEATS = 3
CHOICES = 4  # groups with a choice in them
# What may stand between something and its repeat, so that the two are not seen together.
_APART = re.compile(r"\(\?(#|[a-zA-Z-]*x)")


class Matcher:
    """Nothing in it matches everything."""

    __slots__ = ("_compiled", "text")

    def __init__(self, text: str = "") -> None:
        """Raises Invalid, without a place: whoever reads the row adds it."""
        self.text = text
        self._compiled = None if text in ("", "*") else _compiled(text)

    def fits(self, target: str) -> bool:
        return self._compiled is None or self._compiled.search(target[:TARGET_AT_MOST]) is not None

    def __repr__(self) -> str:
        return f"Matcher({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Matcher) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)


def _compiled(text: str) -> re.Pattern[str]:
    if len(text) > LONGEST:
        raise Invalid(f"the matcher is longer than {LONGEST} characters.", next_step="Write several hooks.")
    try:
        made = re.compile(text)
    except re.error as error:
        raise Invalid(f"the matcher {text!r} is not a regular expression: {error}.", next_step="Correct it.") from None
    if problem := _slow(text):
        raise Invalid(
            f"the matcher {text!r} could take very long: it has {problem}.", next_step="Write several hooks instead."
        )
    return made


def _slow(text: str) -> str:
    """What could make it slow, or nothing. `text` is known to be an expression."""
    plain = re.sub(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", "x", text, flags=re.DOTALL)
    if _APART.search(plain):
        return "a comment or the flag x, behind which a repeat can hide"
    plain = plain.replace("(?", "(")  # kinds of groups; no repeat
    groups, repeats, choices, outer = [False], 0, 0, [False]  # of each open group: something variable, a choice
    for place, sign in enumerate(plain):
        if sign == "(":
            groups.append(False)
            outer.append(False)
        elif sign == "|":
            choices += not outer[-1]
            groups[-1] = outer[-1] = True
        elif sign == ")":
            variable = groups.pop()
            outer.pop()
            if variable and plain[place + 1 : place + 2] in tuple("*+{"):
                return "a repeat around another repeat or a choice"
            groups[-1] = groups[-1] or variable
        elif sign in "*+{" or (sign == "?" and plain[place - 1] not in "*+}"):
            repeats += 1
            groups[-1] = True
    if repeats > REPEATS:
        return f"more than {REPEATS} repeats"
    return f"choices in more than {CHOICES} places" if choices > CHOICES else ""
