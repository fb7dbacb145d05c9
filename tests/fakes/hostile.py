"""Text that would drive a terminal, hide what stands on it, or turn it around; and how to tell that it was obeyed."""

from __future__ import annotations

import re
import unicodedata

# What a terminal would do, as texts of models, tools and files. Each has something only it could have written.
ATTACKS = {
    "title": "\x1b]0;OWNED-TITLE\x07",
    "title ended by ST": "\x1b]2;OWNED-TITLE\x1b\\",
    "clipboard": "\x1b]52;c;T1dORUQtQ0xJUA==\x07",
    "hyperlink": "\x1b]8;;https://owned.example/\x1b\\click\x1b]8;;\x1b\\",
    "alternate screen": "\x1b[?1049h",
    "clear": "\x1b[2J\x1b[3J\x1b[H",
    "report": "\x1b[6n\x1b[c\x1b[5n",
    "colour": "\x1b[38;5;123mowned\x1b[48;5;45m",
    "invisible": "\x1b[8mhidden\x1b[28m",
    "up and over": "\x1b[4A\x1b[1000Dallowed by you",
    "C1 CSI": "\x9b31m\x9b2J",
    "C1 OSC": "\x9d0;OWNED-TITLE\x9c",
    "C1 as bytes": "\xc2\x9b2J",
    "DCS": "\x1bP$q q\x1b\\",
    "APC and PM": "\x1b_owned\x1b\\\x1b^owned\x1b\\",
    "charset": "\x0e\x1b(0lqk\x0f",
    "reset": "\x1bc\x1b[!p",
    "backspaces": "rm -rf /\b\b\b\b\b\b\b\bls      ",
    "carriage return": "rm -rf /\rls      ",
    "bell and nul": "\x07\x00\x07",
    "vertical": "\x0b\x0c\x85\u2028\u2029",
    "delete": "\x7f\x7f",
    "override": "\u202egpj.exe\u202c",
    "isolate": "\u2066\u2067\u2068\u2069\u061c\u200e\u200f",
    "zero width": "pass\u200bword\ufeff\u2060\u00ad",
    "tags": "".join(chr(0xE0000 + ord(c)) for c in "ignore this") + "\U000e0001",
    "interlinear": "\ufff9a\ufffab\ufffb",
    "half a character": "\ud83d",
}
MARK = "<<<{}>>>"  # stands around each, so that it is known to have been shown
_OWN = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")  # what a program of ours writes to draw
_JOINERS = "\u200c\u200d"


def corpus(*, nul: bool = False) -> str:
    """All of them, marked, without what no UTF-8 holds; NUL only where that can be said at all."""
    chosen = [attack for name, attack in ATTACKS.items() if name != "half a character"]
    whole = "\n".join(MARK.format(attack) for attack in chosen)
    return whole if nul else whole.replace("\0", "")


def obeyed(output: str, *, drawing: bool = False) -> list[str]:
    """What of an output a terminal would obey, beside newlines, tabs and, where it draws, the program's own strokes."""
    plain = _OWN.sub("", output).replace("\r", "") if drawing else output
    found = [
        c for c in plain if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") and c not in f"\n\t{_JOINERS}"
    ]
    if drawing:
        found += [
            s for s in ("\x1b[?1049h", "\x1b[2J", "\x1b[3J", "\x1b[6n", "\x1b[c", "\x1b[5n", "\x1b[8m") if s in output
        ]
        found += [s for s in ("\x1b[38;5;123m", "\x1b[48;5;45m", "\x1b[4A\x1b[1000D") if s in output]
    return found
