"""Reads corpus_commands.txt: one line is one command with what is expected of it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import msgspec

from quintet.domain.ports import UNKNOWN_WORD

ALLOWED_PROGRAMS = """
ls cat echo timeout env sh bash nice nohup time command builtin exec eval xargs find busybox setsid stdbuf ionice flock
pytest sed read ./x.sh python python3 test unset export
"""
RULES = {
    "shell: git status *": "allow",
    "shell: git log *": "allow",
    "shell: git push *": "deny",
    **{f"shell: {program} *": "allow" for program in ALLOWED_PROGRAMS.split()},
}


class Case(msgspec.Struct, frozen=True):
    text: str
    understood: bool
    verdict: str
    destructive: bool
    commands: tuple[tuple[str, ...], ...] | None  # None: not said
    writes: tuple[str, ...] = ()


def cases() -> list[Case]:
    found: list[Case] = []
    section: re.Match[str] | None = None
    for line in (Path(__file__).parent / "corpus_commands.txt").read_text().split("\n"):
        if line.startswith("# ") and section is None:
            continue
        header = re.fullmatch(r"\[([+?]) (allow|ask|deny)( D)?\]", line)
        if header:
            section = header
        elif line and section is not None:
            text, arrow, expected = line.partition(" ⇒ ")
            commands, writes = _expected(expected) if arrow else (None, ())
            found.append(Case(_plain(text), section[1] == "+", section[2], bool(section[3]), commands, writes))
    return found


def _expected(text: str) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
    commands, writes = [], []
    for part in text.split(" ⏵ "):
        words = [UNKNOWN_WORD if word == "¿" else _plain(word) for word in _words(part)]
        writes += [_plain(word[1:].replace("¿", UNKNOWN_WORD)) for word in part.split(" ") if word.startswith(">")]
        commands.append(tuple(words))
    return tuple(commands), tuple(writes)


def _words(part: str) -> list[str]:
    return shlex.split(" ".join(word for word in part.split(" ") if not word.startswith(">")))


def _plain(text: str) -> str:
    return re.sub(r"⟨([0-9a-f]+)⟩", lambda m: chr(int(m[1], 16)), text).replace("⏎", "\n")
