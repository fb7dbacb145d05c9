"""Every word of the command line, from the parsers themselves: what completion, man page and docs are made of."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterator

import msgspec

from quintet.cli import COMMANDS
from quintet.cli.parser import actions_of, common_flags

COMMON = ("help", "home", "json", "no_color")
_COMMON_FLAGS = ("--home", "--json", "--no-color", "--help")


class Words(msgspec.Struct, frozen=True):
    """One command, or one action of it, and the flags that may follow."""

    path: tuple[str, ...]
    summary: str
    flags: tuple[str, ...]
    choices: dict[str, tuple[str, ...]] = {}  # of a flag that takes one of few words


def parser_of(name: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"quintet {name}", add_help=False)
    importlib.import_module(f"quintet.cli.{name}").add_flags(parser, common_flags())
    return parser


def own_arguments(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Without what every command has."""
    return (a for a in parser._actions if a.dest not in COMMON)


def all_words() -> list[Words]:
    found = []
    for name, summary in COMMANDS.items():
        parser = parser_of(name)
        actions = actions_of(parser)
        found.append(_words((name,), summary, parser))
        found += [_words((name, action), inner.description or "", inner) for action, inner in actions.items()]
    return found


def _words(path: tuple[str, ...], summary: str, parser: argparse.ArgumentParser) -> Words:
    own = [a for a in own_arguments(parser) if a.option_strings]
    flags = (*(flag for a in own for flag in a.option_strings), *_COMMON_FLAGS)
    choices = {flag: tuple(map(str, a.choices)) for a in own if a.choices for flag in a.option_strings}
    return Words(path, summary, flags, choices)
