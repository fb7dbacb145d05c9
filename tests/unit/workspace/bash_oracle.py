"""What bash itself makes of a line: the commands a, b and c are functions that write down the words they were given.

Nothing else can run: there is no PATH, and the working directory is thrown away.
"""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

from quintet.domain.ports import UNKNOWN_WORD

_RECORD = """{0}() {{ printf '%s\\0' {0} "$@" $'\\001' >&9; }}\n"""
_BEGIN = 'exec 9>>"$LOG"\n' + "".join(_RECORD.format(name) for name in "abc") + "PATH=/nonexistent\n"
TOKENS = [
    *"abcx12;&|(){}'\"\\$`#!~*?[]=,%^@+:-", " ", " ", " ", " ", " ", "\t", "\n", "&&", "||", "$(", "<(", ">", "<", ">>",
    "2>", "&1", ">&", "<<<", "<<EOF", "\nEOF\n", "[[", "]]", "x=", "if ", "then ", "fi", "else ", "for x in ", "do ",
    "done", "case ", "in ", "esac", ";;", "$x", "${x}", "${x:-", "$'", '$"', "--", "..", "time ", "é", "\\\n", "$((",
    "))", "{a,b}", "CI=1 ", "/dev/null", " > /dev/null ", "2>&1",
]  # fmt: skip


def ran(text: str, directory: Path) -> list[tuple[str, ...]] | None:
    """The words of each command that ran; None when it did not end."""
    log, place = directory / "log", directory / "place"
    log.write_bytes(b"")
    place.mkdir(exist_ok=True)
    environment = {"LOG": str(log), "LC_ALL": "C.UTF-8"}
    try:
        # Its pipes are read to their end, so that nothing of it is left in the background.
        subprocess.run(
            ["bash", "-c", _BEGIN + text],
            cwd=place,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=20,
        )
    except subprocess.TimeoutExpired:
        return None
    records = log.read_bytes().split(b"\0\1\0")
    return [tuple(os.fsdecode(word) for word in record.split(b"\0")) for record in records if record]


def fits(argv: tuple[str, ...], found: tuple[str, ...]) -> bool:
    """An unknown word may have become any number of words."""
    if not found:
        return not argv
    if found[0] == UNKNOWN_WORD:
        return any(fits(argv[n:], found[1:]) for n in range(len(argv) + 1))
    return bool(argv) and argv[0] == found[0] and fits(argv[1:], found[1:])


def noise(source: random.Random) -> str:
    """Anything at all, mostly broken."""
    return source.choice("abc") + " " + "".join(source.choice(TOKENS) for _ in range(source.randint(1, 14)))


def line(source: random.Random, depth: int = 3) -> str:
    """A line that is mostly whole, with nesting and odd spacing."""
    inner = (lambda: line(source, depth - 1)) if depth else (lambda: _simple(source, 0))
    forms = [
        lambda: _simple(source, depth),
        lambda: f"{inner()}{source.choice([';', ' && ', ' || ', ' | ', chr(10), ' & ', '|', ';'])}{inner()}",
        lambda: f"({inner()})",
        lambda: f"{{ {inner()}; }}",
        lambda: f"if {inner()}; then {inner()}; fi",
        lambda: f"for x in 1 {_word(source, depth)}; do {inner()}; done",
        lambda: f"case {_word(source, 0)} in *) {inner()};; esac",
        lambda: f"! {inner()}",
        lambda: f"{_simple(source, depth)} <<EOF\n{_word(source, 0)} $x\nEOF",
        lambda: f"{_simple(source, depth)} {source.choice(['>f', '2>&1', '<f', '>/dev/null', '>>f b', '&>f'])}",
    ]
    return source.choice(forms)()


def _simple(source: random.Random, depth: int) -> str:
    words = [_word(source, depth) for _ in range(source.randint(0, 3))]
    return source.choice([" ", "  ", "\t", " \\\n"]).join([source.choice("abc"), *words])


def _word(source: random.Random, depth: int) -> str:
    pieces = [
        "x", "1", "-y", "'q r'", '"d e"', "\\ ", "\\'", "'\"'", '"\'"', "$'t\\'u'", "é", "a=b", "~", "*", "{m,n}", '""',
        "$x", '"$x"', "#", "!", "^", ":", "%", "\\$", '"\\$"', "'$('", '"\\`"', "\\;", "';'", "\\|", "[z]", "$", "''",
    ]  # fmt: skip
    nested = [lambda: f"$({line(source, depth - 1)})", lambda: f'"$({line(source, depth - 1)})"',
              lambda: f"`{_simple(source, 0)}`", lambda: f"<({_simple(source, 0)})"]  # fmt: skip
    if depth and source.random() < 0.2:
        return source.choice(nested)()
    return "".join(source.choice(pieces) for _ in range(source.randint(1, 3))).lstrip("#") or "x"
