"""Running one command: its flags, the event loop, signals, and errors as one line with the right exit code."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from quintet.cli import exits
from quintet.cli.terminal import Screen, safe
from quintet.domain.errors import Invalid, QuintetError

if TYPE_CHECKING:
    from quintet.app import App

Command = Callable[["Invocation"], Coroutine[Any, Any, int]]


class Invocation:
    """One call of one command: what was asked and where to answer."""

    def __init__(self, flags: argparse.Namespace) -> None:
        self.flags = flags
        self.json: bool = flags.json
        self.screen = Screen(color=not flags.no_color)
        self.home = flags.home

    @asynccontextmanager
    async def open(self, protocol: str = "cli") -> AsyncIterator[App]:
        """The home, opened; what is not as it should be is told first."""
        from quintet.app import open_app

        async with open_app(self.home, protocol) as app:
            for warning in app.warnings:
                self.screen.note(f"quintet: {warning}")
            yield app


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(exits.USAGE, f"{self.prog}: {message}. See `{self.prog} --help`.\n")


def common_flags() -> _Parser:
    common = _Parser(add_help=False)
    common.add_argument("--home", default=argparse.SUPPRESS, help="Quintet's directory (else QUINTET_HOME)")
    common.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="answer in JSON")
    common.add_argument("--no-color", action="store_true", default=argparse.SUPPRESS, help="no colours")
    return common


def positive(text: str) -> int:
    """A flag's number that must be at least one."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def directory(given: str) -> str:
    """A flag's working directory, which must exist; the current one if none was given."""
    path = os.path.realpath(given or ".")
    if not os.path.isdir(path):
        raise Invalid(f"{given} is not a directory.", next_step="Name an existing one with --cwd.")
    return path


def invoke(name: str, words: list[str]) -> int:
    """Parse, run, and turn whatever happens into an exit code."""
    module = importlib.import_module(f"quintet.cli.{name}")
    common = common_flags()
    parser = _Parser(prog="quintet", parents=[common], add_help=False)
    subparsers = parser.add_subparsers(dest="command", required=True, parser_class=_Parser)
    module.add_flags(subparsers.add_parser(name, parents=[common], description=module.__doc__), common)
    flags = parser.parse_args(words)
    for flag, default in (("home", None), ("json", False), ("no_color", False)):
        if not hasattr(flags, flag):
            setattr(flags, flag, default)
    return run_guarded(module.run, Invocation(flags))


def run_guarded(command: Command, invocation: Invocation) -> int:
    try:
        return asyncio.run(command(invocation))
    except QuintetError as error:
        print(f"quintet: {safe(error.line())}", file=sys.stderr)
        return exits.BY_CODE[error.code]
    except KeyboardInterrupt:
        return exits.INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone; say nothing, and keep Python from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exits.FAILED
