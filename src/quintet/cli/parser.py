"""The parser of one command: argparse, with mistakes told as a person wants them: what is wrong, what was probably
meant, what there is. Knows no command.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from quintet.cli import exits, last_resort
from quintet.cli.terminal import one_line, safe_line, terminal_width


class Parser(argparse.ArgumentParser):
    def _get_formatter(self) -> argparse.HelpFormatter:
        """As wide as the terminal. argparse's own imports a large module to find that out, for every flag anew."""
        said = os.environ.get("COLUMNS", "")
        columns = int(said) if said.isdecimal() else 0
        width = (columns or terminal_width(sys.stdout) or 80) - 2
        return argparse.HelpFormatter(prog=self.prog, width=width)

    def error(self, message: str) -> NoReturn:
        self.refuse(f"{safe_line(message)}.")

    def refuse(self, sentences: str) -> NoReturn:
        last_resort.tell(one_line(f"{self.prog}: {sentences} See `{self.prog} --help`.", sys.stderr))
        sys.exit(exits.USAGE)

    def unrecognized(self, words: list[str]) -> NoReturn:
        flag = next((word.partition("=")[0] for word in words if word.startswith("-")), "")
        meant = _meant(flag, self._option_string_actions)
        hint = f" Did you mean {meant}?" if meant else ""
        if not flag.strip("-") and any(action.nargs in ("*", "+") for action in self._get_positional_actions()):
            hint = " Words stand together, before the flags or behind them."
        self.refuse(f"unrecognized arguments: {safe_line(' '.join(words))}.{hint}")

    def without_action(self, named: dict[str, str]) -> NoReturn:
        """The command alone: what it can do, each in a line."""
        from quintet.cli.layout import entry, sentence  # as everything here that only a mistake needs

        wide, columns = max(map(len, named)), terminal_width(sys.stderr)
        lines = [row for name, means in named.items() for row in entry(f"  {name:<{wide}}  ", means, columns)]
        head, foot = f"usage: {self.prog} ACTION ...", f"More with: {self.prog} ACTION --help"
        last_resort.tell("\n".join([*sentence(head, columns), "", *lines, "", *sentence(foot, columns)]))
        sys.exit(exits.USAGE)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """argparse's own has no word about what was probably meant."""
        if action.choices is None or value in action.choices:
            return
        given, known = safe_line(str(value)), [str(choice) for choice in action.choices]
        near = _meant(given, known)
        if isinstance(action, argparse._SubParsersAction):
            hint = f"Did you mean `{self.prog} {near}`?" if near else f"There are {', '.join(known)}."
            self.refuse(f"there is no action {given!r}. {hint}")
        name = "/".join(action.option_strings) or action.dest
        hint = f" Did you mean {near}?" if near else ""
        self.refuse(f"{name} cannot be {given!r}, only {', '.join(known)}.{hint}")

    def _print_message(self, message: str, file: Any = None) -> None:
        """argparse's own would swallow that its help could not be written."""
        (file or sys.stdout).write(message)


def common_flags() -> Parser:
    common = Parser(add_help=False)
    common.add_argument("--home", default=argparse.SUPPRESS, help="Quintet's directory (else QUINTET_HOME)")
    common.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="answer in JSON")
    common.add_argument("--no-color", action="store_true", default=argparse.SUPPRESS, help="no colours")
    return common


def actions(
    parser: argparse.ArgumentParser, common: argparse.ArgumentParser
) -> Callable[[str, str], argparse.ArgumentParser]:
    """How a command with actions gets one more: by its name and what it does. One of them must be given."""
    found = parser.add_subparsers(
        dest="action", metavar="ACTION", prog=parser.prog
    )  # `flags_of` minds that it is there

    def add(name: str, summary: str) -> argparse.ArgumentParser:
        return found.add_parser(name, help=summary, description=summary, parents=[common])

    return add


def flags_of(parser: Parser, own: Parser, words: list[str]) -> argparse.Namespace:
    """The flags of a command; what is not understood ends in SystemExit, after it was told."""
    flags, unknown = parser.parse_known_args(words)
    named = actions_of(own)
    chosen = getattr(flags, "action", None) if named else None
    if unknown:
        inner = named.get(chosen or "")
        (inner if isinstance(inner, Parser) else own).unrecognized(unknown)
    if named and chosen is None:
        own.without_action({name: inner.description or "" for name, inner in named.items()})
    for flag, default in (("home", None), ("json", False), ("no_color", False)):
        if not hasattr(flags, flag):
            setattr(flags, flag, default)
    return flags


def actions_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _meant(given: str, known: Iterable[str]) -> str:
    import difflib

    return next(iter(difflib.get_close_matches(given, list(known), n=1)), "")
