"""The man page, from the parsers the program runs on. `python -m quintet.cli.manual` prints it; no command does."""

from __future__ import annotations

import argparse
import sys

from quintet.cli import COMMANDS, exits
from quintet.cli.parser import actions_of
from quintet.cli.words import own_arguments, parser_of
from quintet.domain.errors import all_error_classes

_HEAD = """.\\" Made by `make docs` from the program's own parsers: change those.
.TH QUINTET 1
.SH NAME
quintet \\- one coding-agent server that every front end can use
.SH SYNOPSIS
.B quintet
[\\fICOMMAND\\fR [\\fIARGUMENTS\\fR]] [\\fB\\-\\-home\\fR \\fIDIR\\fR] [\\fB\\-\\-json\\fR] [\\fB\\-\\-no\\-color\\fR]
.SH DESCRIPTION
Without a command it says how things stand and what to do next.
Every command takes
.B \\-\\-home
(Quintet's directory, else QUINTET_HOME),
.B \\-\\-json
and
.BR \\-\\-no\\-color .
.SH COMMANDS
"""
_TAIL = """.SH FILES
.TP
.I ~/.local/share/quintet
the home: config.toml, the journal, credentials, the log (QUINTET_HOME names another)
.SH ENVIRONMENT
.TP
.B QUINTET_HOME
the home directory
.TP
.B QUINTET_MODEL
the model that is used when none is named
.TP
.B NO_COLOR
no colours
"""


def manual() -> str:
    parts = [_HEAD]
    for name, summary in COMMANDS.items():
        parser = parser_of(name)
        parts.append(f".SS quintet {_plain(name)}\n{_plain(summary)}\n")
        for action, inner in actions_of(parser).items():
            parts.append(f".TP\n.B quintet {_plain(name)} {_plain(action)}\n{_plain(inner.description or '')}\n")
            parts.append(f".RS\n{_arguments(inner)}.RE\n" if _arguments(inner) else "")
        parts.append(_arguments(parser) if not actions_of(parser) else "")
    codes = "".join(f".TP\n.B {code}\n{_plain(words)}\n" for code, words in exits.MEANINGS.items())
    return "".join([*parts, ".SH EXIT STATUS\n", codes, ".SH ERRORS\n", _errors(), _TAIL])


def _errors() -> str:
    """What docs/errors.md has, for whoever has no clone: an error's line ends with its code."""
    rows = []
    for error in sorted(all_error_classes(), key=lambda e: e.code):
        happened = " ".join((error.__doc__ or "").split())
        rows.append(f".TP\n.B {_plain(error.code)}\n{_plain(f'{happened} {error.next_step}')}\n")
    return "".join(rows)


def _arguments(parser: argparse.ArgumentParser) -> str:
    """What each argument means; one that needs no words is in the synopsis of --help."""
    rows = [(", ".join(a.option_strings) or a.dest.upper(), a.help) for a in own_arguments(parser)]
    return "".join(f".TP\n.B {_plain(name)}\n{_plain(words)}\n" for name, words in rows if words)


def _plain(text: str) -> str:
    """Words in which roff sees no command: not at a line's beginning, not behind a backslash, no hyphen broken."""
    words = text.replace("\\", "\\e").replace("-", "\\-").replace("\n", " ")
    words = "".join(c if c.isascii() else f"\\[u{ord(c):04X}]" for c in words)
    return f"\\&{words}" if words[:1] in (".", "'") else words


if __name__ == "__main__":
    sys.stdout.write(manual())
