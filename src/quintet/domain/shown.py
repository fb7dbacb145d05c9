"""Text as a person who decides must see it: whole, with every character that hides, moves or turns others spelled out.

Pure. The one escaping for approvals, wherever they are shown. Escaped text is plain, so escaping twice changes nothing.
"""

from __future__ import annotations

import re

LONG_BLANK = 20  # blanks in a row that could push the rest out of sight

# Printable by their category, yet nothing is seen of them.
_UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | {chr(c) for c in range(0xFE00, 0xFE10)}
_PADDING = re.compile(rf" {{{LONG_BLANK},}}|\n(?:[ \t]*\n){{4,}}")


def shown(text: str) -> str:
    """Newlines and tabs stay; long stretches of nothing are counted instead of shown."""
    return _PADDING.sub(_counted, spelled_out(text))


def spelled_out(text: str) -> str:
    """The same with every blank in its place: for documents, where nobody decides by what is in sight."""
    return "".join(c if _seen(c) else _spelled(c) for c in text)


def shown_line(text: str) -> str:
    """The same on one line."""
    return shown(text.replace("\n", "\\n").replace("\t", "\\t"))


def _seen(character: str) -> bool:
    if character in "\n\t":
        return True
    return character.isprintable() and character not in _UNSEEN and not 0xE0100 <= ord(character) <= 0xE01EF


def _spelled(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _counted(found: re.Match[str]) -> str:
    gap = found[0]
    return f"[{len(gap)} blanks]" if gap.startswith(" ") else f"\n[{gap.count(chr(10)) - 1} empty lines]\n"
